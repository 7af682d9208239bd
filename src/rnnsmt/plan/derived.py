"""Properties of a checked configuration that several parts of the workflow require."""

from rnnsmt.config.sections import Amount, Config, Engines, NumberOfWords
from rnnsmt.plan.corpora import DEMO_DIRECTORY, corpora_of, files_of

PARTS = ("alignment", "training", "tuning", "decoding")
"""Parts of the pipeline that ``engine`` can assign to Moses."""

MOSES_OPTIMIZERS = {"mert": ("mert", "MERT"), "mira": ("kbmira", "batch MIRA")}
"""Optimizers that Moses has, with the name of Moses' program and the title in the notes of the tables."""

MOSES_ALIGNERS = ("model4", "fast_align")
"""Aligners that Moses has: with MGIZA or GIZA++, and fast_align."""

MOSES_SYMMETRIZATIONS = {
    "grow-diag-final-and": "grow-diag-final-and",
    "grow-diag-final": "grow-diag-final",
    "grow-diag": "grow-diag",
    "intersection": "intersect",
    "union": "union",
}
"""Symmetrisations that Moses' symal and fast_align's atools have, and their names in atools."""


def amount_kept(amount: Amount) -> str:
    """Return the option of `selection select` for a value of ``selection``: auto, a fraction, or millions of words."""
    return (
        f"--words {max(round(1e6 * amount.words), 1)}" if isinstance(amount, NumberOfWords) else f"--fraction {amount}"
    )


def kept_whole(keep: str | float | None, default: Amount) -> bool:
    """Return whether selection keeps a whole corpus, given its ``keep``, or None, and the default for its kind."""
    return (keep or default) in ("all", 1)


def is_demo_corpus(config: Config) -> bool:
    """Return whether the parallel text of a configuration is the demo corpus."""
    corpora = corpora_of(config.corpora, config.languages, config.data_dir)
    training = (files_of(corpus) for corpus in corpora if corpus.role == "bitext")
    return all(path.startswith(DEMO_DIRECTORY) for files in training for _, path in files)


def is_small(config: Config) -> bool:
    """Return whether ``auto`` selects the values for the demo corpus, with which a run takes minutes."""
    return config.quick or is_demo_corpus(config)


def parts_of_moses(config: Config) -> list[str]:
    """Return the parts that ``engine`` assigns to Moses; ``engine`` names one engine for all parts or one for each.

    Alignment is not included if it is external.
    """
    engine = config.engine
    parts = [step for step in PARTS if (getattr(engine, step) if isinstance(engine, Engines) else engine) == "moses"]
    return [step for step in parts if step != "alignment" or not config.alignment.external]


def moses_searches(config: Config) -> bool:
    """Return whether Moses' decoder is used, for tuning or decoding, and must therefore be able to read every ini."""
    return bool({"tuning", "decoding"} & set(parts_of_moses(config)))


def features_of(config: Config, system: str) -> list[str]:
    """Return the features that a system, or the system it rescores, adds to the baseline; none for LSTMs alone."""
    settings = config.systems.get(system)
    if settings is not None and settings.rescores is not None:
        settings = config.systems.get(settings.rescores)
    return [] if settings is None else list(settings.features or ())
