"""Errors of the configuration are reported with a remedy."""

import json
import math
import re
from pathlib import Path

import pytest
import yaml
from snakemake.utils import update_config

from rnnsmt.config.languages import TWO_LETTERS, code_mistake, code_warning
from rnnsmt.config.sections import Languages
from rnnsmt.plan.corpora import Corpus, corpora_of
from rnnsmt.plan.derived import amount_kept
from rnnsmt.plan.validation import (
    ConfigurationError,
    checked_config,
    demo_values,
    plain_config,
    recorded_config,
    repeated_keys,
)
from rnnsmt.project.network_settings import setting_mistakes
from rnnsmt.registries import CORPUS_FORMATS, SYMMETRIZATIONS

ROOT = Path(__file__).resolve().parents[3]


def mistakes(config: dict) -> list[str]:
    """Return the mistakes of a configuration, including those of the settings of networks."""
    try:
        return list(setting_mistakes(checked_config(config)))
    except ConfigurationError as error:
        return error.lines


def test_the_reference_is_right(config):
    assert mistakes(config) == []


@pytest.mark.parametrize("name", ["multi30k", "multi30k-tok", "mini-wmt", "wmt14", "paper", "laws"])
def test_the_configs_are_right(config, name, tmp_path):
    for key, value in yaml.safe_load((ROOT / f"workflow/configs/{name}.yaml").read_text()).items():
        config[key] = config[key] | value if isinstance(value, dict) else value
    config["data_dir"] = str(tmp_path)
    assert mistakes(config) == []


def test_the_experiment_of_the_paper_has_the_paper_s_conditions():
    """The settings of paper.yaml are also in wmt14.yaml."""
    wmt14, paper = (yaml.safe_load((ROOT / f"workflow/configs/{name}.yaml").read_text()) for name in ("wmt14", "paper"))
    for section, values in paper.items():
        assert wmt14[section].items() >= values.items()
    assert paper["tuning"] | paper["search"] == {
        "optimizer": "mert", "nbest": 100, "restarts": 20, "pop_limit": 2000, "stack": 2000, "cslm_cells": 2000,
    }  # fmt: skip


def test_a_symmetrisation_of_another_package(config, other_package, documented):
    """It is a value like ours, but not one that Moses has."""
    config["alignment"]["symmetrization"] = "undisputed"
    assert "alignment.symmetrization: must be grow-diag-final-and, " in mistakes(config)[0]
    other_package(SYMMETRIZATIONS, "undisputed", "undisputed", documented("A symmetrisation"))
    assert mistakes(config) == []
    config |= {"engine": {"alignment": "moses"}, "moses_home": "/moses"}
    names = "grow-diag-final-and, grow-diag-final, grow-diag, intersection, union"
    assert mistakes(config) == [f"alignment.symmetrization: Moses has no undisputed; use one of {names}"]


def test_a_format_of_another_package(config, other_package, documented):
    """The command that separates the sides gets its name."""
    entry = config["corpora"][0]
    for side in ("source", "target"):
        del entry[side]
    entry |= {"file": "pairs.ljson", "format": "ljson"}
    names = ", ".join(CORPUS_FORMATS)
    assert mistakes(config)[0].startswith(f"corpora[0].format: must be {names}, or the name of a corpus format of ano")
    other_package(CORPUS_FORMATS, "ljson", "LanguageJson", documented("A corpus format"))
    checked = checked_config(config)
    (corpus, *_) = corpora_of(checked.corpora, checked.languages, None)
    assert corpus.separated.options() == "--format ljson"
    entry["members"] = {"source": "a", "target": "b"}
    assert "format and members cannot be combined" in mistakes(config)[0]
    del entry["members"], entry["file"]
    entry |= {"source": "a", "target": "b"}
    assert "format requires the key file" in mistakes(config)[0]


@pytest.mark.parametrize("words", [348, "348", 0.5])
def test_selection_by_words(config, words):
    config["selection"]["bitext"] = {"words": words}
    assert amount_kept(checked_config(config).selection.bitext) == f"--words {round(float(words) * 1e6)}"
    assert [amount_kept(amount) for amount in ("auto", 0.25)] == ["--fraction auto", "--fraction 0.25"]
    config["selection"]["bitext"] = {"words": -1}
    (line,) = mistakes(config)
    assert line.startswith("selection.bitext.words: must be greater than 0, not -1")


def spoil(config, change):
    change(config)
    return mistakes(config)


MISTAKES = {
    "a misspelt key": (lambda c: c["tuning"].update(run=3), ["tuning: unknown key run; did you mean runs?"]),
    "an unknown key": (lambda c: c.update(zzz=3), ["unknown key zzz; available: languages, "]),
    "keys in another place": (
        lambda c: c.update(threads=3, stack=3),
        [
            "unknown key threads; use the option --cores of snakemake",
            "unknown key stack; did you mean search.stack?",
        ],
    ),
    "a list of languages": (
        lambda c: c.update(languages=["en", "de"]),
        ["languages: must be a map (key: value), not ['en', 'de']; for example, --config 'languages={source: ...}'"],
    ),
    "a number for a section": (
        lambda c: c.update(tuning=1),
        ["tuning: must be a map (key: value), not 1; for example, --config 'tuning={runs: ...}'"],
    ),
    "an address that is none": (
        lambda c: c["corpora"][0].update(download={"source": {"url": "http://[", "sha256": "0" * 64}}),
        ["corpora[0].download.source.url: must be a URL, not 'http://['"],
    ),
    "a word for a number": (
        lambda c: c["tuning"].update(runs="three"),
        ["tuning.runs: must be an integer, not 'three'"],
    ),
    "no runs": (lambda c: c["tuning"].update(runs=0), ["tuning.runs: must be at least 1, not 0"]),
    "n-best lists of one": (
        lambda c: c["tuning"].update(nbest=1),
        ["tuning.nbest: must be auto, or at least 2, not 1"],
    ),
    "mostly for validation": (
        lambda c: c["cslm"]["settings"].update(held_out=0.2),
        ["cslm.settings.held_out: must be at most 0.1, not 0.2"],
    ),
    "an unknown preset": (
        lambda c: c["nnjm"].update(preset="papr"),
        ["nnjm.preset: must be auto, or demo, small or paper, not 'papr'"],
    ),
    "an unknown setting": (
        lambda c: c["nnjm"]["settings"].update(windows=3),
        ["nnjm.settings: unknown key windows; did you mean window?"],
    ),
    "a wrong choice": (
        lambda c: c["alignment"].update(symmetrization="grow-diag-final-an"),
        ["alignment.symmetrization: must be grow-diag-final-and, "],
    ),
    "a wrong fraction": (
        lambda c: c["selection"].update(bitext=1.5),
        ["selection.bitext: must be auto or at most 1 or a map (key: value), not 1.5"],
    ),
    "a wrong keep": (
        lambda c: c["corpora"][1].update(keep="some"),
        ["corpora[1].keep: must be all or a number, not 'some'"],
    ),
    "a missing name": (lambda c: c["corpora"][0].pop("name"), ["corpora[0].name missing"]),
    "a name with a slash": (lambda c: c["corpora"][0].update(name="a/b"), ["corpora[0].name: must match "]),
    "two of a name": (lambda c: c["corpora"][0].update(name="general"), ["corpora: 2 corpora are named general"]),
    "a missing side": (lambda c: c["corpora"][0].pop("source"), ["corpora[0] (harbour): source is missing"]),
    "neither sides nor a file": (
        lambda c: (c["corpora"][0].pop("source"), c["corpora"][0].pop("target")),
        ["corpora[0] (harbour): target is missing; specify source and target, or file (one file with both)"],
    ),
    "a file and its sides": (
        lambda c: c["corpora"][0].update(file="a.tmx", columns=[2, 2]),
        [
            "corpora[0] (harbour): file cannot be combined with source and target; remove one of them",
            "corpora[0] (harbour): columns: source and target are the same column",
        ],
    ),
    "both sides of monolingual text": (
        lambda c: c["corpora"].__setitem__(2, {"name": "gazette", "role": "mono", "file": "a.tsv"}),
        ["corpora[2] (gazette): file is not allowed for role mono; use target"],
    ),
    "a download of the sides of a file": (
        lambda c: c["corpora"].__setitem__(
            0,
            {
                "name": "harbour",
                "role": "bitext",
                "file": "a.zip",
                "download": {"target": {"url": "http://a/b", "sha256": None}},
            },
        ),
        ["corpora[0] (harbour): download.target requires target; with file, use download: {file: ...}"],
    ),
    "a member of one side": (
        lambda c: c["corpora"].__setitem__(
            0, {"name": "harbour", "role": "bitext", "file": "a.zip", "members": {"source": "a"}}
        ),
        ["corpora[0].members.target missing"],
    ),
    "a side too many": (
        lambda c: c["corpora"][2].update(source="x"),
        ["corpora[2] (gazette): source is not allowed for role mono"],
    ),
    "keep on dev": (
        lambda c: c["corpora"][3].update(keep="all"),
        ["corpora[3] (harbour-dev): keep is allowed for training"],
    ),
    "no test set": (lambda c: c["corpora"].pop(), ["corpora: at least one corpus of role test is required"]),
    "a test set called dev": (lambda c: c["corpora"][4].update(name="dev"), ["corpora: the name dev is reserved"]),
    "an unknown system": (
        lambda c: c.update(compare=["baselin"]),
        ["compare: no system baselin; did you mean baseline?"],
    ),
    "systems as in the table": (
        lambda c: c.update(compare=["RNN", "CSLM + RNN"]),
        ["compare: no system RNN; did you mean rnn?", "compare: no system CSLM + RNN; did you mean cslm_rnn?"],
    ),
    "nothing in-domain to select by": (
        lambda c: c["corpora"][3].update(in_domain=False),
        ["selection.bitext: no corpus with both sides", "selection.mono: no corpus with a target side"],
    ),
    "nothing in-domain of the source language": (
        lambda c: (c["corpora"][3].update(in_domain=False), c["corpora"][2].update(in_domain=True)),
        ["selection.bitext: no corpus with both sides is in-domain"],
    ),
    "thresholds that fall": (
        lambda c: c["lm"].update(prune=[0, 1, 0]),
        ["lm.prune: thresholds must not decrease"],
    ),
    "more thresholds than orders": (
        lambda c: c["lm"].update(prune=[0, 0, 1, 1], order=3),
        ["lm.prune: 4 thresholds for a model of order 3; specify at most one for each order"],
    ),
    "a threshold below 0": (lambda c: c["lm"].update(prune=[-1]), ["lm.prune[0]: must be at least 0, not -1"]),
    "held-out lines that cannot be": (
        lambda c: (
            c["corpora"].__setitem__(
                4, {"name": "test", "role": "test", "held_out": {"corpus": "harbor", "lines": [3]}, "source": "x"}
            ),
            c["corpora"].__setitem__(
                2, {"name": "more", "role": "bitext", "held_out": {"corpus": "harbour", "lines": [2, 5, 2]}}
            ),
        ),
        [
            "corpora[2] (more): held_out is allowed for roles dev and test only",
            "corpora[4] (test): held_out.corpus: no corpus harbor of role bitext; did you mean harbour?",
            "corpora[4] (test): held_out cannot be combined with source",
            "corpora: line 2 of harbour is held out 2 times",
        ],
    ),
    "the paper's figures beside another language": (
        lambda c: (c["evaluation"].update(paper=True), c["languages"].update(target="de")),
        ["evaluation.paper: the published results are for en and fr, not en and de"],
    ),
    "a joint of nothing": (
        lambda c: c["evaluation"]["joint"].update(all=["harbour-test", "other"]),
        ["evaluation.joint.all: other is not a test corpus; available: harbour-test"],
    ),
    "a joint of one": (
        lambda c: c["evaluation"]["joint"].update(all=["harbour-test", "harbour-test"]),
        ["evaluation.joint.all: two or more different test sets are required"],
    ),
    "a name that says something else": (
        lambda c: c["systems"].update(rnn={"features": ["wp"]}, baseline={"features": ["rnn", "cslm"]}),
        [
            "systems.baseline: has the features rnn and cslm, which contradict its name",
            "systems.rnn: has the features wp, which contradict",
            "systems.baseline+cslm: the search of baseline already uses cslm; rescore another system",
        ],
    ),
    "an unknown feature": (
        lambda c: c["systems"].update(mine={"features": ["rnn", "csl"]}),
        ["systems.mine: no feature csl; did you mean cslm?"],
    ),
    "a name that lacks the joint model": (
        lambda c: c["systems"].update(cslm_nnjm={"features": ["cslm"]}),
        ["systems.cslm_nnjm: has the features cslm, which contradict its name"],
    ),
    "trainings that cannot take turns": (
        lambda c: (c["networks"].update(seeds=2), c["tuning"].update(runs=3)),
        ["networks.seeds: 2, but tuning.runs is 3; tuning.runs must be a multiple of networks.seeds"],
    ),
    "no number": (
        lambda c: c["rnn"]["settings"].update(clip=math.inf, learning_rate=math.nan),
        ["rnn.settings.learning_rate: must be a finite number", "rnn.settings.clip: must be a finite number"],
    ),
    "a missing directory": (lambda c: c.update(data_dir="/not/there"), ["data_dir: /not/there is not a directory"]),
    "a test set to select by": (
        lambda c: c["corpora"][4].update(in_domain=True),
        ["corpora[4] (harbour-test): in_domain is not allowed for role test"],
    ),
    "a code of three letters": (
        lambda c: c["languages"].update(source="eng", target="zz"),
        ["languages.source: eng is a three-letter code; did you mean en (ISO 639-1)?"],
    ),
    "a wrong size of the vocabulary": (
        lambda c: c["rnn"].update(vocab_size="large"),
        ["rnn.vocab_size: must be auto, or an integer, not 'large'"],
    ),
    "the dev set as test text": (
        lambda c: c["corpora"][4].update(source="./results/demo/dev.en"),
        ["corpora[4] (harbour-test): its source text is also that of harbour-dev (dev), ./results/demo/dev.en"],
    ),
    "the test text for the language model": (
        lambda c: c["corpora"][2].update(target=c["corpora"][4]["target"]),
        ["corpora[4] (harbour-test): its target text is also that of gazette (mono), results/demo/test.fr"],
    ),
    "one side twice": (
        lambda c: c["corpora"][0].update(source=c["corpora"][0]["target"]),
        ["corpora[0] (harbour): source and target are the same text, results/demo/in-domain.fr.gz"],
    ),
    "an unknown network": (
        lambda c: c["systems"].update({"lstm_deep": {"network": "lstm_dep"}}),
        ["systems.lstm_deep: no network lstm_dep in seq2seq.networks; did you mean lstm?"],
    ),
    "features and a network": (
        lambda c: c["systems"].update({"both": {"features": ["rnn"], "network": "lstm"}}),
        ["systems.both: requires either features, or a network of seq2seq.networks"],
    ),
    "nothing of both": (
        lambda c: c["systems"].update({"none": {"ensemble": 2}}),
        ["systems.none: requires either features, or a network of seq2seq.networks"],
    ),
    "rescored LSTMs": (
        lambda c: c["systems"].update({"lstm+lstm": {"network": "lstm", "rescores": "lstm"}}),
        ["systems.lstm+lstm: rescores lstm, which is not a phrase-based system; available: baseline, rnn, cslm, "],
    ),
    "another rescored system": (
        lambda c: c["systems"]["baseline+lstm"].update(rescores="rnn"),
        ["systems.baseline+lstm: rescores rnn, which contradicts its name; rename it to rnn+lstm"],
    ),
    "a CSLM that translates alone": (
        lambda c: c["systems"].update({"alone": {"network": "cslm"}}),
        ["systems.alone: cslm cannot translate without a phrase-based system; add rescores, or use features: [cslm]"],
    ),
    "rescoring with a CSLM without tuned weights": (
        lambda c: c["systems"]["baseline+cslm"].update(weight="even"),
        ["systems.baseline+cslm: rescoring with cslm requires weight: tuned and no ensemble"],
    ),
    "rescoring with the CSLM of the search": (
        lambda c: c["systems"].update({"cslm+cslm": {"rescores": "cslm", "network": "cslm", "weight": "tuned"}}),
        ["systems.cslm+cslm: the search of cslm already uses cslm; rescore another system"],
    ),
    "rescoring with a joint model": (
        lambda c: c["systems"].update({"rnn+nnjm": {"rescores": "rnn", "network": "nnjm", "weight": "tuned"}}),
        ["systems.rnn+nnjm: no network nnjm in seq2seq.networks; available: lstm, lstm_forward"],
    ),
    "a weight of nothing": (
        lambda c: c["systems"]["lstm"].update(weight="tuned"),
        ["systems.lstm: weight is only for systems with rescores; add rescores or remove weight"],
    ),
    "features called LSTM": (
        lambda c: c["systems"].update({"lstm_rnn": {"features": ["rnn"]}}),
        ["systems.lstm_rnn: names with + or lstm are reserved for systems with LSTMs; choose another name"],
    ),
    "LSTMs called RNN": (
        lambda c: c["systems"].update({"rnn": {"network": "lstm"}}),
        [
            "systems.rnn: the name suggests a phrase-based system, but the system has only LSTMs; choose another name",
        ],
    ),
    "an unknown system of Table 2": (
        lambda c: c["seq2seq"]["compare"].append("lstn"),
        ["seq2seq.compare: no system lstn; did you mean lstm?"],
    ),
    "an unknown setting of an LSTM": (
        lambda c: c["seq2seq"]["networks"].update(lstm_x={"hiden": 3}),
        ["seq2seq.networks.lstm_x: unknown key hiden; did you mean hidden?"],
    ),
    "a language with a region": (
        lambda c: c["languages"].update(source="pt_BR", target="English"),
        [
            "languages.source: pt_BR is not a two-letter code; write pt (ISO 639-1, without script and region)",
            "languages.target: English is not a language code; use two letters, for example fr (ISO 639-1)",
        ],
    ),
    "one language": (lambda c: c["languages"].update(target="en"), ["languages: source and target are the same"]),
    "two mistakes": (
        lambda c: (c["lm"].update(order=1), c["search"].update(stack=0)),
        [
            "lm.order: must be at least 2, not 1",
            "search.stack: must be auto, or at least 1, not 0",
        ],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(config, mistake):
    change, expected = MISTAKES[mistake]
    lines = spoil(config, change)
    assert len(lines) == len(expected)
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start)


def test_codes_of_languages():
    assert all(
        re.fullmatch("[a-z]{3}", long) and re.fullmatch("[a-z]{2}", short) for long, short in TWO_LETTERS.items()
    )
    assert (TWO_LETTERS["fra"], TWO_LETTERS["fre"], TWO_LETTERS["deu"], TWO_LETTERS["zho"]) == ("fr", "fr", "de", "zh")
    assert [code_mistake(lang) for lang in ("en", "zz", "yue", "tdt")] == [None] * 4
    for lang in ("eng", "English", "e", "e1", "é", "", "engl", "fr-en"):
        assert code_mistake(lang)
    for lang, language in (("pt_BR", "pt"), ("zh-Hant", "zh"), ("zh_cn", "zh"), ("en-GB", "en"), ("sr-Latn-RS", "sr")):
        assert code_mistake(lang) == (
            f"{lang} is not a two-letter code; write {language} (ISO 639-1, without script and region)"
        )
    assert [code_warning(lang) for lang in ("en", "zu", "yue", "tdt")] == [None] * 4
    for lang in ("xx", "iw"):
        assert code_warning(lang) == (f"{lang} is not a two-letter code of ISO 639-1; correct it unless it is intended")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"engine": "moses", "moses_home": None}, "moses_home: not set; "),
        (
            {"engine": "moses", "compare": ["cslm", "cslm_nnjm"]},
            " the CSLM of cslm, cslm_nnjm; ",
        ),
        (
            {"engine": {"decoding": "moses"}, "compare": ["nnjm"]},
            " the NNJM of nnjm; ",
        ),
        ({"engine": "moses", "alignment": {"aligners": ["hmm"]}}, "alignment.aligners: Moses has no aligner hmm; use "),
        ({"engine": "moses", "text": {"escape": False}}, "text.escape: Moses "),
        ({"engine": "moses", "text": {"max_length": 120}}, "text.max_length: "),
        ({"engine": "real"}, "engine: must be rnnsmt or moses or a map (key: value), "),
        ({"engine": {"tuning": "moses", "search": "moses"}}, "available: alignment, training, tuning, decoding"),
    ],
)
def test_what_moses_cannot_do(config, settings, said):
    update_config(config, {"moses_home": "/moses", "compare": ["baseline", "rnn"]} | settings)
    assert [line for line in mistakes(config) if said in line]


def test_null_removes_a_key_of_a_merged_configuration(config):
    """Snakemake merges maps: a system of another kind keeps the keys of config.yaml unless they are null."""
    update_config(config, {"systems": {"lstm": {"ensemble": None, "beam": None}, "mine": {"features": None}}})
    assert mistakes(config) == ["systems.mine: requires either features, or a network of seq2seq.networks"]
    config["systems"]["mine"].update(network="lstm", weight=None)
    assert mistakes(config) == []


def test_norwegian_is_false_in_yaml(config):
    config["languages"] = yaml.safe_load("{source: no, target: en}")
    assert checked_config(config).languages == Languages(source="no", target="en")


def test_in_domain_text_is_needed_for_selection_only(config):
    config["corpora"][3]["in_domain"] = False
    config["selection"].update(bitext=1, mono=1)
    assert mistakes(config) == []


def corpora(config: dict) -> dict[str, Corpus]:
    """Return the corpora of a configuration by name."""
    model = checked_config(config)
    return {corpus.name: corpus for corpus in corpora_of(model.corpora, model.languages, model.data_dir)}


def test_paths_lie_under_data_dir(config, tmp_path):
    config["data_dir"] = str(tmp_path)
    assert corpora(config)["general"].target == f"{tmp_path}/results/demo/general.fr.gz"


def test_keys_that_stand_twice(tmp_path):
    """The parser of YAML takes the last of two equal keys, so that the first one would be ignored silently."""
    path = tmp_path / "config.yaml"
    path.write_text("compare: [baseline]\ncorpora:\n  - {name: a, name: b}\ntuning:\n  runs: 2\ncompare: [rnn]\n")
    found = {tuple(map(int, re.findall(r"line (\d+)", line))): line for line in repeated_keys(str(path))}
    assert set(found) == {(6, 1), (3, 3)}
    assert f"{path}, line 6: compare " in found[6, 1]
    path.write_text("a: &x {b: 1}\nc: {<<: *x, b: 2}\n")
    assert list(repeated_keys(str(path))) == [], "a key that overrides a merged one is meant"
    path.write_text("a: [\n")
    assert list(repeated_keys(str(path))) == []


def test_text_that_is_no_yaml_and_whole_numbers(config):
    """Values of --config that are not valid YAML remain text; whole numbers become integers."""
    config["corpora"][0].update(source="*.en", target="[x.fr")
    config["tuning"].update(runs="3.0", nbest=100.0)
    resolved = checked_config(config)
    assert resolved.corpora[0].source == "*.en"
    assert (resolved.tuning.runs, resolved.tuning.nbest) == (3, 100)
    assert all(isinstance(value, int) for value in (resolved.tuning.runs, resolved.tuning.nbest))


def test_the_name_of_a_download_is_not_its_query(config):
    address = "https://example.org/records/1/train.en.gz?download=1&token=a/b"
    config["corpora"][0]["download"] = {"source": {"url": address, "sha256": None}}
    assert corpora(config)["harbour"].source.endswith("/train.en.gz")


def test_what_data_dir_lacks_is_downloaded(config, tmp_path):
    config["corpora"][0]["download"] = {"source": {"url": "https://example.org/a/b.gz", "sha256": None}}
    fetched = corpora(config)["harbour"]
    assert re.fullmatch("results/downloads/[0-9a-f]{10}/b.gz", fetched.source)
    assert fetched.target == "results/demo/in-domain.fr.gz"
    assert fetched.downloads[fetched.source].url == "https://example.org/a/b.gz"
    config["data_dir"] = str(tmp_path)
    found = corpora(config)["harbour"]
    assert (found.source, found.target) == (fetched.source, f"{tmp_path}/results/demo/in-domain.fr.gz")
    (tmp_path / "results" / "demo").mkdir(parents=True)
    (tmp_path / config["corpora"][0]["source"]).touch()
    assert corpora(config)["harbour"].downloads == {}


def test_files_of_a_fetched_archive(config):
    entry = {"url": "https://example.org/a/b.tgz", "sha256": None, "member": "training/c.en"}
    config["corpora"][0]["download"] = {"source": entry, "target": entry | {"member": "training/c.fr"}}
    corpus = corpora(config)["harbour"]
    assert corpus.source.startswith("results/unpacked/")
    assert (corpus.source.rsplit("/", 1)[1], corpus.target.rsplit("/", 1)[1]) == ("c.en", "c.fr")
    (archive,) = corpus.downloads
    assert re.fullmatch("results/downloads/[0-9a-f]{10}/b.tgz", archive)
    assert corpus.members[corpus.target] == (archive, "training/c.fr")


def test_files_of_one_name_from_two_places(config):
    """Downloads and archive members with the same file name are stored in different files."""
    one, two = ({"url": f"https://example.org/{directory}/train.gz", "sha256": None} for directory in ("d1", "d2"))
    config["corpora"][0]["download"] = {"source": one, "target": two}
    archive = {"url": "https://example.org/b.tgz", "sha256": None}
    config["corpora"][1]["download"] = {
        "source": archive | {"member": "en/text.txt"},
        "target": archive | {"member": "fr/text.txt"},
    }
    found = corpora(config)
    assert found["harbour"].source != found["harbour"].target
    assert len(found["harbour"].downloads) == 2
    assert found["general"].source != found["general"].target
    assert (len(found["general"].downloads), len(found["general"].members)) == (1, 2)


def test_in_domain_is_the_dev_text_unless_said(config):
    assert [name for name, corpus in corpora(config).items() if corpus.in_domain] == ["harbour-dev"]
    config["corpora"][0]["in_domain"] = True
    assert [name for name, corpus in corpora(config).items() if corpus.in_domain] == ["harbour", "harbour-dev"]


@pytest.fixture
def directory(config, tmp_path, monkeypatch) -> Path:
    """Return the working directory, with different files under the names of the demo corpus."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results/demo").mkdir(parents=True)
    for entry in config["corpora"]:
        for side in ("source", "target"):
            if side in entry:
                Path(entry[side]).write_text(f"{entry['name']} {side}\n")
    assert mistakes(config) == []
    return tmp_path / "results/demo"


def test_the_same_text_under_two_names(config, directory):
    (directory / "test.fr").unlink()
    (directory / "test.fr").symlink_to("dev.fr")
    (line,) = mistakes(config)
    assert line.startswith("corpora[4] (harbour-test): its target text is also that of harbour-dev (dev), ")
    (directory / "test.fr").unlink()
    (directory / "test.fr").write_bytes((directory / "dev.fr").read_bytes())
    assert mistakes(config) == []  # texts are not read


def test_test_sets_may_share_a_side(config, directory):
    """Two test sets may have the same source text with different references."""
    config["corpora"].append(config["corpora"][4] | {"name": "other", "target": "results/demo/other.fr"})
    (directory / "other.fr").write_text("another reference\n")
    assert mistakes(config) == []


def test_settings_for_the_demo_corpus(config):
    resolved = checked_config(config)
    for section, key, of_demo in demo_values():
        assert getattr(getattr(resolved, section), key) == of_demo
    assert checked_config(plain_config(resolved)) == resolved


def test_settings_for_other_corpora(config):
    """Settings that are not ``auto`` keep their values."""
    config["corpora"][0].update(source="mine.en", target="mine.fr")
    config["cslm"]["preset"] = "paper"
    config["search"]["stack"] = 7
    resolved = checked_config(config)
    assert (resolved.cslm.preset, resolved.search.stack) == ("paper", 7)
    assert (resolved.tuning.nbest, resolved.search.pop_limit) == (100, 1000)


def test_a_recorded_configuration(config):
    """What the provenance records is without null in corpora and systems, and can be read where the files are not."""
    config["corpora"][0]["download"] = {"source": {"url": "https://example.org/a/b.gz", "sha256": None}}
    resolved = checked_config(config)
    plain = plain_config(resolved)
    assert plain["corpora"][0]["download"] == {"source": {"url": "https://example.org/a/b.gz", "mirrors": []}}
    assert plain["systems"]["baseline"] == {"features": []}
    assert recorded_config(json.loads(json.dumps(plain | {"data_dir": "/moved"}))).corpora == resolved.corpora
    with pytest.raises(ConfigurationError, match="engine"):
        recorded_config(plain | {"engine": "mosse"})
