"""French and English word forms of the demo corpus, worked out by hand."""

import pytest

from rnnsmt.demo import english
from rnnsmt.demo.clauses import Manner, be_group, english_group
from rnnsmt.demo.entries import general_domain, harbour_domain
from rnnsmt.demo.french import Adjective, conjugate, join, noun_plural, paradigm, participle, spell
from rnnsmt.demo.phrases import NounPhrase


@pytest.mark.parametrize(
    ("infinitive", "tense", "forms"),
    [
        ("parler", "present", "parle parles parle parlons parlez parlent"),
        ("lancer", "present", "lance lances lance lançons lancez lancent"),
        ("lancer", "imperfect", "lançais lançais lançait lancions lanciez lançaient"),
        ("charger", "present", "charge charges charge chargeons chargez chargent"),
        ("charger", "imperfect", "chargeais chargeais chargeait chargions chargiez chargeaient"),
        ("acheter", "present", "achète achètes achète achetons achetez achètent"),
        ("acheter", "future", "achèterai achèteras achètera achèterons achèterez achèteront"),
        ("célébrer", "present", "célèbre célèbres célèbre célébrons célébrez célèbrent"),
        ("célébrer", "future", "célébrerai célébreras célébrera célébrerons célébrerez célébreront"),
        ("appuyer", "present", "appuie appuies appuie appuyons appuyez appuient"),
        ("appuyer", "future", "appuierai appuieras appuiera appuierons appuierez appuieront"),
        ("rappeler", "present", "rappelle rappelles rappelle rappelons rappelez rappellent"),
        ("interpeller", "present", "interpelle interpelles interpelle interpellons interpellez interpellent"),
        ("créer", "present", "crée crées crée créons créez créent"),
        ("bâtir", "present", "bâtis bâtis bâtit bâtissons bâtissez bâtissent"),
        ("bâtir", "imperfect", "bâtissais bâtissais bâtissait bâtissions bâtissiez bâtissaient"),
        ("perdre", "present", "perds perds perd perdons perdez perdent"),
        ("perdre", "conditional", "perdrais perdrais perdrait perdrions perdriez perdraient"),
        ("apercevoir", "present", "aperçois aperçois aperçoit apercevons apercevez aperçoivent"),
        ("prévoir", "future", "prévoirai prévoiras prévoira prévoirons prévoirez prévoiront"),
        ("revenir", "subjunctive", "revienne reviennes revienne revenions reveniez reviennent"),
        ("être", "imperfect", "étais étais était étions étiez étaient"),
        ("être", "subjunctive", "sois sois soit soyons soyez soient"),
        ("faire", "subjunctive", "fasse fasses fasse fassions fassiez fassent"),
        ("détruire", "subjunctive", "détruise détruises détruise détruisions détruisiez détruisent"),
        ("peindre", "present", "peins peins peint peignons peignez peignent"),
        ("secourir", "future", "secourrai secourras secourra secourrons secourrez secourront"),
        ("renvoyer", "future", "renverrai renverras renverra renverrons renverrez renverront"),
        ("acquérir", "present", "acquiers acquiers acquiert acquérons acquérez acquièrent"),
    ],
)
def test_conjugation(infinitive: str, tense: str, forms: str) -> None:
    assert " ".join(conjugate(infinitive, tense, person) for person in range(6)) == forms  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("infinitive", "forms"),
    [
        ("vendre", "vendu vendue vendus vendues"),
        ("prendre", "pris prise pris prises"),
        ("devoir", "dû due dus dues"),
        ("ouvrir", "ouvert ouverte ouverts ouvertes"),
        ("apparaître", "apparu apparue apparus apparues"),
        ("accueillir", "accueilli accueillie accueillis accueillies"),
    ],
)
def test_participles(infinitive: str, forms: str) -> None:
    assert " ".join(participle(infinitive, f, p) for p in (False, True) for f in (False, True)) == forms


def test_every_verb_of_the_lexicon_has_plausible_forms() -> None:
    for domain in (harbour_domain(), general_domain()):
        entries = {
            id(entry): entry
            for group in (*domain.transitive.values(), *domain.intransitive.values())
            for entry in [*group, *domain.giving, *domain.planning, *domain.saying]
        }
        for entry in entries.values():
            for verb in entry.french:
                row = paradigm(verb.infinitive)
                assert verb.infinitive.endswith(("er", "ir", "re")), verb
                assert row.present[3].endswith(("ons", "sommes")) and row.present[5].endswith("nt"), verb
                assert row.future.endswith("r"), verb


@pytest.mark.parametrize(
    ("adjective", "forms"),
    [
        (Adjective("grand"), "grand grande grands grandes"),
        (Adjective("rouge"), "rouge rouge rouges rouges"),
        (Adjective("heureux"), "heureux heureuse heureux heureuses"),
        (Adjective("municipal"), "municipal municipale municipaux municipales"),
        (Adjective("premier"), "premier première premiers premières"),
        (Adjective("blanc", "blanche"), "blanc blanche blancs blanches"),
        (Adjective("actif"), "actif active actifs actives"),
        (Adjective("vieux^"), "vieux^ vieille vieux vieilles"),
        (Adjective("par défaut", invariable=True), "par défaut par défaut par défaut par défaut"),
    ],
)
def test_agreement(adjective: Adjective, forms: str) -> None:
    found = [" ".join(adjective.agree(f, p)) for p in (False, True) for f in (False, True)]
    assert " ".join(found) == forms


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("le eau", "l'eau"),
        ("la *hausse", "la hausse"),
        ("le hôtel", "l'hôtel"),
        ("de le maire", "du maire"),
        ("de les maires", "des maires"),
        ("à le maire", "au maire"),
        ("à les eaux", "aux eaux"),
        ("à la mer", "à la mer"),
        ("de le ami", "de l'ami"),
        ("à le hôtel", "à l'hôtel"),
        ("de le *homard", "du homard"),
        ("de des_ bateaux", "de bateaux"),
        ("de des_ amis", "d'amis"),
        ("de de_ grands bateaux", "de grands bateaux"),
        ("des_ amis", "des amis"),
        ("de le_ voir", "de le voir"),
        ("de le_ aimer", "de l'aimer"),
        ("ne y a pas", "n'y a pas"),
        ("que il se est", "qu'il s'est"),
        ("si il vient si elle vient", "s'il vient si elle vient"),
        ("beau^ homme", "bel homme"),
        ("beau^ *homard", "beau homard"),
        ("sa^ église", "son église"),
        ("sa^ ville", "sa ville"),
        ("ce^ eau ce^ maire", "cet eau ce maire"),
        ("le yacht de onze", "le yacht de onze"),
        ("je ai", "j'ai"),
        ("de 12", "de 12"),
        ("de", "de"),
    ],
)
def test_joining(words: str, text: str) -> None:
    assert " ".join(join(words.split())).replace("' ", "'") == text


def test_spelling_of_a_french_sentence() -> None:
    words = ["«", "le", "eau", "»", ":", "est-ce", "que", "12", "%", "(", "a", ")", ",", "oui", "?"]
    assert spell(words) == "«\u00a0L'eau\u00a0»\u00a0: est-ce que 12\u00a0% (a), oui\u00a0?"
    assert spell(words, " ", "’", False) == '"L’eau" : est-ce que 12 % (a), oui ?'
    assert spell(["a)", "le", "eau", ";"]) == "a) l'eau\u00a0;"


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("bateau", "bateaux"), ("canal", "canaux"), ("prix", "prix"), ("gardien de phare", "gardiens de phare")],
)
def test_french_plurals(noun: str, plural: str) -> None:
    assert noun_plural(noun) == plural


def test_english() -> None:
    verb = english.Verb("carry out", "carried out", "carried out")
    assert (verb.third(), verb.ing()) == ("carries out", "carrying out")
    assert english.Verb("run", "ran", "run").ing() == "running"
    assert english.Verb("catch", "caught", "caught").third() == "catches"
    assert english.Verb("use", "used", "used").ing() == "using"
    assert english.plural("authority") == "authorities"
    assert english.plural("harbour master") == "harbour masters"
    words = ["“", "a^", "old", "man", "'s", "boat", ",", "”", "said", "a^", "user", "(", "a^", "hour", "ago", ")", "."]
    assert english.spell(words) == '"An old man\'s boat," said a user (an hour ago).'


SPEAKER, YOU, SHE, WE = (
    NounPhrase([english], [french], False, False, "P", person=person, pronoun=True)
    for english, french, person in (("I", "je", 0), ("you", "vous", 4), ("she", "elle", 2), ("we", "nous", 3))
)
CAPTAINS = NounPhrase(["the", "captains"], ["les", "capitaines"], False, True, "P")


@pytest.mark.parametrize(
    ("subject", "manner", "be", "have"),
    [
        (SPEAKER, Manner("present"), "am", "have"),
        (YOU, Manner("present"), "are", "have"),
        (SHE, Manner("present"), "is", "has"),
        (SPEAKER, Manner("past"), "was", "had"),
        (WE, Manner("past"), "were", "had"),
        (SPEAKER, Manner("present", "not", contracted=True), "am not", "don't have"),
        (SHE, Manner("present", "not", contracted=True), "isn't", "doesn't have"),
        (SHE, Manner("past", "not"), "was not", "did not have"),
        (CAPTAINS, Manner("past", "not", contracted=True), "weren't", "didn't have"),
        (CAPTAINS, Manner("future", "not", contracted=True), "won't be", "won't have"),
        (CAPTAINS, Manner("can", "not"), "cannot be", "cannot have"),
        (WE, Manner("must", "never"), "must never be", "must never have"),
    ],
)
def test_the_english_verb_agrees_with_its_subject(subject: NounPhrase, manner: Manner, be: str, have: str) -> None:
    assert " ".join(be_group(subject, manner)) == be
    assert " ".join(english_group(english.Verb("have", "had", "had"), subject, manner)) == have
