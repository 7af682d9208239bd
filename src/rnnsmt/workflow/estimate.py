"""What a run will take before it has any of its files: hours, memory and disk of its rules, by the words of its text.

The figures are lines over millions of target words (disk: powers), fitted to runs of the workflow on text of up to 3
million words (benchmarks/growth.py, docs/scale.md), and what one core took for an update of a network, a million phrase
pairs, or a million words that are translated. Those of GPUs are reckoned from floating-point operations, memory traffic
and launches: nothing of them is measured.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rnnsmt.config import features_of, kept_whole


class TextSizes(NamedTuple):
    """Millions of target words.

    Attributes:
        text: all text; of a monolingual corpus, which has one side, half.
        pool, bitext: all bitext, and what selection keeps of it.
        mono_pool, mono: all that the language models may learn from, and what selection keeps of it.
        dev, sets: the dev text, all dev and test sets.
    """

    text: float
    pool: float
    bitext: float
    mono_pool: float
    mono: float
    dev: float
    sets: float


class Line(NamedTuple):
    """``base`` and ``slope`` times a number of millions of words."""

    base: float
    slope: float

    def at(self, words: float) -> float:
        return self.base + self.slope * words


class Power(NamedTuple):
    """``factor`` times a number of millions of words to the power ``exponent``."""

    factor: float
    exponent: float

    def at(self, words: float) -> float:
        return self.factor * words**self.exponent


class Growth(NamedTuple):
    """All jobs of a rule: what they read (a field of ``TextSizes``), CPU seconds, megabytes of memory of the largest
    and of disk."""

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

ALIGNER_SHARES = {"model4": 0.9, "fast_align": 0.1, "hmm": 0.5}
"""What an aligner takes of the time of `align_words`, whose line is that of model4 and fast_align together; that of hmm
is reckoned. The lines of later stages are those of phrases from both; from one aligner there are fewer."""

FILTER_TABLES = Growth("bitext", Line(2.53, 4.21), Line(245, 0), Power(19.6, 0.759))
"""One filtering of the tables for some text; 8 bytes for the number of every line that it keeps."""

# Millions of phrase pairs; of those that some text can use, from what filtering leaves on disk and the bytes of a line
# of both tables; what a table with further columns takes for a million.
PAIRS = Power(3.74, 0.88)

KEPT_PAIRS = Power(0.39, 0.759)

AUGMENTED_SECONDS, AUGMENTED_MB = 3.1, 33.0

# Stages that are told how much memory they may use take no more, and spill to disk beyond it.
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
"""Megabytes that they are told at most, also by the rules."""


class Seconds(NamedTuple):
    """What something takes on one core, and on a GPU."""

    core: float
    gpu: float


# An update, by the preset, and a million phrase pairs that are scored.
RNN_UPDATE = {"demo": Seconds(0.02, 0.002), "small": Seconds(0.1, 0.002), "paper": Seconds(0.33, 0.003)}

RNN_SCORE = {"demo": Seconds(60, 1), "small": Seconds(120, 1), "paper": Seconds(700, 3)}

CSLM_UPDATE = {"demo": Seconds(0.01, 0.001), "small": Seconds(0.033, 0.001), "paper": Seconds(1.8, 0.0036)}

# Epochs after which an early stop is reckoned with, where the preset has more.
CSLM_EPOCHS = 10

# A million target words that are translated; what a CSLM takes on top; an optimisation of the weights for so many.
SEARCH = 1200

NEURAL = {"demo": Seconds(300, 10), "small": Seconds(500, 10), "paper": Seconds(20000, 50)}

OPTIMISATION = 300

# Iterations of a tuning run.
ITERATIONS = 10


class Estimate(NamedTuple):
    """A rule: hours of one core and of a GPU for all its jobs, gigabytes of memory of the largest and of disk."""

    rule: str
    core_hours: float
    gpu_hours: float
    memory: float
    disk: float


def sizes_of(config: Mapping[str, Any]) -> TextSizes | None:
    """The words of a run, where every corpus of its configuration says how many it has. ``auto`` may keep all."""
    if not all("words" in entry for entry in config["corpora"]):
        return None

    def total(*roles: str) -> float:
        return sum(entry["words"] for entry in config["corpora"] if entry["role"] in roles)

    def kept(kind: str, *roles: str) -> float:
        usual = config["selection"][kind]
        pool = [entry for entry in config["corpora"] if entry["role"] in roles]
        if isinstance(usual, Mapping):  # of those that are ranked together
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
    """Millions of words of a corpus that selection keeps."""
    share = entry.get("keep") or usual
    return float(entry["words"]) * (1.0 if share == "auto" or kept_whole(share, usual) else float(share))


def estimates(config: Mapping[str, Any]) -> list[Estimate]:
    """What the rules of a run will take, in the order of the pipeline; nothing where a corpus does not say its words.

    What takes seconds whatever the text is left out, and LSTMs.
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
        pairs = augmented * (PAIRS.at(words.bitext) + 2 * KEPT_PAIRS.at(words.bitext))  # of dev's, of all sets'
        rows.append(Estimate("augment", pairs * AUGMENTED_SECONDS / 3600, 0.0, 0.4, pairs * AUGMENTED_MB / 1000))
    once = _grown("filter_tables", FILTER_TABLES, words)
    rows.append(once._replace(core_hours=2 * once.core_hours, disk=2 * once.disk))  # for the dev text, for all sets
    return rows + _of_search(config, words, len(systems) - neural, neural)


def _grown(rule: str, growth: Growth, words: TextSizes) -> Estimate:
    size = getattr(words, growth.reads)
    memory = growth.memory.at(size)
    if rule in SPILLING:
        memory = min(memory, BUDGET_MB)
    return Estimate(rule, growth.seconds.at(size) / 3600, 0.0, memory / 1000, growth.disk.at(size) / 1000)


def _hours(config: Mapping[str, Any], cost: Seconds, times: float) -> tuple[float, float]:
    """Hours of cores and of GPUs: of one of them."""
    on_gpu = config["rnn"]["device"] == "cuda"
    return (0.0, cost.gpu * times / 3600) if on_gpu else (cost.core * times / 3600, 0.0)


def _of_scorers(config: Mapping[str, Any], words: TextSizes, networks: int) -> list[Estimate]:
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
    from rnnsmt.cslm.settings import PRESETS
    from rnnsmt.networks.options import preset_with

    preset = config["cslm"]["preset"]
    settings = preset_with(PRESETS[preset], config["cslm"]["settings"])
    updates = min(settings.epochs, CSLM_EPOCHS) * words.mono * 1e6 / settings.batch
    return Estimate("cslm_train", *_hours(config, CSLM_UPDATE[preset], updates * networks), 4.0, 0.3 * networks)


def _of_search(config: Mapping[str, Any], words: TextSizes, plain: int, neural: int) -> list[Estimate]:
    """Tuning of all runs, whose first decoding is one, and a translation of all sets with every run."""
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
    """What the plan of a run says of its time, memory and disk: a line for each rule of at least six minutes or a
    gigabyte, one for all others together, and the sum."""
    if (words := sizes_of(config)) is None:
        return
    rows = estimates(config)
    yield (
        f"Estimate for {words.bitext:,.0f} of {words.pool:,.0f} million target words of bitext and {words.mono:,.0f} "
        f"of {words.mono_pool:,.0f} million for the language models (docs/scale.md; GPUs are reckoned, not measured):"
    )
    yield f"{'rule':<24}{'core hours':>12}{'GPU hours':>12}{'GB memory':>12}{'GB disk':>12}"
    small = [row for row in rows if row.core_hours + row.gpu_hours < 0.1 and row.disk < 1]
    shown = [row for row in rows if row not in small]
    if small:
        shown.append(_sum("others", small))
    for row in [*shown, _sum("all", rows)]:
        yield f"{row.rule:<24}{row.core_hours:>12,.1f}{row.gpu_hours:>12,.1f}{row.memory:>12,.1f}{row.disk:>12,.1f}"


def _sum(name: str, rows: list[Estimate]) -> Estimate:
    return Estimate(
        name,
        sum(row.core_hours for row in rows),
        sum(row.gpu_hours for row in rows),
        max(row.memory for row in rows),
        sum(row.disk for row in rows),
    )
