"""Reading and writing moses.ini."""

from pathlib import Path

import pytest

from rnnsmt.base.errors import InputError
from rnnsmt.cli import main
from rnnsmt.formats.default_ini import default_ini
from rnnsmt.formats.ini import NO_LIMIT, MosesIni

MOSES = """# made by hand
[input-factors]
0

[mapping]
0 T 0

[distortion-limit]
4

[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=5 path=tables/pt.gz table-limit=30
LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe-allff path=/abs/rt.gz
Distortion
KENLM lazyken=0 name=LM0 factor=0 path=lm.arpa order=5

[weight]
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2 1e-3
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
"""


def _written(tmp_path: Path, text: str = MOSES) -> Path:
    path = tmp_path / "moses.ini"
    path.write_text(text)
    return path


def test_reads_what_moses_writes(tmp_path: Path) -> None:
    ini = MosesIni.read(_written(tmp_path))
    assert [f.name for f in ini.features][3:] == ["TranslationModel0", "LexicalReordering0", "Distortion0", "LM0"]
    assert ini.weights["TranslationModel0"] == [0.2, 0.2, 0.2, 0.2, 0.001]
    assert ini.weights["UnknownWordPenalty0"] == [1.0]
    assert (ini.distortion_limit, ini.table_limit) == (4, 30)
    assert ini.file_of(ini.features[3]) == tmp_path / "tables" / "pt.gz"
    assert ini.file_of(ini.features[4]) == Path("/abs/rt.gz")


def test_written_elsewhere_it_leads_to_the_same_files_with_the_same_weights(tmp_path: Path) -> None:
    ini = MosesIni.read(_written(tmp_path))
    ini.weights["LM0"], ini.weights["Distortion0"] = [0.123456789], [0.0]
    target = tmp_path / "runs" / "one" / "moses.ini"
    ini.write(target)
    again = MosesIni.read(target)
    assert again.weights == ini.weights
    assert again.file_of(again.features[3]).resolve() == tmp_path / "tables" / "pt.gz"
    assert (again.distortion_limit, again.table_limit) == (4, 30)
    assert again.sections["mapping"] == ["0 T 0"]
    again.write(tmp_path / "back.ini")
    ini.write(tmp_path / "direct.ini")
    assert (tmp_path / "back.ini").read_text() == (tmp_path / "direct.ini").read_text()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("LM0= 0.5", "LM0= 0.5 0.5", "1 scores but 2 weights"),
        ("LM0= 0.5", "", "no line in [weight]"),
        ("LM0= 0.5", "LM0= nan", "not finite"),
        ("LM0= 0.5", "LM0= -1e300", "a weight of LM0 is larger than 1e+09"),
        ("LM0= 0.5", "LM0= a", "not a number"),
        ("LM0= 0.5", "LM0 0.5", "not of the form"),
        ("LM0= 0.5", "LM0= 0.5\nLM1= 0.5", "no such feature"),
        ("num-features=5", "num-features=4", "4 scores but 5 weights"),
        ("num-features=5", "num-features=x", "not a positive integer"),
        ("num-features=5", "num-features=\u00b2", "not a positive integer"),
        ("num-features=5", "num-features=" + 10 * "1", "not a positive integer"),
        ("[weight]", "[weight", "closing bracket"),
        ("name=LM0 ", "name=Distortion0 ", "two features"),
        ("Distortion\n", "Distortion tuneable=off\n", "line 17: Distortion0 has tuneable=off; it must be true or"),
        ("path=lm", "tuneable-components=1,0 path=lm", "line 18: LM0 has 1 scores but 2 values in tuneable-components"),
        ("path=lm", "tuneable-components=1- path=lm", "LM0 has tuneable-components=1-; it must be 1 or 0"),
        ("lazyken=0", "lazyken", "not key=value"),
        ("[distortion-limit]\n4", "[distortion-limit]\nsix", "not an integer"),
        ("[distortion-limit]\n4", "[distortion-limit]\n99999999999999999999", "too large"),
        ("# made by hand\n", "hello\n", "before the first"),
    ],
)
def test_malformed_inis_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in MOSES
    path = _written(tmp_path, MOSES.replace(old, new))
    with pytest.raises(InputError, match=r"moses\.ini") as caught:
        MosesIni.read(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ["PhraseDictionaryMemory", "PhraseDictionaryCompact"])
def test_a_second_phrase_table_is_refused(tmp_path: Path, kind: str) -> None:
    feature = f"{kind} name=TranslationModel1 num-features=1 path=pt2.gz\n"
    text = MOSES.replace("Distortion\n", f"{feature}Distortion\n").replace("0 T 0\n", "0 T 0\n1 T 1\n")
    text = text.replace("[weight]\n", "[weight]\nTranslationModel1= 1\n")
    line = text.splitlines().index(feature.strip()) + 1
    with pytest.raises(InputError, match=rf"moses\.ini, line {line}: TranslationModel1 is a second phrase table"):
        MosesIni.read(_written(tmp_path, text))


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("[reordering-constraint]\n", r"line 2: \[reordering-constraint\] is not supported by this decoder"),
        ("[xml-input]\nconstraint\n", r"\[xml-input\] constraint is not supported .* or set it to pass-through"),
        ("[xml-input]\nexclusive\n", r"\[xml-input\] exclusive is not supported .* or set it to pass-through"),
        ("[monotone-at-punctuation]\n1\n", r"\[monotone-at-punctuation\] 1 is not supported"),
        ("[minimum-bayes-risk]\n1\n", r"\[minimum-bayes-risk\] 1"),
        ("[beam-threshold]\n0.1\n", r"\[beam-threshold\] 0.1"),
        ("[max-phrase-length]\n3\n", r"\[max-phrase-length\] 3"),
        ("[weight-overwrite]\nLM0= 1\n", r"\[weight-overwrite\] is not supported; write its weights into \[weight\]"),
        ("[stakc]\n100\n", r"\[stakc\] 100"),
        (
            "[mapping]\n0 T 0\n1 T 1\n",
            r"\[mapping\] 0 T 0, 1 T 1: this decoder supports only one decoding path with one phrase table; use 0 T 0$",
        ),
    ],
)
def test_sections_that_change_translations_are_refused_by_name(tmp_path: Path, section: str, said: str) -> None:
    text = MOSES.replace("[mapping]\n0 T 0\n", "") if "[mapping]" in section else MOSES
    ini = MosesIni.read(_written(tmp_path, "# mine\n" + section + text))
    with pytest.raises(InputError, match=rf"moses\.ini, line 2: {said.removeprefix('line 2: ')}"):
        ini.check_sections()


def test_a_reordering_table_may_be_named_without_its_suffix(tmp_path: Path) -> None:
    ini = MosesIni.read(_written(tmp_path, MOSES.replace("/abs/rt.gz", "rt").replace("tables/pt.gz", "pt")))
    table, reordering = ini.features[3:5]
    for directory in (tmp_path, tmp_path / "filtered"):
        directory.mkdir(exist_ok=True)
        for name in ("rt.gz", "pt.gz"):
            (directory / name).touch()
    assert ini.located(reordering) == ini.file_of(reordering) == tmp_path / "rt.gz"
    assert ini.located(reordering, tmp_path / "filtered") == tmp_path / "filtered" / "rt.gz"
    with pytest.raises(InputError, match="line 15: the file of TranslationModel0 is missing"):
        ini.located(table)
    (tmp_path / "rt").touch()
    assert ini.located(reordering) == tmp_path / "rt"


def test_scores_that_are_not_tuned(tmp_path: Path) -> None:
    assert MosesIni.read(_written(tmp_path)).fixed_scores() == {"UnknownWordPenalty0:0"}
    text = MOSES.replace("UnknownWordPenalty\n", "UnknownWordPenalty tuneable=Yes\n")
    text = text.replace("Distortion\n", "Distortion tuneable=n\n")
    text = text.replace("path=tables", "tuneable-components=true,0,1,no,1 path=tables")
    fixed = MosesIni.read(_written(tmp_path, text)).fixed_scores()
    assert fixed == {"Distortion0:0", "TranslationModel0:1", "TranslationModel0:3"}


def test_a_section_overwrites_options_of_features(tmp_path: Path) -> None:
    """Options are applied as if they stood in [feature], and are written there."""
    lines = "[feature-overwrite]\nLM0 path=other.arpa order=4\nTranslationModel0 table-limit=7\n"
    ini = MosesIni.read(_written(tmp_path, lines + MOSES))
    ini.check_sections()
    assert (ini.file_of(ini.features[-1]), ini.features[-1].options["order"]) == (tmp_path / "other.arpa", "4")
    assert ini.table_limit == 7
    with pytest.raises(InputError, match=r"moses\.ini, line 2: the file of LM0 is missing"):
        ini.located(ini.features[-1])
    assert not ini.is_same_model(MosesIni.read(_written(tmp_path, MOSES)))
    ini.write(tmp_path / "again.ini")
    assert "feature-overwrite" not in (tmp_path / "again.ini").read_text()
    assert MosesIni.read(tmp_path / "again.ini").is_same_model(ini)


def test_the_format_of_old_versions_of_moses(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \[feature\] section; convert it to the present format"):
        MosesIni.read(_written(tmp_path, "[ttable-file]\n0 0 0 5 phrase-table.gz\n[weight-t]\n0.2\n"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("LM1 path=x", "options for LM1, but there is no such feature; remove the line"),
        ("LM0", "cannot overwrite LM0; correct"),
        ("LM0 path", "cannot overwrite path; correct"),
        ("LM0 name=LM1", "cannot overwrite name=LM1; correct"),
        ("TranslationModel0 num-features=4", "cannot overwrite num-features=4; correct"),
    ],
)
def test_options_that_cannot_be_overwritten(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=rf"moses\.ini, line 2: {said}"):
        MosesIni.read(_written(tmp_path, f"[feature-overwrite]\n{line}\n{MOSES}"))


def test_sections_without_effect_are_accepted(tmp_path: Path) -> None:
    more = "[verbose]\n1\n[threads]\n4\n[search-algorithm]\n1\n[xml-input]\npass-through\n[inputtype]\n0\n"
    more += "[minimum-bayes-risk]\nfalse\n[drop-unknown]\n1\n[stack]\n100\n[cube-pruning-pop-limit]\n400\n"
    ini = MosesIni.read(_written(tmp_path, more + MOSES))
    ini.check_sections()
    assert (ini.number("stack"), ini.number("cube-pruning-pop-limit"), ini.number("no-such")) == (100, 400, None)


@pytest.mark.parametrize(("value", "on"), [("1", True), ("", True), ("True", True), ("0", False), ("false", False)])
def test_switches(tmp_path: Path, value: str, on: bool) -> None:
    ini = MosesIni.read(_written(tmp_path, f"[drop-unknown]\n{value}\n{MOSES}"))
    assert ini.is_on("drop-unknown") is on
    assert not ini.is_on("no-such")


@pytest.mark.parametrize(("section", "said"), [("[stack]\n0", "at least 1"), ("[stack]\nmany", "not an integer")])
def test_numbers_that_are_none(tmp_path: Path, section: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        MosesIni.read(_written(tmp_path, f"{section}\n{MOSES}")).number("stack")


def test_neither_on_nor_off(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1: \[drop-unknown\] maybe: must be 0 or 1"):
        MosesIni.read(_written(tmp_path, f"[drop-unknown]\nmaybe\n{MOSES}")).is_on("drop-unknown")


@pytest.mark.parametrize("limit", ["", "[distortion-limit]\n-1", "[distortion-limit]\n-5"])
def test_without_a_limit_every_jump_is_allowed(tmp_path: Path, limit: str) -> None:
    ini = MosesIni.read(_written(tmp_path, MOSES.replace("[distortion-limit]\n4", limit)))
    assert (ini.distortion_limit, ini.table_limit) == (NO_LIMIT, 30)


def test_an_empty_file_is_no_ini(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is this a"):
        MosesIni.read(_written(tmp_path, ""))


def test_stage_writes_moses_untuned_weights(tmp_path: Path) -> None:
    words = ["moses", "write-ini", "--model-dir", str(tmp_path), "--output", str(tmp_path / "moses.ini")]
    words += ["--phrase-table", "phrase-table.gz", "--reordering-table", "reordering.gz", "--num-features", "5"]
    assert main(words) == 0
    ini = MosesIni.read(tmp_path / "moses.ini")
    assert ini.weights["TranslationModel0"] == [0.2] * 5
    assert ini.weights["LexicalReordering0"] == [0.3] * 6
    assert [ini.weights[n] for n in ("Distortion0", "LM0", "WordPenalty0", "PhrasePenalty0")] == [
        [0.3], [0.5], [-1.0], [0.2],
    ]  # fmt: skip
    assert "path=lm.arpa.gz" in (tmp_path / "moses.ini").read_text()


def test_weights_of_further_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["moses", "write-ini", "--model-dir", str(tmp_path), "--output", str(tmp_path / "moses.ini")]
    words += ["--reordering-table", "none", "--num-features", "6", "--further-weights"]
    assert main([*words, "0.2", "-0.5"]) == 0
    ini = MosesIni.read(tmp_path / "moses.ini")
    assert ini.weights["TranslationModel0"] == [0.2, 0.2, 0.2, 0.2, 0.2, -0.5]
    assert main([*words, "0.2"]) == 2
    assert "2 scores after the fourth" in capsys.readouterr().err


def test_the_language_model_is_a_feature(tmp_path: Path) -> None:
    lm = ["--lm", "news.arpa", "--lm-order", "4"]
    words = [
        "moses",
        "write-ini",
        "--model-dir",
        str(tmp_path),
        "--phrase-table",
        "pt",
        "--reordering-table",
        "none",
        *lm,
    ]
    assert main([*words, "--output", str(tmp_path / "moses.ini")]) == 0
    ini = MosesIni.read(tmp_path / "moses.ini")
    found = [
        (feature.name, feature.options["path"], feature.options["order"]) for feature in ini.features if feature.is_lm
    ]
    assert found == [("LM0", "news.arpa", "4")]
    assert ini.weights["LM0"] == [0.5]


def test_networks_are_features(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["moses", "write-ini", "--model-dir", str(tmp_path), "--phrase-table", "pt", "--reordering-table", "none"]
    words += ["--output", str(tmp_path / "moses.ini")]
    cslm, nnjm = (
        "CSLM name=CSLM0 path=cslm.safetensors unknown=word",
        "NNJM name=NNJM0 path=nnjm.safetensors unknown=class",
    )
    for options, lines in (
        (["--network", "nnjm=nnjm.safetensors"], [nnjm]),
        (
            ["--network", "cslm=cslm.safetensors", "--network", "nnjm=nnjm.safetensors", "--unknown", "cslm=word"],
            [cslm, nnjm],
        ),
    ):
        assert main([*words, *options]) == 0
        ini = MosesIni.read(tmp_path / "moses.ini")
        assert [feature.line() for feature in ini.features if feature.network] == lines
        assert ini.weights["NNJM0"] == [0.25]
    for options, said in (
        (["--network", "cslmm=cslm.safetensors"], "--network cslmm: must be cslm, nnjm"),
        (
            ["--network", "cslm=cslm.safetensors", "--unknown", "nnjm=word"],
            "--unknown nnjm: requires --network nnjm=FILE",
        ),
    ):
        assert main([*words, *options]) == 2
        assert said in capsys.readouterr().err
    ini.features[-1].options["unknown"] = "none"
    with pytest.raises(InputError, match="NNJM0 has unknown=none; it must be class or word"):
        ini.unknown_score(ini.features[-1])


def test_distance_based_reordering_alone(tmp_path: Path) -> None:
    ini = default_ini(tmp_path, "pt", None, "lm", table_limit=50)
    ini.write(tmp_path / "moses.ini")
    again = MosesIni.read(tmp_path / "moses.ini")
    assert "LexicalReordering0" not in again.weights
    assert again.table_limit == 50
