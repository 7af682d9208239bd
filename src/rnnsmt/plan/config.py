"""Configuration of the workflow: validation and automatic settings.

``check`` reports all mistakes at once, one line each. ``resolve_auto`` replaces ``auto`` by values.
"""

import difflib
import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rnnsmt.base.io import read_json
from rnnsmt.base.options import MAX_INT, MAX_SEED, pruning_mistake
from rnnsmt.plan.corpora import (
    DEMO_DIRECTORY,
    code_mistake,
    codes_of_yaml,
    corpora,
    corpora_listed,
    file_mistakes,
    is_in_domain,
)
from rnnsmt.plan.features import BY_NAME, CSLM, NNJM, features_of, named_features
from rnnsmt.plan.schema_errors import as_list, explain, shortened

AUTO: dict[tuple[str, str], tuple[object, object]] = {
    ("phrases", "smoothing"): ("none", "kneser-ney"),
    ("rnn", "vocab_size"): (1500, 15000),
    ("rnn", "preset"): ("demo", "small"),
    ("cslm", "preset"): ("demo", "small"),
    ("cslm", "unknown"): ("class", "word"),
    ("nnjm", "preset"): ("demo", "small"),
    ("nnjm", "unknown"): ("class", "word"),
    ("seq2seq", "preset"): ("demo", "small"),
    ("seq2seq", "source_vocab_size"): (1500, 15000),
    ("seq2seq", "target_vocab_size"): (1500, 15000),
    ("seq2seq", "nbest"): (100, 1000),
    ("search", "pop_limit"): (150, 1000),
    ("search", "stack"): (100, 1000),
    ("search", "cslm_cells"): (50, 100),
    ("tuning", "nbest"): (50, 100),
    ("tuning", "restarts"): (8, 20),
    ("tuning", "iterations"): (12, 16),
}
"""Values of ``auto`` by section and key: for the demo corpus, which should run in minutes, and for other corpora."""


MAX_TEXT = 2000
"""Maximum length of a text in characters, so that a path below ``data_dir`` is not too long for the system."""

MAX_FILE_NAME = 255
"""Maximum length of a file name in bytes, the limit of most file systems."""


PARTS = ("alignment", "training", "tuning", "decoding")
"""Parts of the pipeline that ``engine`` can assign to Moses."""


def amount_kept(amount: str | float | Mapping[str, float]) -> str:
    """Return the option of `selection select` for a value of ``selection``: auto, a fraction, or millions of words."""
    return f"--words {max(round(1e6 * amount['words']), 1)}" if isinstance(amount, Mapping) else f"--fraction {amount}"


def kept_whole(keep: str | float | None, default: str | float | Mapping[str, float]) -> bool:
    """Return whether selection keeps a whole corpus, by its ``keep`` or, without it, by the default for its kind."""
    return (keep or default) in ("all", 1)


def is_demo_corpus(config: Mapping[str, Any]) -> bool:
    """Return whether the parallel text of a checked configuration is the demo corpus."""
    return all(
        corpus.target.startswith(DEMO_DIRECTORY) for corpus in corpora(config).values() if corpus.role == "bitext"
    )


def parts_of_moses(config: Mapping[str, Any]) -> list[str]:
    """Return the parts that ``engine`` assigns to Moses; ``engine`` names one engine for all parts or one for each.

    Parts without an engine use rnnsmt. Alignment is not included if it is external.
    """
    engine = config["engine"]
    parts = [step for step in PARTS if (engine if isinstance(engine, str) else engine.get(step)) == "moses"]
    return [step for step in parts if step != "alignment" or not config["alignment"]["external"]]


def moses_searches(config: Mapping[str, Any]) -> bool:
    """Return whether Moses' decoder is used for tuning or decoding, so that it must be able to read every ini."""
    return bool({"tuning", "decoding"} & set(parts_of_moses(config)))


def resolve_auto(config: dict[str, Any]) -> str:
    """Replace ``auto`` by values for the settings in ``AUTO``; return one line that lists those of this run.

    For other corpora, the networks of the demo corpus are too small, its search too narrow and its n-best
    lists too short. Settings of networks that no system of ``compare`` has are not listed.
    """
    demo = is_demo_corpus(config)
    unused = _unused_networks(config)
    resolved = []
    for (section, key), values in AUTO.items():
        if config[section][key] == "auto":
            config[section][key] = values[0 if demo else 1]
            if section not in unused and not (key == "cslm_cells" and {"cslm", "nnjm"} <= unused):
                resolved.append(f"{section}.{key}: {config[section][key]}")
    where = "the demo corpus" if demo else "your own corpora"
    return f"Settings for {where} (auto): {', '.join(resolved)}" if resolved else ""


def _unused_networks(config: Mapping[str, Any]) -> set[str]:
    """Return the sections of networks that neither a system of ``compare`` nor one whose lists it rescores uses."""
    used: set[str] = set()
    names, seen = list(config["compare"]), set()
    while names:
        name = names.pop()
        system = config["systems"].get(name)
        if name in seen or system is None:
            continue
        seen.add(name)
        used.update(system.get("features", ()))
        if "network" in system:
            used.add("cslm" if system["network"] == "cslm" else "seq2seq")
        if "rescores" in system:
            names.append(system["rescores"])
    # cslm and nnjm share the vocabulary of rnn; the feature wp also its settings
    if used - {"seq2seq"}:
        used.add("rnn")
    return {"rnn", "cslm", "nnjm", "seq2seq"} - used


def repeated_keys(path: str | Path) -> Iterator[str]:
    """Yield one line for every duplicate key of a map in a YAML or JSON file.

    YAML itself silently uses the last one.
    """
    import yaml

    try:
        text = Path(path).read_text(encoding="utf-8")
        if Path(path).suffix == ".json":  # tabs, which YAML does not allow, are white space in JSON
            text = text.replace("\t", " ")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        yield f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8"
        return
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        yield f"{path}{line}: not valid YAML ({error.problem})"
        return
    except yaml.YAMLError as error:
        yield f"{path}: not valid YAML ({str(error).splitlines()[0]})"
        return
    seen: set[int] = set()
    nodes = [(root, "")]
    while nodes:
        node, location = nodes.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += [(item, f"{location}[{i}]") for i, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            first: dict[str, int] = {}
            for key, value in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in first and name != "<<":
                    of = f" of {location}" if location else ""
                    yield f"{path}, line {line}: duplicate key {name}{of}, first in line {first[name]}; keep one"
                first.setdefault(name, line)
                nodes.append((value, f"{location}.{name}" if location else name))


def check(config: dict[str, Any], schema_path: str | Path, files: Iterable[str | Path] = ()) -> list[str]:
    """Validate a configuration; return one line for every mistake.

    Snakemake leaves numbers and booleans inside maps of ``--config`` as text (``--config "tuning={runs: 5}"``). Where
    the schema requires another type, such text is converted in ``config``.

    Args:
        config: the configuration; modified in place.
        schema_path: JSON schema.
        files: configuration files, which are checked for duplicate keys.
    """
    from jsonschema import Draft202012Validator

    schema = read_json(schema_path)
    if isinstance(config.get("languages"), dict):
        config["languages"].update(codes_of_yaml(config["languages"]))
    _plain_values(config, schema, schema)
    validator = Draft202012Validator(schema)
    errors = sorted(validator.iter_errors(config), key=lambda error: list(map(str, error.path)))
    lines = [line for path in dict.fromkeys(map(str, files)) for line in repeated_keys(path)]
    lines += [line for error in errors for line in explain(error, schema)]
    return lines or list(_check_values(config, "")) or list(_cross_checks(config))


def _plain_values(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Return the value with text converted to the number, boolean or null that the schema requires.

    Floats with integer value are converted to int where the schema requires an integer: JSON schema accepts 3.0 as an
    integer, Python does not.

    Args:
        value: part of the configuration; maps and lists are modified in place.
        schema: schema of this part.
        root: the whole schema, in which ``$ref`` is resolved.
    """
    if "$ref" in schema:
        schema = reduce(lambda node, name: node[name], schema["$ref"].split("/")[1:], root)
    if isinstance(value, dict):
        schema = next((option for option in schema.get("anyOf", []) if "properties" in option), schema)
        other = schema.get("additionalProperties")
        for key in value:
            value[key] = _plain_values(value[key], schema.get("properties", {}).get(key) or other or {}, root)
    elif isinstance(value, list):
        value[:] = [_plain_values(item, schema.get("items", {}), root) for item in value]
    elif isinstance(value, str | float):
        plain = _yaml_value(value) if isinstance(value, str) else value
        options = schema.get("anyOf", [schema])
        types = {name for option in options for name in as_list(option.get("type"))}
        if isinstance(plain, float) and plain.is_integer() and "integer" in types:
            return int(plain)
        kinds = {bool: {"boolean"}, int: {"integer", "number"}, float: {"number"}, type(None): {"null"}}
        if kinds.get(type(plain), set()) & types:
            return plain
    return value


def _yaml_value(text: str) -> Any:
    """Return the YAML value of a text, or the text itself if it is not valid YAML, e.g. ``*.en``."""
    import yaml

    try:
        return yaml.safe_load(text) if text else text
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: 2001-13-45, or thousands of digits
        return text


def _cross_checks(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield mistakes that a schema cannot express: settings that contradict each other."""
    yield from _check_corpora(config["corpora"])
    yield from _check_selection(config)
    yield from _check_joint(config)
    seeds, runs = config["networks"]["seeds"], config["tuning"]["runs"]
    if runs % seeds:
        yield f"networks.seeds: {seeds}, but tuning.runs is {runs}; tuning.runs must be a multiple of networks.seeds"
    yield from _check_systems(config)
    yield from _check_engine(config)
    if wrong := pruning_mistake(config["lm"]["prune"], config["lm"]["order"]):
        yield f"lm.prune: {wrong}"
    for side in ("source", "target"):
        if wrong := code_mistake(config["languages"][side]):
            yield f"languages.{side}: {wrong}"
    if config["languages"]["source"] == config["languages"]["target"]:
        yield "languages: source and target are the same"
    if wrong_addresses := list(_check_addresses(config["corpora"])):
        yield from wrong_addresses
        return
    directory = config["data_dir"]
    external = config["alignment"]["external"]
    if external is not None and Path(external).is_dir():
        yield f"alignment.external: {external} is a directory, not a file"
    if directory is not None and not Path(directory).is_dir():
        yield f"data_dir: {directory} is not a directory (the base of relative paths is {Path.cwd()})"
    else:
        yield from file_mistakes(corpora_listed(config))


def _check_engine(config: Mapping[str, Any]) -> Iterator[str]:
    """Check that Moses supports the parts that ``engine`` assigns to it."""
    parts = parts_of_moses(config)
    if parts and config["moses_home"] is None:
        yield "moses_home: not set; engine: moses requires the directory of a Moses installation (docs/moses.md)"
    if "alignment" in parts and "model4" in config["alignment"]["aligners"] and config["text"]["max_length"] > 100:
        yield "text.max_length: MGIZA and GIZA++ truncate sentences of more than 100 words; set it to 100 or less"
    if {"training", "tuning", "decoding"} & set(parts) and not config["text"]["escape"]:
        yield "text.escape: Moses interprets | as the factor separator; set it to true"
    if "alignment" in parts and "hmm" in config["alignment"]["aligners"]:
        yield "alignment.aligners: Moses has no aligner hmm; use model4 (MGIZA or GIZA++) or fast_align"
    remedy_of = {
        CSLM: "remove these systems from compare, or rescore n-best lists of Moses (docs/moses.md)",
        NNJM: "or remove these systems from compare",
    }
    for network, remedy in remedy_of.items():
        refused = [name for name in config["compare"] if network.name in features_of(config, name)]
        if refused and moses_searches(config):
            yield (
                f"engine: Moses does not support the {network.label} of {', '.join(refused)}; use rnnsmt for tuning "
                f"and decoding, {remedy}"
            )


def _check_systems(config: Mapping[str, Any]) -> Iterator[str]:
    """Check the names of systems, their components, and the systems that are compared."""
    for name, system in config["systems"].items():
        if set(system) == {"features"}:
            yield from _check_features(name, system["features"])
        else:
            yield from _check_lstms(config, name, system)
    for key, listed in (("compare", config["compare"]), ("seq2seq.compare", config["seq2seq"]["compare"])):
        for name in listed:
            if name not in config["systems"]:
                yield f"{key}: no system {name}; {_hint(name, config['systems'])}"


def _check_features(name: str, added: list[str]) -> Iterator[str]:
    """Check a phrase-based system: its features exist and do not contradict its name."""
    for feature in added:
        if feature not in BY_NAME:
            yield f"systems.{name}: no feature {feature}; {_hint(feature, BY_NAME)}"
    features = set(added)
    named = named_features(name)
    if named is not None and set(named) != features:
        adds = " and ".join(added) or "nothing"
        yield f"systems.{name}: has the features {adds}, which contradict its name; choose another name"
    if "+" in name or name.startswith("lstm"):
        yield f"systems.{name}: names with + or lstm are reserved for systems with LSTMs; choose another name"


def _check_lstms(config: Mapping[str, Any], name: str, system: Mapping[str, Any]) -> Iterator[str]:
    """Check a system of LSTMs: its network exists, and the system that it rescores has n-best lists."""
    if "features" in system or "network" not in system:
        yield f"systems.{name}: requires either features, or a network of seq2seq.networks"
        return
    networks, network = config["seq2seq"]["networks"], system["network"]
    if network == CSLM.network:
        yield from _check_cslm_on_lists(config, name, system)
    elif network not in networks:
        yield f"systems.{name}: no network {network} in seq2seq.networks; {_hint(network, networks)}"
    other = system.get("rescores")
    if other is None:
        if "weight" in system:
            yield f"systems.{name}: weight is only for systems with rescores; add rescores or remove weight"
        if named_features(name) is not None or "+" in name:
            yield (
                f"systems.{name}: the name suggests a phrase-based system, but the system has only LSTMs; choose "
                "another name"
            )
    elif "beam" in system:
        yield f"systems.{name}: beam cannot be combined with rescores; remove it"
    elif "features" not in config["systems"].get(other, {}):
        phrase_based = [system for system, settings in config["systems"].items() if "features" in settings]
        yield f"systems.{name}: rescores {other}, which is not a phrase-based system; {_hint(other, phrase_based)}"
    elif not name.startswith(f"{other}+") or name.endswith("+"):
        yield f"systems.{name}: rescores {other}, which contradicts its name; rename it to {other}+{network}"


def _check_cslm_on_lists(config: Mapping[str, Any], name: str, system: Mapping[str, Any]) -> Iterator[str]:
    """Check a system whose lists are rescored by a CSLM: tuned weights, not the network that the search uses."""
    if "rescores" not in system:
        yield (
            f"systems.{name}: cslm cannot translate without a phrase-based system; add rescores, or use "
            "features: [cslm]"
        )
        return
    if system.get("weight") != "tuned" or "ensemble" in system:
        yield f"systems.{name}: rescoring with cslm requires weight: tuned and no ensemble"
    if CSLM.name in config["systems"].get(system["rescores"], {}).get("features", []):
        yield f"systems.{name}: the search of {system['rescores']} already uses cslm; rescore another system"


def _hint(name: str, known: Collection[str]) -> str:
    """Return a hint for a misspelt name, or one as in Table 1 (CSLM + RNN): the closest known name, or all of them."""
    as_in_table = name.lower().replace(" + ", "_")
    near = difflib.get_close_matches(name, known, 1) or difflib.get_close_matches(as_in_table, known, 1)
    return f"did you mean {near[0]}?" if near else f"available: {', '.join(known)}"


def _check_values(value: Any, place: str) -> Iterator[str]:
    """Yield numbers and texts that no stage accepts: out of range, with control characters, too long for a path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _check_text(str(key), place)
            yield from _check_values(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _check_values(item, f"{place}[{number}]")
    elif isinstance(value, str):
        yield from _check_text(value, place)
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{place}: {value} is not a finite number"
    elif isinstance(value, int) and value > (most := MAX_SEED if place == "seed" else MAX_INT):
        yield f"{place}: {value} is too large; the maximum is {most}"


def _check_text(text: str, place: str) -> Iterator[str]:
    """Yield a message if a text, which is a name, a path or an address, is invalid."""
    if wrong := next((c for c in text if unicodedata.category(c) in ("Cc", "Cs")), None):
        kind = "the control character" if unicodedata.category(wrong) == "Cc" else "half of a surrogate pair,"
        yield f"{place}: {shortened(text)!r} contains {kind} {wrong!r}; remove it"
    elif len(text) > MAX_TEXT:
        yield f"{place}: {shortened(text)!r} has {len(text):,} characters; the maximum is {MAX_TEXT:,}"
    elif "://" not in text and any(len(file_name.encode()) > MAX_FILE_NAME for file_name in text.split("/")):
        yield f"{place}: {shortened(text)!r} contains a file name of more than {MAX_FILE_NAME} bytes"


def _check_corpora(entries: list[Mapping[str, Any]]) -> Iterator[str]:
    """Check the roles and names of the corpora."""
    roles = Counter(entry["role"] for entry in entries)
    for name, times in Counter(entry["name"] for entry in entries).items():
        if times > 1:
            yield f"corpora: {times} corpora are named {name}; names must be unique"
    for number, entry in enumerate(entries):
        where = f"corpora[{number}] ({entry['name']})"
        role = entry["role"]
        if "file" in entry:
            yield from _check_both_sides(where, entry)
        elif "target" not in entry:
            yield f"{where}: target is missing; specify source and target, or file (one file with both)"
        elif role != "mono" and "source" not in entry:
            yield f"{where}: source is missing, which is required for role {role}"
        if role == "mono" and "source" in entry:
            yield f"{where}: source is not allowed for role mono; remove it"
        yield from _check_keys_of_role(where, entry)
        if role == "test" and entry.get("in_domain"):
            yield (
                f"{where}: in_domain is not allowed for role test, because training text must not be selected by "
                "its similarity to test text; remove it"
            )
        if role == "test" and entry["name"] == "dev":
            yield (
                "corpora: the name dev is reserved for the concatenated dev text; choose another name for the test "
                "corpus"
            )
    for role in ("bitext", "dev", "test"):
        if not roles[role]:
            yield f"corpora: at least one corpus of role {role} is required"


def _check_keys_of_role(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Check the keys of an entry of ``corpora`` that only training text, or only translated text, can have."""
    role = entry["role"]
    if role in ("dev", "test") and "keep" in entry:
        yield f"{where}: keep is allowed for training text only; remove it from a corpus of role {role}"
    if role not in ("dev", "test") and "reference" in entry:
        yield f"{where}: reference is allowed for roles dev and test only; remove it from a corpus of role {role}"
    if "reference" in entry.get("download", {}) and "reference" not in entry:
        yield f"{where}: download.reference requires the key reference with the file name"


def _check_both_sides(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Check an entry of ``corpora`` whose ``file`` contains both sides."""
    if entry["role"] == "mono":
        yield f"{where}: file is not allowed for role mono; use target"
    if sides := [side for side in ("source", "target") if side in entry]:
        yield f"{where}: file cannot be combined with {' and '.join(sides)}; remove one of them"
    if sides := [side for side in ("source", "target") if side in entry.get("download", {})]:
        yield f"{where}: download.{sides[0]} requires {sides[0]}; with file, use download: {{file: ...}}"
    if "columns" in entry and entry["columns"][0] == entry["columns"][1]:
        yield f"{where}: columns: source and target are the same column"


def _check_addresses(entries: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a message for every address of a download that is not a URL, such as ``http://[``."""
    for number, entry in enumerate(entries):
        for side, fetched in entry.get("download", {}).items():
            for url in (fetched["url"], *fetched.get("mirrors", [])):
                try:
                    urlsplit(url)
                except ValueError as error:
                    where = f"corpora[{number}] ({entry['name']})"
                    yield f"{where}: download.{side}: {shortened(url)} is not a URL ({error})"


def _check_selection(config: Mapping[str, Any]) -> Iterator[str]:
    """Check that selection has in-domain text, on both sides for parallel text, on the target side for the LM."""
    entries = config["corpora"]
    in_domain = [entry for entry in entries if is_in_domain(entry)]
    for kind, roles in (("bitext", ("bitext",)), ("mono", ("bitext", "mono"))):
        pool = [entry.get("keep") for entry in entries if entry["role"] in roles]
        if isinstance(config["selection"][kind], Mapping) and all(pool) and not all(keep == "all" for keep in pool):
            yield (
                f"selection.{kind}: has no effect, because every corpus has keep; use a fraction, or remove keep "
                "from a corpus"
            )
        if all(kept_whole(keep, config["selection"][kind]) for keep in pool):
            continue
        if not any(kind == "mono" or entry["role"] != "mono" for entry in in_domain):
            sides = "a target side" if kind == "mono" else "both sides"
            yield f"selection.{kind}: no corpus with {sides} is in-domain; set in_domain: true for one, or fraction 1"


def _check_joint(config: Mapping[str, Any]) -> Iterator[str]:
    """Check the joint test sets."""
    tests = [entry["name"] for entry in config["corpora"] if entry["role"] == "test"]
    for joint, parts in config["evaluation"]["joint"].items():
        if joint in tests or joint == "dev":
            yield f"evaluation.joint.{joint}: is already the name of a test set"
        if len(set(parts)) < max(len(parts), 2):
            yield f"evaluation.joint.{joint}: two or more different test sets are required"
        for test_set in parts:
            if test_set not in tests:
                yield f"evaluation.joint.{joint}: {test_set} is not a test corpus; available: {', '.join(tests)}"
