"""Checks of a configuration across its sections: contradictory settings, names that do not exist, files."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rnnsmt.base.errors import InputError
from rnnsmt.base.options import pruning_mistake
from rnnsmt.config.corpus_entry import CorpusEntry
from rnnsmt.config.features import CSLM, named_features
from rnnsmt.config.languages import code_mistake
from rnnsmt.config.sections import Config, NumberOfWords, SystemEntry
from rnnsmt.plan.corpora import corpora_of, file_mistakes, is_address, is_in_domain
from rnnsmt.plan.derived import (
    MOSES_ALIGNERS,
    MOSES_OPTIMIZERS,
    MOSES_SYMMETRIZATIONS,
    features_of,
    kept_whole,
    moses_searches,
    parts_of_moses,
)
from rnnsmt.plan.messages import hint
from rnnsmt.registries import FEATURES, NETWORKS, SEARCH_FEATURES

FILE_KEYS = ("source", "target", "file", "format", "columns", "members", "reference", "download")
"""Keys of an entry of ``corpora`` that describe its files."""


def cross_checks(config: Config) -> Iterator[str]:
    """Yield a line for every contradiction between settings of a configuration with valid values."""
    yield from _check_corpora(config.corpora)
    yield from (held_out_mistakes := list(_check_held_out(config.corpora)))
    yield from _check_selection(config)
    yield from _check_evaluation(config)
    seeds, runs = config.networks.seeds, config.tuning.runs
    if runs % seeds:
        yield f"networks.seeds: {seeds}, but tuning.runs is {runs}; tuning.runs must be a multiple of networks.seeds"
    yield from _check_systems(config)
    yield from _check_engine(config)
    if wrong := pruning_mistake(config.lm.prune, config.lm.order):
        yield f"lm.prune: {wrong}"
    for side, code in vars(config.languages).items():
        if wrong := code_mistake(code):
            yield f"languages.{side}: {wrong}"
    if config.languages.source == config.languages.target:
        yield "languages: source and target are the same"
    directory = config.data_dir
    if directory is not None and not is_address(directory) and not Path(directory).is_dir():
        yield f"data_dir: {directory} is not a directory (the base of relative paths is {Path.cwd()})"
    elif not held_out_mistakes:
        yield from file_mistakes(corpora_of(config.corpora, config.languages, directory))


def _check_engine(config: Config) -> Iterator[str]:
    """Check that Moses supports the parts that ``engine`` assigns to it."""
    parts = parts_of_moses(config)
    if parts and config.moses_home is None:
        yield "moses_home: not set; engine: moses requires the directory of a Moses installation (docs/moses.md)"
    if "alignment" in parts and "model4" in config.alignment.aligners and config.text.max_length > 100:
        yield "text.max_length: MGIZA and GIZA++ truncate sentences of more than 100 words; set it to 100 or less"
    if {"training", "tuning", "decoding"} & set(parts) and not config.text.escape:
        yield "text.escape: Moses interprets | as the factor separator; set it to true"
    if "tuning" in parts and config.tuning.optimizer not in MOSES_OPTIMIZERS:
        yield f"tuning.optimizer: Moses has no {config.tuning.optimizer}; use {' or '.join(MOSES_OPTIMIZERS)}"
    for name in config.alignment.aligners if "alignment" in parts else ():
        if name not in MOSES_ALIGNERS:
            yield f"alignment.aligners: Moses has no aligner {name}; use model4 (MGIZA or GIZA++) or fast_align"
    if "alignment" in parts and config.alignment.symmetrization not in MOSES_SYMMETRIZATIONS:
        names = ", ".join(MOSES_SYMMETRIZATIONS)
        yield f"alignment.symmetrization: Moses has no {config.alignment.symmetrization}; use one of {names}"
    used = (feature for name in config.compare for feature in features_of(config, name))
    for feature in dict.fromkeys([*SEARCH_FEATURES, *(feature for feature in used if feature in SEARCH_FEATURES)]):
        refused = [name for name in config.compare if feature in features_of(config, name)]
        if refused and moses_searches(config):
            rescore = ", or rescore n-best lists of Moses (docs/moses.md)" if feature == CSLM else ""
            yield (
                f"engine: Moses does not support the {SEARCH_FEATURES[feature].label} of {', '.join(refused)}; use "
                f"rnnsmt for tuning and decoding, or remove these systems from compare{rescore}"
            )


def _check_systems(config: Config) -> Iterator[str]:
    """Check the names of systems, their components, and the systems that are compared."""
    for name, system in config.systems.items():
        if system == SystemEntry(features=system.features) and system.features is not None:
            yield from _check_features(name, system.features)
        else:
            yield from _check_lstms(config, name, system)
    for key, listed in (("compare", config.compare), ("seq2seq.compare", config.seq2seq.compare)):
        for name in listed:
            if name not in config.systems:
                yield f"{key}: no system {name}; {hint(name, config.systems)}"


def _check_features(name: str, added: list[str]) -> Iterator[str]:
    """Check a phrase-based system: its features exist and do not contradict its name."""
    for feature in added:
        if feature not in FEATURES:
            yield f"systems.{name}: no feature {feature}; {hint(feature, list(FEATURES))}"
            continue
        if not re.fullmatch("[a-z][a-z0-9]*", feature):
            yield f"systems.{name}: the name of the feature {feature} must consist of lower-case letters and digits"
        try:
            if network := FEATURES[feature].network:
                NETWORKS[network]
        except InputError as error:
            yield f"systems.{name}: {error}"
    features = set(added)
    named = named_features(name)
    if named is not None and set(named) != features:
        adds = " and ".join(added) or "nothing"
        yield f"systems.{name}: has the features {adds}, which contradict its name; choose another name"
    if "+" in name or name.startswith("lstm"):
        yield f"systems.{name}: names with + or lstm are reserved for systems with LSTMs; choose another name"


def _check_lstms(config: Config, name: str, system: SystemEntry) -> Iterator[str]:
    """Check a system of LSTMs: its network exists, and the system that it rescores has n-best lists."""
    if system.features is not None or system.network is None:
        yield f"systems.{name}: requires either features, or a network of seq2seq.networks"
        return
    networks, network = config.seq2seq.networks, system.network
    if network == CSLM:
        yield from _check_cslm_on_lists(config, name, system)
    elif network not in networks:
        yield f"systems.{name}: no network {network} in seq2seq.networks; {hint(network, networks)}"
    other = system.rescores
    if other is None:
        if system.weight is not None:
            yield f"systems.{name}: weight is only for systems with rescores; add rescores or remove weight"
        if named_features(name) is not None or "+" in name:
            yield (
                f"systems.{name}: the name suggests a phrase-based system, but the system has only LSTMs; choose "
                "another name"
            )
    elif system.beam is not None:
        yield f"systems.{name}: beam cannot be combined with rescores; remove it"
    elif other not in (phrase_based := [name for name, one in config.systems.items() if one.features is not None]):
        yield f"systems.{name}: rescores {other}, which is not a phrase-based system; {hint(other, phrase_based)}"
    elif not name.startswith(f"{other}+") or name.endswith("+"):
        yield f"systems.{name}: rescores {other}, which contradicts its name; rename it to {other}+{network}"


def _check_cslm_on_lists(config: Config, name: str, system: SystemEntry) -> Iterator[str]:
    """Check a system that rescores n-best lists with the CSLM: tuned weights, and no CSLM in the search."""
    if system.rescores is None:
        yield (
            f"systems.{name}: cslm cannot translate without a phrase-based system; add rescores, or use "
            "features: [cslm]"
        )
        return
    if system.weight != "tuned" or system.ensemble is not None:
        yield f"systems.{name}: rescoring with cslm requires weight: tuned and no ensemble"
    if CSLM in features_of(config, name):
        yield f"systems.{name}: the search of {system.rescores} already uses cslm; rescore another system"


def _check_corpora(entries: Sequence[CorpusEntry]) -> Iterator[str]:
    roles = Counter(entry.role for entry in entries)
    for name, times in Counter(entry.name for entry in entries).items():
        if times > 1:
            yield f"corpora: {times} corpora are named {name}; names must be unique"
    for number, entry in enumerate(entries):
        where = f"corpora[{number}] ({entry.name})"
        role = entry.role
        if entry.file is not None:
            yield from _check_both_sides(where, entry)
        elif entry.held_out is not None:
            pass
        elif entry.target is None:
            yield f"{where}: target is missing; specify source and target, or file (one file with both)"
        elif role != "mono" and entry.source is None:
            yield f"{where}: source is missing, which is required for role {role}"
        if role == "mono" and entry.source is not None:
            yield f"{where}: source is not allowed for role mono; remove it"
        yield from _check_keys_of_role(where, entry)
        if role == "test" and entry.in_domain:
            yield (
                f"{where}: in_domain is not allowed for role test, because training text must not be selected by "
                "its similarity to test text; remove it"
            )
        if role == "test" and entry.name == "dev":
            yield (
                "corpora: the name dev is reserved for the concatenated dev set; choose another name for the test "
                "corpus"
            )
    for role in ("bitext", "dev", "test"):
        if not roles[role]:
            yield f"corpora: at least one corpus of role {role} is required"


def _check_held_out(entries: Sequence[CorpusEntry]) -> Iterator[str]:
    """Check sets that are lines of training text: they must not have files, or contain the same line."""
    training = [entry.name for entry in entries if entry.role == "bitext"]
    seen: Counter[tuple[str, int]] = Counter()
    for number, entry in enumerate(entries):
        if entry.held_out is None:
            continue
        where, name = f"corpora[{number}] ({entry.name})", entry.held_out.corpus
        if entry.role not in ("dev", "test"):
            yield f"{where}: held_out is allowed for roles dev and test only; remove it from a corpus of role bitext"
        if name not in training:
            yield f"{where}: held_out.corpus: no corpus {name} of role bitext; {hint(name, training)}"
        if own := [key for key in FILE_KEYS if getattr(entry, key) is not None]:
            yield f"{where}: held_out cannot be combined with {' and '.join(own)}; the files are those of {name}"
        seen.update((name, line) for line in entry.held_out.lines)
    for (name, line), times in seen.items():
        if times > 1:
            yield f"corpora: line {line} of {name} is held out {times} times; remove it from held_out.lines"


def _check_keys_of_role(where: str, entry: CorpusEntry) -> Iterator[str]:
    """Check the keys of an entry of ``corpora`` that are allowed for some roles only."""
    role = entry.role
    if role in ("dev", "test") and entry.keep is not None:
        yield f"{where}: keep is allowed for training text only; remove it from a corpus of role {role}"
    if role not in ("dev", "test") and entry.reference is not None:
        yield f"{where}: reference is allowed for roles dev and test only; remove it from a corpus of role {role}"
    if entry.format is not None and entry.file is None and entry.held_out is None:
        yield f"{where}: format requires the key file, with a file with both sides"
    if entry.download and entry.download.reference and entry.reference is None:
        yield f"{where}: download.reference requires the key reference with the file name"


def _check_both_sides(where: str, entry: CorpusEntry) -> Iterator[str]:
    """Check an entry of ``corpora`` whose ``file`` contains both sides."""
    if entry.role == "mono":
        yield f"{where}: file is not allowed for role mono; use target"
    if sides := [side for side in ("source", "target") if getattr(entry, side) is not None]:
        yield f"{where}: file cannot be combined with {' and '.join(sides)}; remove one of them"
    if sides := [side for side in ("source", "target") if getattr(entry.download, side, None) is not None]:
        yield f"{where}: download.{sides[0]} requires {sides[0]}; with file, use download: {{file: ...}}"
    if entry.columns is not None and entry.columns[0] == entry.columns[1]:
        yield f"{where}: columns: source and target are the same column"
    if entry.format is not None and entry.members is not None:
        yield f"{where}: format and members cannot be combined; members are text files; remove one of them"


def _check_selection(config: Config) -> Iterator[str]:
    """Check that selection has in-domain text: both sides for parallel text, the target side for LM text."""
    entries = config.corpora
    in_domain = [entry for entry in entries if is_in_domain(entry)]
    for kind, default, roles in (
        ("bitext", config.selection.bitext, ("bitext",)),
        ("mono", config.selection.mono, ("bitext", "mono")),
    ):
        pool = [entry.keep for entry in entries if entry.role in roles]
        if isinstance(default, NumberOfWords) and all(pool) and not all(keep == "all" for keep in pool):
            yield (
                f"selection.{kind}: has no effect, because every corpus has keep; use a fraction, or remove keep "
                "from a corpus"
            )
        if all(kept_whole(keep, default) for keep in pool):
            continue
        if not any(kind == "mono" or entry.role != "mono" for entry in in_domain):
            sides = "a target side" if kind == "mono" else "both sides"
            yield f"selection.{kind}: no corpus with {sides} is in-domain; set in_domain: true for one, or fraction 1"


def _check_evaluation(config: Config) -> Iterator[str]:
    tests = [entry.name for entry in config.corpora if entry.role == "test"]
    languages = (config.languages.source, config.languages.target)
    if config.evaluation.paper and languages != ("en", "fr"):
        yield f"evaluation.paper: the published results are for en and fr, not {' and '.join(languages)}; remove it"
    for joint, parts in config.evaluation.joint.items():
        if joint in tests or joint == "dev":
            yield f"evaluation.joint.{joint}: is already the name of a test set"
        if len(set(parts)) < max(len(parts), 2):
            yield f"evaluation.joint.{joint}: two or more different test sets are required"
        for test_set in parts:
            if test_set not in tests:
                yield f"evaluation.joint.{joint}: {test_set} is not a test corpus; available: {', '.join(tests)}"
