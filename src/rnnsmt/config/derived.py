"""Questions about a checked configuration that several chapters of the workflow ask."""

from collections.abc import Mapping
from typing import Any

from rnnsmt.config.corpora import DEMO_DIRECTORY, corpora_of, files_of

PARTS = ("alignment", "training", "tuning", "decoding")
"""Parts of the pipeline that ``engine`` can assign to Moses."""

MOSES_OPTIMIZERS = {"mert": "mert", "mira": "kbmira"}
"""Optimizers that Moses has, and its program of each."""


def amount_kept(amount: str | float | Mapping[str, float]) -> str:
    """Return the option of `selection select` for a value of ``selection``: auto, a fraction, or millions of words."""
    return f"--words {max(round(1e6 * amount['words']), 1)}" if isinstance(amount, Mapping) else f"--fraction {amount}"


def kept_whole(keep: str | float | None, default: str | float | Mapping[str, float]) -> bool:
    """Return whether selection keeps a whole corpus, by its ``keep`` or, without it, by the default for its kind."""
    return (keep or default) in ("all", 1)


def is_demo_corpus(config: Mapping[str, Any]) -> bool:
    """Return whether the parallel text of a configuration is the demo corpus."""
    training = (corpus for corpus in corpora_of(config) if corpus.role == "bitext")
    return all(path.startswith(DEMO_DIRECTORY) for corpus in training for _, path in files_of(corpus))


def parts_of_moses(config: Mapping[str, Any]) -> list[str]:
    """Return the parts that ``engine`` assigns to Moses; ``engine`` names one engine for all parts or one for each.

    Alignment is not included if it is external.
    """
    engine = config["engine"]
    parts = [step for step in PARTS if (engine if isinstance(engine, str) else engine[step]) == "moses"]
    return [step for step in parts if step != "alignment" or not config["alignment"]["external"]]


def moses_searches(config: Mapping[str, Any]) -> bool:
    """Return whether Moses' decoder is used for tuning or decoding, so that it must be able to read every ini."""
    return bool({"tuning", "decoding"} & set(parts_of_moses(config)))
