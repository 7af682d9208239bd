"""Estimate of the time, memory and disk space of a run, by rule, from the number of words of its text.

The figures are linear functions of millions of target words (disk: power functions), fitted to workflow runs on text of
up to 3 million words (benchmarks/growth.py, docs/scale.md), and measurements on one core of an update of a network, a
million phrase pairs, or a million translated words. GPU figures are calculated from floating-point operations, memory
traffic and kernel launches; none of them was measured.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rnnsmt.plan.config import features_of, kept_whole


class TextSizes(NamedTuple):
    """Sizes of the texts in millions of target words.

    Attributes:
        text: all text; a monolingual corpus, which has one side, counts half.
        pool, bitext: all parallel text, and its selected part.
        mono_pool, mono: all text for the language models, and its selected part.
        dev, sets: dev text; all dev and test sets.
    """

    text: float
    pool: float
    bitext: float
    mono_pool: float
    mono: float
    dev: float
    sets: float


class Line(NamedTuple):
    """Linear function of millions of words: ``base`` + ``slope`` x."""

    base: float
    slope: float

    def at(self, words: float) -> float:
        """Return the value for millions of words."""
        return self.base + self.slope * words


class Power(NamedTuple):
    """Power function of millions of words: ``factor`` x ^ ``exponent``."""

    factor: float
    exponent: float

    def at(self, words: float) -> float:
        """Return the value for millions of words."""
        return self.factor * words**self.exponent


class Growth(NamedTuple):
    """Growth of all jobs of a rule.

    Attributes:
        reads: field of ``TextSizes`` for the size of its input.
        seconds: CPU seconds of all jobs.
        memory: megabytes of memory of the largest job.
        disk: megabytes of disk space of all outputs.
    """

    reads: str
    seconds: Line
    memory: Line
    disk: Power


GROWTHS: dict[str, Growth] = {
    "prepare_bitext": Growth("text", Line(1.39, 5.63), Line(62, 2.67), Power(4.1, 0.943)),
    "train_truecaser": Growth("pool", Line(0.5, 1.07), Line(58.4, 5.29), Power(0.944, 0.479)),
    "truecase": Growth("text", Line(1.41, 1.21), Line(55.5, 2.2), Power(4.06, 0.943)),
    "selection_models": Growth("pool", Line(4.8, 0), Line(201, 0), Power(17.9, 0.00123)),
    "selection_score_mono": Growth("mono_pool", Line(0.405, 0.55), Line(42.3, 0), Power(0.214, 0.993)),
    "select_mono": Growth("mono_pool", Line(0.508, 1.41), Line(225, 31.8), Power(2.13, 0.999)),
    "language_model": Growth("mono", Line(0.935, 1.3), Line(194, 77.8), Power(25.5, 0.824)),
    "selection_score_bitext": Growth("pool", Line(0.757, 0.952), Line(56, 0), Power(0.22, 0.993)),
    "select_bitext": Growth("pool", Line(0.54, 1.51), Line(223, 29.9), Power(4, 1)),
    "align_words": Growth("bitext", Line(0, 182), Line(430, 53.4), Power(4.3, 0.994)),
    "symmetrize": Growth("bitext", Line(3.27, 1.07), Line(288, 0), Power(2.18, 0.997)),
    "lexical": Growth("bitext", Line(1.91, 1.4), Line(242, 8.65), Power(11.6, 0.606)),
    "extract": Growth("bitext", Line(0.567, 10.7), Line(113, 1.19e03), Power(78.3, 0.951)),
    "phrase_table": Growth("bitext", Line(7.08, 6.75), Line(457, 46.2), Power(145, 0.884)),
    "rnn_prepare": Growth("bitext", Line(5.25, 3.27), Line(225, 44.5), Power(230, 0.886)),
    "reordering_table": Growth("bitext", Line(2.1, 3.22), Line(371, 10.8), Power(34.2, 0.885)),
}
"""Fitted functions by rule."""

ALIGNER_SHARES = {"model4": 0.9, "fast_align": 0.1, "hmm": 0.5}
"""Share of the time of `align_words` by aligner; the fitted line is that of model4 and fast_align together.

The share of hmm is calculated. The lines of later stages are those of phrases from both aligners; with one aligner
there are fewer phrases.
"""

FILTER_TABLES = Growth("bitext", Line(2.53, 4.21), Line(245, 0), Power(19.6, 0.759))
"""Filtering of the tables for one text; includes 8 bytes for the number of every line that is kept."""

# Millions of phrase pairs; millions of those that some text can use, from the disk space after filtering and the
# bytes of a line of both tables; seconds and megabytes of a table with further columns per million pairs.
PAIRS = Power(3.74, 0.88)

KEPT_PAIRS = Power(0.39, 0.759)

AUGMENTED_SECONDS, AUGMENTED_MB = 3.1, 33.0

# Stages with a memory limit, which write to disk beyond it.
SPILLING = (
    "selection_models",
    "select_bitext",
    "select_mono",
    "language_model",
    "extract",
    "phrase_table",
    "reordering_table",
)

BUDGET_MB = 16000
"""Maximum memory limit of these stages in megabytes, also used by the rules."""


class Seconds(NamedTuple):
    """Seconds on one core and on a GPU."""

    core: float
    gpu: float


# Per update, and per million phrase pairs scored, by preset.
RNN_UPDATE = {"demo": Seconds(0.02, 0.002), "small": Seconds(0.1, 0.002), "paper": Seconds(0.33, 0.003)}

RNN_SCORE = {"demo": Seconds(60, 1), "small": Seconds(120, 1), "paper": Seconds(700, 3)}

CSLM_UPDATE = {"demo": Seconds(0.01, 0.001), "small": Seconds(0.033, 0.001), "paper": Seconds(1.8, 0.0036)}

# Expected epochs with early stopping, if the preset allows more.
CSLM_EPOCHS = 10

# Seconds per million target words: translation; additional time of a CSLM; an optimisation of the weights.
SEARCH = 1200

NEURAL = {"demo": Seconds(300, 10), "small": Seconds(500, 10), "paper": Seconds(20000, 50)}

OPTIMISATION = 300

# Expected iterations of a tuning run.
ITERATIONS = 10


class Estimate(NamedTuple):
    """Estimate for all jobs of a rule: core hours, GPU hours, memory of the largest job in GB, disk space in GB."""

    rule: str
    core_hours: float
    gpu_hours: float
    memory: float
    disk: float


def sizes_of(config: Mapping[str, Any]) -> TextSizes | None:
    """Return the sizes of the texts of a run, or None if a corpus does not give its ``words``.

    ``auto`` counts as everything being kept.
    """
    if not all("words" in entry for entry in config["corpora"]):
        return None

    def total(*roles: str) -> float:
        return sum(entry["words"] for entry in config["corpora"] if entry["role"] in roles)

    def kept(kind: str, *roles: str) -> float:
        usual = config["selection"][kind]
        pool = [entry for entry in config["corpora"] if entry["role"] in roles]
        if isinstance(usual, Mapping):  # share of the words of the corpora that are ranked together
            ranked = sum(entry["words"] for entry in pool if not entry.get("keep"))
            usual = min(usual["words"] / ranked, 1.0) if ranked else 1.0
        return sum(_kept(entry, usual) for entry in pool)

    return TextSizes(
        text=total("bitext") + total("mono") / 2,
        pool=total("bitext"),
        bitext=kept("bitext", "bitext"),
        mono_pool=total("bitext", "mono"),
        mono=kept("mono", "bitext", "mono"),
        dev=total("dev"),
        sets=total("dev", "test"),
    )


def _kept(entry: Mapping[str, Any], usual: str | float) -> float:
    """Return the millions of words of a corpus that selection keeps."""
    share = entry.get("keep") or usual
    return float(entry["words"]) * (1.0 if share == "auto" or kept_whole(share, usual) else float(share))


def estimates(config: Mapping[str, Any]) -> list[Estimate]:
    """Return estimates for the rules of a run in pipeline order; empty if a corpus does not give its words.

    Rules that take seconds for any text, and LSTMs, are left out.
    """
    if (words := sizes_of(config)) is None:
        return []
    rows = [_grown(rule, growth, words) for rule, growth in GROWTHS.items()]
    share = sum(ALIGNER_SHARES[aligner] for aligner in config["alignment"]["aligners"])
    rows = [row._replace(core_hours=row.core_hours * share) if row.rule == "align_words" else row for row in rows]
    names = {config["systems"][name].get("rescores", name) for name in config["compare"]}
    systems = [features_of(config, name) for name in names if "features" in config["systems"][name]]
    scorers = [name for name in ("rnn", *config["scorers"]) if any(name in features for features in systems)]
    trainings = config["networks"]["seeds"]
    if scorers:
        rows += _of_scorers(config, words, len(scorers) * trainings * max(1, config["rnn"]["leave_out"]))
    neural = sum("cslm" in features for features in systems)
    if neural:
        rows.append(_of_cslm(config, words, trainings))
    tables = {tuple(name for name in features if name != "cslm") for features in systems}
    augmented = len(tables - {()}) * trainings
    if augmented:
        # the whole table, and the tables filtered for the dev text and for all sets
        pairs = augmented * (PAIRS.at(words.bitext) + 2 * KEPT_PAIRS.at(words.bitext))
        rows.append(Estimate("augment", pairs * AUGMENTED_SECONDS / 3600, 0.0, 0.4, pairs * AUGMENTED_MB / 1000))
    once = _grown("filter_tables", FILTER_TABLES, words)
    rows.append(once._replace(core_hours=2 * once.core_hours, disk=2 * once.disk))  # for the dev text and for all sets
    return rows + _of_search(config, words, len(systems) - neural, neural)


def _grown(rule: str, growth: Growth, words: TextSizes) -> Estimate:
    """Return the estimate of a rule from its fitted functions."""
    size = getattr(words, growth.reads)
    memory = growth.memory.at(size)
    if rule in SPILLING:
        memory = min(memory, BUDGET_MB)
    return Estimate(rule, growth.seconds.at(size) / 3600, 0.0, memory / 1000, growth.disk.at(size) / 1000)


def _hours(config: Mapping[str, Any], cost: Seconds, times: float) -> tuple[float, float]:
    """Return core hours and GPU hours, one of which is 0, for ``times`` repetitions."""
    on_gpu = config["rnn"]["device"] == "cuda"
    return (0.0, cost.gpu * times / 3600) if on_gpu else (cost.core * times / 3600, 0.0)


def _of_scorers(config: Mapping[str, Any], words: TextSizes, networks: int) -> list[Estimate]:
    """Return estimates of training and scoring of the RNN Encoder-Decoders."""
    from rnnsmt.networks.options import preset_with
    from rnnsmt.rnn.settings import PRESETS

    preset = config["rnn"]["preset"]
    settings = preset_with(PRESETS[preset], config["rnn"]["settings"])
    pairs = PAIRS.at(words.bitext)
    updates = settings.updates or settings.epochs * pairs * 1e6 / settings.batch
    trained = Estimate("rnn_train", *_hours(config, RNN_UPDATE[preset], updates * networks), 3.0, 0.3 * networks)
    disk = 4 * pairs * networks / 1000
    return [trained, Estimate("rnn_score", *_hours(config, RNN_SCORE[preset], pairs * networks), 4.0, disk)]


def _of_cslm(config: Mapping[str, Any], words: TextSizes, networks: int) -> Estimate:
    """Return the estimate of training the CSLMs."""
    from rnnsmt.cslm.settings import PRESETS
    from rnnsmt.networks.options import preset_with

    preset = config["cslm"]["preset"]
    settings = preset_with(PRESETS[preset], config["cslm"]["settings"])
    updates = min(settings.epochs, CSLM_EPOCHS) * words.mono * 1e6 / settings.batch
    return Estimate("cslm_train", *_hours(config, CSLM_UPDATE[preset], updates * networks), 4.0, 0.3 * networks)


def _of_search(config: Mapping[str, Any], words: TextSizes, plain: int, neural: int) -> list[Estimate]:
    """Return estimates of tuning, where the runs of a system share the first decoding, and of decoding all sets."""
    runs, systems = config["tuning"]["runs"], plain + neural
    decoded = {"mert": words.dev * (1 + runs * (ITERATIONS - 1)), "decode": words.sets * runs}
    optimised = {"mert": words.dev * runs * ITERATIONS, "decode": 0.0}
    rows = []
    for rule, number in decoded.items():
        core = (number * SEARCH + optimised[rule] * OPTIMISATION) * systems / 3600
        neural_core, gpu = _hours(config, NEURAL[config["cslm"]["preset"]], number * neural)
        rows.append(Estimate(rule, core + neural_core, gpu, 8.0 if neural else 3.0, 0.1 * runs * systems))
    return rows


def lines(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the estimate that are printed with the plan of a run.

    There is a line for each rule of at least six minutes or a gigabyte, one for all other rules together, and the sum.
    """
    if (words := sizes_of(config)) is None:
        return
    rows = estimates(config)
    yield (
        f"Estimate for {words.bitext:,.0f} of {words.pool:,.0f} million target words of bitext and {words.mono:,.0f} "
        f"of {words.mono_pool:,.0f} million for the language models (docs/scale.md; GPU hours are calculated):"
    )
    yield f"{'rule':<24}{'core hours':>12}{'GPU hours':>12}{'GB memory':>12}{'GB disk':>12}"
    small = [row for row in rows if row.core_hours + row.gpu_hours < 0.1 and row.disk < 1]
    shown = [row for row in rows if row not in small]
    if small:
        shown.append(_sum("others", small))
    for row in [*shown, _sum("all", rows)]:
        yield f"{row.rule:<24}{row.core_hours:>12,.1f}{row.gpu_hours:>12,.1f}{row.memory:>12,.1f}{row.disk:>12,.1f}"


def _sum(name: str, rows: list[Estimate]) -> Estimate:
    """Return the sum of estimates, with the maximum of the memory."""
    return Estimate(
        name,
        sum(row.core_hours for row in rows),
        sum(row.gpu_hours for row in rows),
        max(row.memory for row in rows),
        sum(row.disk for row in rows),
    )
