"""French verb forms: regular verbs by rules, irregular ones by the longest matching ending in a table."""

import re
from functools import cache
from typing import Literal, NamedTuple

Tense = Literal["present", "imperfect", "future", "conditional", "subjunctive"]

ENDINGS: dict[str, list[str]] = {
    "imperfect": ["ais", "ais", "ait", "ions", "iez", "aient"],
    "future": ["ai", "as", "a", "ons", "ez", "ont"],
    "subjunctive": ["e", "es", "e", "ions", "iez", "ent"],
}

# ending | six forms of the present | stem of the future | past participle
IRREGULAR = """
    être | suis es est sommes êtes sont | ser | été
    avoir | ai as a avons avez ont | aur | eu
    aller | vais vas va allons allez vont | ir | allé
    faire | fais fais fait faisons faites font | fer | fait
    savoir | sais sais sait savons savez savent | saur | su
    vouloir | veux veux veut voulons voulez veulent | voudr | voulu
    pouvoir | peux peux peut pouvons pouvez peuvent | pourr | pu
    devoir | dois dois doit devons devez doivent | devr | dû
    cevoir | çois çois çoit cevons cevez çoivent | cevr | çu
    prévoir | prévois prévois prévoit prévoyons prévoyez prévoient | prévoir | prévu
    voir | vois vois voit voyons voyez voient | verr | vu
    prendre | prends prends prend prenons prenez prennent | prendr | pris
    mettre | mets mets met mettons mettez mettent | mettr | mis
    tenir | tiens tiens tient tenons tenez tiennent | tiendr | tenu
    venir | viens viens vient venons venez viennent | viendr | venu
    suivre | suis suis suit suivons suivez suivent | suivr | suivi
    aître | ais ais aît aissons aissez aissent | aîtr | u
    ouvrir | ouvre ouvres ouvre ouvrons ouvrez ouvrent | ouvrir | ouvert
    offrir | offre offres offre offrons offrez offrent | offrir | offert
    cueillir | cueille cueilles cueille cueillons cueillez cueillent | cueiller | cueilli
    quérir | quiers quiers quiert quérons quérez quièrent | querr | quis
    crire | cris cris crit crivons crivez crivent | crir | crit
    dire | dis dis dit disons dites disent | dir | dit
    croire | crois crois croit croyons croyez croient | croir | cru
    uire | uis uis uit uisons uisez uisent | uir | uit
    eindre | eins eins eint eignons eignez eignent | eindr | eint
    courir | cours cours court courons courez courent | courr | couru
    partir | pars pars part partons partez partent | partir | parti
    dormir | dors dors dort dormons dormez dorment | dormir | dormi
    servir | sers sers sert servons servez servent | servir | servi
    mourir | meurs meurs meurt mourons mourez meurent | mourr | mort
    rompre | romps romps rompt rompons rompez rompent | rompr | rompu
    envoyer | envoie envoies envoie envoyons envoyez envoient | enverr | envoyé
"""
"""Irregular verbs by ending."""

# singular and third person plural | first and second person plural
SUBJUNCTIVE = {
    "être": "sois sois soit soyons soyez soient",
    "avoir": "aie aies ait ayons ayez aient",
    "aller": "aille ailles aille allions alliez aillent",
    "faire": "fasse fasses fasse fassions fassiez fassent",
    "savoir": "sache saches sache sachions sachiez sachent",
    "vouloir": "veuille veuilles veuille voulions vouliez veuillent",
    "pouvoir": "puisse puisses puisse puissions puissiez puissent",
}

WITH_ETRE = frozenset(
    ["aller", "apparaître", "arriver", "décéder", "entrer", "mourir", "partir", "rentrer", "rester", "revenir", "venir"]
)
"""Verbs with the auxiliary être."""


class Paradigm(NamedTuple):
    """Forms from which all others are derived."""

    present: list[str]
    future: str
    participle: str


def _table() -> dict[str, Paradigm]:
    """Parse ``IRREGULAR``; longer endings come first."""
    rows = {}
    for line in IRREGULAR.strip().splitlines():
        ending, present, future, participle = (field.strip() for field in line.split("|"))
        rows[ending] = Paradigm(present.split(), future, participle)
    return dict(sorted(rows.items(), key=lambda item: -len(item[0])))


_IRREGULAR = _table()


@cache
def paradigm(infinitive: str) -> Paradigm:
    """Return present, future stem and past participle of a verb."""
    for ending, row in _IRREGULAR.items():
        if infinitive.endswith(ending):
            stem = infinitive.removesuffix(ending)
            return Paradigm([stem + form for form in row.present], stem + row.future, stem + row.participle)
    stem = infinitive[:-2]
    if infinitive.endswith("er"):
        return _first_group(stem)
    if infinitive.endswith("ir"):
        return Paradigm([stem + e for e in ["is", "is", "it", "issons", "issez", "issent"]], infinitive, stem + "i")
    return Paradigm([stem + e for e in ["s", "s", "", "ons", "ez", "ent"]], infinitive[:-1], stem + "u")


def _first_group(stem: str) -> Paradigm:
    """Return the paradigm of a verb in -er, with its spelling changes: lance/lançons, lève, cède, emploie, appelle."""
    strong = stem
    if stem.endswith("ppel"):
        strong = stem + "l"
    elif stem.endswith("y"):
        strong = stem[:-1] + "i"
    elif re.search(r"e[bcdfglmnprstv]$", stem):
        strong = f"{stem[:-2]}è{stem[-1]}"
    cede = re.sub(r"é([bcdfglmnprstv]+)$", r"è\1", strong)
    soft = stem + "e" if stem.endswith("g") else stem[:-1] + "ç" if stem.endswith("c") else stem
    present = [cede + "e", cede + "es", cede + "e", soft + "ons", stem + "ez", cede + "ent"]
    return Paradigm(present, strong + "er", stem + "é")


@cache
def conjugate(infinitive: str, tense: Tense, person: int) -> str:
    """Return one simple form; persons 0 to 5 are je, tu, il, nous, vous, ils."""
    row = paradigm(infinitive)
    if tense == "present":
        return row.present[person]
    if tense == "future":
        return row.future + ENDINGS["future"][person]
    if tense == "conditional":
        return row.future + ENDINGS["imperfect"][person]
    ending = ENDINGS[tense][person]
    if tense == "subjunctive":
        if infinitive in SUBJUNCTIVE:
            return SUBJUNCTIVE[infinitive].split()[person]
        if person not in (3, 4):
            return row.present[5].removesuffix("ent") + ending
    stem = "ét" if infinitive == "être" else row.present[3].removesuffix("ons")
    if ending.startswith("i"):
        stem = stem.removesuffix("e") if stem.endswith("ge") else stem.replace("ç", "c") if stem.endswith("ç") else stem
    return stem + ending


@cache
def participle(infinitive: str, feminine: bool = False, plural: bool = False) -> str:
    """Return the past participle with agreement."""
    form = paradigm(infinitive).participle
    if form == "dû" and (feminine or plural):
        form = "du"
    if feminine:
        form += "e"
    if plural and not form.endswith("s"):
        form += "s"
    return form
