"""Checks of network settings, and an estimate of resources, before a run.

Time, memory and disk space are estimated for each rule from the number of words of the text. Memory is the request of
the largest job of a rule according to the table in ``rnnsmt.plan.resources``, before it is limited to the memory of a
machine. CPU time and disk space are computed by the functions of millions of target words in the same table, and from
measurements on one core: per update of a network, per million phrase pairs, and per million translated words. GPU
figures were measured on an NVIDIA H200 (``benchmarks/gpu.py``), in part before CUDA graphs contained random numbers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rnnsmt.base.io import InputError
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS
from rnnsmt.cslm.settings import CslmSettings
from rnnsmt.networks.options import preset_with
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS
from rnnsmt.plan.config import kept_whole
from rnnsmt.plan.features import BY_NAME, CSLM, NNJM, RNN
from rnnsmt.plan.models import Systems
from rnnsmt.plan.resources import JobNeeds, Power, needed_memory, needs_of_rules
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.search.options import MOST_NEURAL_MEGABYTES
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS


def setting_mistakes(systems: Systems) -> Iterator[str]:
    """Yield a line for every network whose settings are out of range or incompatible."""
    config = systems.config
    for lstm in config["seq2seq"]["networks"]:
        try:
            preset_with(SEQ2SEQ_PRESETS[config["seq2seq"]["preset"]], systems.lstm_settings(lstm))
        except InputError as error:
            yield f"seq2seq.networks.{lstm}: {error}"
    try:
        preset_with(NNJM_PRESETS[config["nnjm"]["preset"]], config["nnjm"]["settings"])
    except InputError as error:
        yield f"nnjm.settings: {error}"
    try:
        preset_with(RNN_PRESETS[config["rnn"]["preset"]], config["rnn"]["settings"])
    except InputError as error:
        yield f"rnn: {error}"


def first_layers_mb(config: Mapping[str, Any]) -> dict[str, float]:
    """Return the MB of the first layers that a search computes for every word of the vocabulary, by network.

    The first layer of the CSLM is part of the memory that is counted for every network in a search (at most
    ``MOST_NEURAL_MEGABYTES``). The joint model has twice as many positions, each with the words of one side.
    """
    settings = preset_with(NNJM_PRESETS[config["nnjm"]["preset"]], config["nnjm"]["settings"])
    words = config["rnn"]["vocab_size"] + 1  # and </s>
    return {"nnjm": settings.sizes(words, words).first_layer_bytes / 1e6}


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


ALIGNER_SHARES = {"model4": 0.9, "fast_align": 0.1, "hmm": 0.5}
"""Share of each aligner in the time of `align_words`; the fitted function is that of model4 and fast_align together.

The share of hmm is calculated. The functions of later stages were fitted to phrases from both aligners; with one
aligner, there are fewer phrases.
"""

# Millions of phrase pairs; millions of phrase pairs after filtering for a text, calculated from the disk space of the
# filtered tables and the bytes per line of both tables; seconds and megabytes of a table with additional columns per
# million pairs.
PAIRS = Power(3.74, 0.88)

KEPT_PAIRS = Power(0.39, 0.759)

AUGMENTED_SECONDS, AUGMENTED_MB = 3.1, 33.0


class Seconds(NamedTuple):
    """Seconds on one core and on a GPU."""

    core: float
    gpu: float


# Time per update, and per million scored phrase pairs, by preset. The GPU is an NVIDIA H200 (benchmarks/gpu.py); its
# times for the preset demo are those of small.
RNN_UPDATE = {"demo": Seconds(0.02, 0.0014), "small": Seconds(0.1, 0.0014), "paper": Seconds(0.33, 0.0022)}

RNN_SCORE = {"demo": Seconds(60, 3.7), "small": Seconds(120, 3.7), "paper": Seconds(700, 4.5)}

UPDATE = {
    "cslm": {"demo": Seconds(0.01, 0.0008), "small": Seconds(0.033, 0.0008), "paper": Seconds(1.8, 0.0044)},
    "nnjm": {"demo": Seconds(0.01, 0.001), "small": Seconds(0.021, 0.001), "paper": Seconds(0.25, 0.0009)},
}

# Expected epochs of CSLM and NNJM with early stopping, if the preset allows more.
EPOCHS = 10

# Seconds per million target words: translation; additional time of a network in the search; an optimisation of the
# weights. The core times of the NNJM are calculated from those of the CSLM and the number of operations per score; all
# GPU times are calculated from the n-grams per second of benchmarks/gpu.py and 60 n-grams per word.
SEARCH = 1200

NEURAL = {
    "cslm": {"demo": Seconds(300, 25), "small": Seconds(500, 25), "paper": Seconds(20000, 60)},
    "nnjm": {"demo": Seconds(300, 15), "small": Seconds(500, 15), "paper": Seconds(1000, 30)},
}

OPTIMISATION = {"mert": 300, "mira": 40, "pro": 60}


class Estimate(NamedTuple):
    """Estimate for all jobs of a rule: core hours, GPU hours, memory of the largest job in GB, disk space in GB."""

    rule: str
    core_hours: float
    gpu_hours: float
    memory: float
    disk: float


def sizes_of(config: Mapping[str, Any]) -> TextSizes | None:
    """Return the sizes of the texts of a run, or None if a corpus has no ``words``.

    With ``auto``, the whole corpus is counted as kept.
    """
    if not all("words" in entry for entry in config["corpora"]):
        return None

    def total(*roles: str) -> float:
        return sum(entry["words"] for entry in config["corpora"] if entry["role"] in roles)

    def kept(kind: str, *roles: str) -> float:
        default = config["selection"][kind]
        pool = [entry for entry in config["corpora"] if entry["role"] in roles]
        if isinstance(default, Mapping):  # share of the words of the corpora that are ranked together
            ranked = sum(entry["words"] for entry in pool if not entry.get("keep"))
            default = min(default["words"] / ranked, 1.0) if ranked else 1.0
        return sum(_kept(entry, default) for entry in pool)

    return TextSizes(
        text=total("bitext") + total("mono") / 2,
        pool=total("bitext"),
        bitext=kept("bitext", "bitext"),
        mono_pool=total("bitext", "mono"),
        mono=kept("mono", "bitext", "mono"),
        dev=total("dev"),
        sets=total("dev", "test"),
    )


def _kept(entry: Mapping[str, Any], default: str | float) -> float:
    """Return the millions of words of a corpus that selection keeps."""
    share = entry.get("keep") or default
    return float(entry["words"]) * (1.0 if share == "auto" or kept_whole(share, default) else float(share))


def estimates(config: Mapping[str, Any]) -> list[Estimate]:
    """Return estimates for the rules of a run in pipeline order; empty if a corpus has no ``words``.

    Rules that take only seconds for any text, and LSTMs, are not included.
    """
    if (words := sizes_of(config)) is None:
        return []
    table = needs_of_rules(config)
    grown = {rule: _grown(config, rule, table, words) for rule, needs in table.items() if needs.growth}
    share = sum(ALIGNER_SHARES[aligner] for aligner in config["alignment"]["aligners"])
    grown["align_words"] = grown["align_words"]._replace(core_hours=grown["align_words"].core_hours * share)
    filtered = grown.pop("filter_tables")
    rows = list(grown.values())

    systems = Systems(config)
    phrase_based = {
        systems.rescored_by(name) if name in systems.rescored else name
        for name in config["compare"]
        if name not in systems.lstms_alone
    }
    features = [systems.features(name) for name in phrase_based]
    trainings = len(systems.trainings)
    if RNN.network in systems.networks:
        rows += _of_rnn(config, table, words, trainings)
    if CSLM.network in systems.networks:
        rows.append(_of_feed_forward(config, table, "cslm", words.mono, trainings))
    if NNJM.network in systems.networks:
        rows.append(_of_feed_forward(config, table, "nnjm", words.bitext, trainings))
    columns = {tuple(systems.columns(added)) for added in features} - {()}
    if columns:
        # the tables filtered for the dev text and for all sets, and the whole table
        pairs = trainings * len(columns) * (PAIRS.at(words.bitext) + 2 * KEPT_PAIRS.at(words.bitext))
        rows.append(
            Estimate(
                "augment",
                pairs * AUGMENTED_SECONDS / 3600,
                0.0,
                _gigabytes(config, table["augment"]),
                pairs * AUGMENTED_MB / 1000,
            )
        )
    rows.append(filtered._replace(core_hours=2 * filtered.core_hours, disk=2 * filtered.disk))  # dev text and all sets
    packages = [[BY_NAME[name].network for name in added if BY_NAME[name].in_search] for added in features]
    return rows + _of_search(config, table, words, packages)


def _grown(config: Mapping[str, Any], rule: str, table: Mapping[str, JobNeeds], words: TextSizes) -> Estimate:
    """Return the estimate of a rule whose growth with the text was measured."""
    growth = table[rule].growth
    assert growth is not None
    size = getattr(words, growth.words)
    read = sum(share * _disk(table, name, size) for name, share in growth.reads.items())
    memory = _gigabytes(config, table[rule], read)
    return Estimate(rule, growth.seconds.at(size) / 3600, 0.0, memory, growth.disk.at(size) / 1000)


def _disk(table: Mapping[str, JobNeeds], rule: str, size: float) -> float:
    """Return the megabytes of the outputs of a rule for text of a size in millions of words."""
    growth = table[rule].growth
    return growth.disk.at(size) if growth else 0.0


def _gigabytes(config: Mapping[str, Any], needs: JobNeeds, mb: float = 0.0) -> float:
    """Return the gigabytes of memory that a job with input of a size in MB requests."""
    return needed_memory(needs, config, lambda: mb) / 1000


def _hours(config: Mapping[str, Any], cost: Seconds, times: float) -> tuple[float, float]:
    """Return core hours and GPU hours, one of which is 0, for ``times`` repetitions."""
    on_gpu = config["rnn"]["device"] == "cuda"
    return (0.0, cost.gpu * times / 3600) if on_gpu else (cost.core * times / 3600, 0.0)


def _of_rnn(
    config: Mapping[str, Any], table: Mapping[str, JobNeeds], words: TextSizes, networks: int
) -> list[Estimate]:
    """Return estimates of training and scoring of the RNN Encoder-Decoders."""
    preset = config["rnn"]["preset"]
    settings = preset_with(RNN_PRESETS[preset], config["rnn"]["settings"])
    pairs = PAIRS.at(words.bitext)
    updates = settings.updates or settings.epochs * pairs * 1e6 / settings.batch
    hours = {
        "rnn_train": _hours(config, RNN_UPDATE[preset], updates * networks),
        "rnn_score": _hours(config, RNN_SCORE[preset], pairs * networks),
    }
    disk = {"rnn_train": 0.3 * networks, "rnn_score": 4 * pairs * networks / 1000}
    return [Estimate(row, *hours[row], _gigabytes(config, table[row]), disk[row]) for row in hours]


def _of_feed_forward(
    config: Mapping[str, Any], table: Mapping[str, JobNeeds], package: str, words: float, networks: int
) -> Estimate:
    """Return the estimate of training the CSLMs or the NNJMs on text of a number of words in millions."""
    presets: Mapping[str, Mapping[str, CslmSettings]] = {"cslm": CSLM_PRESETS, "nnjm": NNJM_PRESETS}
    preset, rule = config[package]["preset"], f"{package}_train"
    settings = preset_with(presets[package][preset], config[package]["settings"])
    updates = min(settings.epochs, EPOCHS) * words * 1e6 / settings.batch
    hours = _hours(config, UPDATE[package][preset], updates * networks)
    return Estimate(rule, *hours, _gigabytes(config, table[rule]), 0.3 * networks)


def _of_search(
    config: Mapping[str, Any], table: Mapping[str, JobNeeds], words: TextSizes, queried: list[list[str]]
) -> list[Estimate]:
    """Return estimates of tuning, where the runs of a system share the first decoding, and of decoding all sets.

    ``queried`` contains, for each system, the networks that its search queries.
    """
    read = _disk(table, "language_model", words.mono) + _disk(table, "filter_tables", words.bitext)
    runs, systems = config["tuning"]["runs"], len(queried)
    layers = first_layers_mb(config)
    iterations, optimisation = config["tuning"]["iterations"], OPTIMISATION[config["tuning"]["optimiser"]]
    # the runs share the first decoding; after the iterations, the mean weights are decoded
    decoded = {"mert": words.dev * (1 + runs * iterations), "decode": words.sets * runs}
    optimised = {"mert": words.dev * runs * (iterations - 1), "decode": 0.0}
    sources = {"mert": words.dev, "decode": words.sets}
    rows = []
    for rule, number in decoded.items():
        core = (number * SEARCH + optimised[rule] * optimisation) * systems / 3600
        gpu = 0.0
        for network in (name for networks in queried for name in networks):
            hours = _hours(config, NEURAL[network][config[network]["preset"]], number)
            core, gpu = core + hours[0], gpu + hours[1]
        memory = _gigabytes(config, table[rule], read)
        line, source = table[rule].neural, _disk(table, "truecase", sources[rule]) / 2
        assert line is not None
        each = min(line.at(source), MOST_NEURAL_MEGABYTES)
        memory += max(sum(each + layers.get(name, 0.0) for name in networks) for networks in [*queried, []]) / 1000
        rows.append(Estimate(rule, core, gpu, memory, 0.1 * runs * systems))
    return rows


def lines(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the estimate that are printed with the plan of a run.

    There is a line for each rule with at least six minutes or one gigabyte of disk space, one for all other rules
    together, and the sum.
    """
    if (words := sizes_of(config)) is None:
        return
    rows = estimates(config)
    yield (
        f"Estimate for {words.bitext:,.0f} of {words.pool:,.0f} million target words of bitext and {words.mono:,.0f} "
        f"of {words.mono_pool:,.0f} million for the language models (docs/scale.md; GPU hours of an NVIDIA H200):"
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
