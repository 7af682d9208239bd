"""Readable messages for the errors that JSON schema finds in a configuration."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SHOWN = 200
"""Number of characters of a wrong value that a message shows."""

RENAMED = {
    "alignment.aligner": "alignment.aligners, a list: [model4, fast_align]",
    "threads": "the option --cores of snakemake",
    "cores": "the option --cores of snakemake",
    "output_dir": "the option --directory of snakemake",
    "directory": "the option --directory of snakemake",
    "tuning.seeds": "networks.seeds",
    "tuning.seed": "seed",
    "tuning.max_iterations": "tuning.iterations",
    "tuning.patience": "tuning.iterations, a fixed number",
    "tuning.combine": "removed: it is always the mean",
    "tuning.nested": "removed: every system is tuned on its own",
    "lm.models": "removed, see docs/upgrading.md",
    "lm.interpolate": "removed, see docs/upgrading.md",
    "phrases.prune": "removed, see docs/upgrading.md",
    "rnn.seeds": "networks.seeds",
    "seq2seq.subwords": "removed: the units are always words",
    "seq2seq.unknown": "removed: unknown words are always <unk>",
    "cslm.unknown_in_lists": "cslm.unknown, also for n-best lists",
    "search.cslm_precision": "removed: it is always float32",
    "rnn.settings.max_length": "removed: the variants that had it were removed, see docs/upgrading.md",
    "rnn.settings.direction": "removed: it is always p(target | source), see docs/upgrading.md",
    "rnn.settings.weighting": "removed: every pair occurs once per epoch, see docs/upgrading.md",
    "rnn.scored_pairs": "removed: `rnnsmt rnn score --lines` scores some lines of a table, see docs/upgrading.md",
    "rnn.leave_out": "removed: one network is trained on all pairs, see docs/upgrading.md",
    "proposals": "removed, see docs/upgrading.md",
    "scorers": "removed, see docs/upgrading.md",
    "cslm.vocab_size": "rnn.vocab_size, which the CSLM shares",
    "source_lang": "languages: {source: en, target: fr}",
    "target_lang": "languages: {source: en, target: fr}",
}
"""Keys of earlier versions, and keys that are often expected in other places, with their replacements."""

KINDS = {
    "object": "a map (key: value)",
    "array": "a list ([a, b])",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
}
"""Names of the types of JSON schema in messages."""

LIMITS = {
    "pattern": "does not match {limit}",
    "minimum": "is too small; the minimum is {limit}",
    "maximum": "is too large; the maximum is {limit}",
    "exclusiveMinimum": "is too small; must be greater than {limit}",
    "exclusiveMaximum": "is too large; must be less than {limit}",
    "minLength": "is too short; use at least {limit} characters",
    "maxLength": "is too long; use at most {limit} characters",
    "minItems": "has too few items; the minimum is {limit}",
    "maxItems": "has too many items; the maximum is {limit}",
}
"""Messages for values beyond a limit of the schema."""


def shortened(value: Any) -> str:
    """Return a value as text, which is truncated if it is long."""
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def explain(error: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield readable messages for one error of the schema."""
    location = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.absolute_path).lstrip(".")
    where = f"{location}: " if location else ""
    shown = shortened(repr(error.instance))
    if error.validator == "additionalProperties" and isinstance(error.validator_value, bool):
        known = list(error.schema.get("properties", {}))
        for key in error.instance:
            if key not in known:
                yield f"{where}unknown key {shortened(key)}; {_key_hint(str(key), location, known, schema)}"
    elif error.validator == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        yield f"{where}{', '.join(missing)} missing"
    elif error.validator in ("enum", "const"):
        allowed = error.validator_value if error.validator == "enum" else [error.validator_value]
        near = difflib.get_close_matches(str(error.instance), [str(v) for v in allowed], 1)
        hint = f"did you mean {near[0]}? " if near else ""
        choices = ", ".join(map(str, allowed)) or "none"
        yield f"{where}{shown} is not allowed; {hint}available: {choices}"
    elif error.validator == "anyOf":
        allowed = " or ".join(_describe(option) for option in error.validator_value)
        yield f"{where}{shown} is not allowed; must be {allowed}"
    elif error.validator == "type":
        types = " or ".join(KINDS[name] for name in as_list(error.validator_value))
        hint = f"; {_map_hint(location, error.instance, error.schema)}" if error.validator_value == "object" else ""
        yield f"{where}{shown} is not {types}{hint}"
    elif error.validator in LIMITS:
        yield f"{where}{shown} {LIMITS[error.validator].format(limit=error.validator_value)}"
    else:
        yield f"{where}{shortened(error.message)}"


def _key_hint(key: str, place: str, known: Sequence[str], schema: Mapping[str, Any]) -> str:
    """Return a hint for an unknown key: its new name, the closest known key, the section that has it, or all keys."""
    if renamed := RENAMED.get(f"{place}.{key}" if place else key):
        if renamed.startswith("removed"):
            return renamed
        return f"it is now {renamed}" if place == "alignment" else f"use {renamed}"
    if near := difflib.get_close_matches(key, known, 1):
        return f"did you mean {near[0]}?"
    sections = [
        name for name, section in schema["properties"].items() if key in section.get("properties", {}) and name != place
    ]
    if (parent := place.split(".", maxsplit=1)[0]) in sections:
        sections = [parent]
    if sections:
        return f"did you mean {' or '.join(f'{name}.{key}' for name in sections)}?"
    return f"available: {', '.join(known)}"


def _map_hint(place: str, value: Any, schema: Mapping[str, Any]) -> str:
    """Return how to write a map, with the values of a list of the same length."""
    names = list(schema.get("properties", {}))
    if isinstance(value, str):
        value = re.findall(r"\w+", value)
    if not names or not isinstance(value, list) or len(value) != len(names):
        return f"write {place}: {{{', '.join(names[:2]) or 'key'}: ...}}"
    return f"write {place}: {{{', '.join(f'{name}: {item}' for name, item in zip(names, value, strict=True))}}}"


def _describe(option: Mapping[str, Any]) -> str:
    """Describe one alternative of a schema in words."""
    if "const" in option:
        return str(option["const"])
    if "enum" in option:
        return " or ".join(map(str, option["enum"]))
    if "properties" in option:
        names = list(option["properties"])
        return f"{{{names[0]}: NUMBER}}" if len(names) == 1 else f"a map of {', '.join(names)}"
    if "pattern" in option:
        return f"a string that matches {option['pattern']}"
    return {
        "number": "a number greater than {exclusiveMinimum} and at most {maximum}",
        "integer": "an integer of at least {minimum}",
    }.get(str(option.get("type")), str(option.get("type", option))).format_map(option)


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, and any other value as a list with one item."""
    return value if isinstance(value, list) else [value]
