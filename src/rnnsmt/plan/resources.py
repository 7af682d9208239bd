"""Resources of the rules: memory, time, disk space, threads and GPU, in one table.

The rules request memory (``mem_mb``) and time (``runtime``) by the table, as linear functions of the size of their
input files in MB (compressed, if they are); the estimate of a plan (``rnnsmt.monitoring.estimate``) computes the same
memory from the number of words of the text. The factors were set on Multi30k, mini-wmt and ten million words of laws
by ``rnnsmt usage``. Memory that grows with the vocabulary grows more slowly than the text, so the requests for large
corpora are higher than necessary; ``--set-resources`` and profiles override the requests.

CPU seconds and disk space, of all jobs of a rule, are functions of millions of target words, fitted to runs of the
workflow on text of up to 3 million words (benchmarks/growth.py, docs/scale.md).
"""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rnnsmt.plan.config import is_demo_corpus, moses_has_joint_model

BUDGET_MB = 16000
"""Maximum memory limit in MB of stages with ``--memory-mb``, which write to disk beyond it."""

MEMORY_SHARE = 0.85
"""Share of the memory of one machine for its jobs; profiles/default limits the sum of their requests to it."""

LIMITED_SHARE = 0.47
"""Maximum share of the memory of all jobs for a stage with ``--memory-mb``: two of them run at the same time."""

SNAKEMAKE_MB = 300
"""Memory of Snakemake itself in a job on a cluster, in MB."""

DAY = 1440
"""Minutes of a job on a cluster that saves a checkpoint before its time limit, and is resumed by the next attempt."""

TEN_YEARS = 10 * 365 * DAY
"""Minutes of the same job on one machine; in effect no limit."""


class Line(NamedTuple):
    """Linear function: ``base`` + ``slope`` x."""

    base: float
    slope: float = 0.0

    def at(self, x: float) -> float:
        """Return the value at x."""
        return self.base + self.slope * x


class Power(NamedTuple):
    """Power function of millions of words: ``factor`` x ^ ``exponent``."""

    factor: float
    exponent: float

    def at(self, words: float) -> float:
        """Return the value for millions of words."""
        return self.factor * words**self.exponent


class ByPreset(NamedTuple):
    """Memory in MB that depends on the preset of a network and not on the size of its text."""

    package: str
    demo: int
    small: int
    paper: int


@dataclass(frozen=True)
class Growth:
    """Usage of a rule as a function of millions of words, for the estimate of a plan.

    Attributes:
        words: field of ``rnnsmt.monitoring.estimate.TextSizes`` for the size of its text.
        seconds: CPU seconds of all its jobs.
        disk: megabytes of disk space of all its outputs.
        reads: rules whose outputs a job reads, and the share of these outputs; the size of its input is computed from
            their disk space.
    """

    words: str
    seconds: Line
    disk: Power
    reads: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class JobNeeds:
    """Resources of a rule.

    Attributes:
        memory: MB as a function of MB of input, or of the preset of a network.
        minutes: minutes as a function of MB of input; None for a job that saves a checkpoint and is resumed.
        most: maximum of ``memory``, for a stage that writes to disk beyond it.
        neural: additional memory of a search for each network that it queries, MB as a function of MB of source text.
        growth: usage as a function of words; None for rules that take seconds for any text, or were not measured.
        reads_limit: whether the command has the request as ``--memory-mb``, like those with ``most``.
    """

    memory: Line | ByPreset
    minutes: Line | None
    most: float = math.inf
    neural: Line | None = None
    growth: Growth | None = None
    reads_limit: bool = False


class SizedInput(Protocol):
    """Input files of a job."""

    @property
    def size_mb(self) -> float:
        """Return the size of the files in MB.

        Raises:
            FileNotFoundError: a file does not exist yet.
        """
        ...


MOST_STAGE_THREADS = 2
"""Maximum number of threads of a stage from text to tables, which reads two sides or uses two processes."""


def needs_of_rules(config: Mapping[str, Any], long: int = DAY) -> dict[str, JobNeeds]:
    """Return the resources of every rule, in the order of the pipeline.

    Args:
        config: a checked configuration.
        long: maximum number of minutes of a job.
    """
    text = Line(100 + 100 * MOST_STAGE_THREADS)
    runs = config["tuning"]["runs"]
    sets = 1 + sum(entry["role"] == "test" for entry in config["corpora"])
    decoding = Line(min(240 * sets * runs, long))
    aligners = 1 if config["alignment"]["external"] else len(config["alignment"]["aligners"])
    # A job reads the text once for every aligner; the disk space of `symmetrize` is that of two aligners.
    aligned = {"select_bitext": aligners, "symmetrize": aligners / 2}
    search, neural = Line(430, 10), Line(200, 37000)
    # the scores of the networks are cached for one decoding, not for all iterations of a tuning run
    decoded_once = Line(100, 18500)
    # A comparison scores finished translations only. 2,000 sentences: 440 MB with the CSLM, 460 with the joint model.
    compared = Line(300, 3000)
    # Moses computes the first layer of a joint model for every word of both sides at every position, and caches scores
    moses = Line(3500 if moses_has_joint_model(config) else 1500, 60)
    # fmt: off
    return {
        # corpus; the growth of truecase and prepare_bitext includes the monolingual corpora
        "demo": JobNeeds(Line(150), Line(10)),
        "fetch": JobNeeds(Line(100), Line(720)),
        "unpack": JobNeeds(Line(100), Line(15, 0.05)),
        "separate": JobNeeds(Line(150), Line(15, 0.05)),
        "prepare_bitext": JobNeeds(text, Line(15, 0.1), growth=Growth("text", Line(1.39, 5.63), Power(4.1, 0.943))),
        "prepare_mono": JobNeeds(text, Line(15, 0.1)),
        "raw_reference": JobNeeds(Line(200), Line(30)),
        "train_truecaser": JobNeeds(Line(150, 2), Line(10, 0.02), growth=Growth(
            "pool", Line(0.5, 1.07), Power(0.944, 0.479), {"prepare_bitext": 0.5})),
        "truecase": JobNeeds(text, Line(15, 0.1), growth=Growth("text", Line(1.41, 1.21), Power(4.06, 0.943))),
        "join_dev": JobNeeds(Line(100), Line(10)),
        # selection
        "selection_models": JobNeeds(Line(400, 20), Line(15, 0.05), growth=Growth(
            "pool", Line(4.8), Power(17.9, 0.00123), {"truecase": 0.5}), reads_limit=True),
        "selection_score_bitext": JobNeeds(text, Line(15, 0.05), growth=Growth(
            "pool", Line(0.757, 0.952), Power(0.22, 0.993))),
        "selection_score_mono": JobNeeds(text, Line(15, 0.05), growth=Growth(
            "mono_pool", Line(0.405, 0.55), Power(0.214, 0.993))),
        "select_bitext": JobNeeds(Line(400, 10), Line(30, 0.1), BUDGET_MB, growth=Growth(
            "pool", Line(0.54, 1.51), Power(4, 1), {"truecase": 1, "selection_score_bitext": 1})),
        "select_mono": JobNeeds(Line(400, 10), Line(30, 0.1), BUDGET_MB, growth=Growth(
            "mono_pool", Line(0.508, 1.41), Power(2.13, 0.999), {"truecase": 0.5, "selection_score_mono": 1})),
        "join_training": JobNeeds(Line(100), Line(15, 0.02)),
        # align
        "moses_align": JobNeeds(Line(2000, 300), Line(60, 10)),
        "align_words": JobNeeds(Line(430, 25), None, growth=Growth(
            "bitext", Line(0, 182), Power(4.3, 0.994), {"select_bitext": 1})),
        "align_cut": JobNeeds(Line(400, 40), Line(60, 1)),
        "align_count": JobNeeds(Line(400, 3), Line(30, 0.1)),
        "align_estimate": JobNeeds(Line(400, 3), Line(30, 0.1)),
        "align_links": JobNeeds(Line(350, 5), Line(30, 0.1)),
        "symmetrize": JobNeeds(Line(450), Line(15, 0.05), growth=Growth(
            "bitext", Line(3.27, 1.07), Power(2.18, 0.997))),
        "check_alignment": JobNeeds(Line(350), Line(15, 0.05)),
        # phrases
        "moses_train": JobNeeds(Line(3000, 10), Line(60, 1), reads_limit=True),
        "lexical": JobNeeds(Line(300, 2), Line(15, 0.05), growth=Growth(
            "bitext", Line(1.91, 1.4), Power(11.6, 0.606), aligned)),
        "extract": JobNeeds(Line(450, 150), Line(30, 0.1), BUDGET_MB, growth=Growth(
            "bitext", Line(0.567, 10.7), Power(78.3, 0.951), aligned)),
        "phrase_table": JobNeeds(Line(450, 15), Line(30, 0.05), BUDGET_MB, growth=Growth(
            "bitext", Line(7.08, 6.75), Power(145, 0.884), {"extract": 1, "lexical": 1})),
        "reordering_table": JobNeeds(Line(400, 15), Line(30, 0.05), BUDGET_MB, growth=Growth(
            "bitext", Line(2.1, 3.22), Power(34.2, 0.885), {"extract": 1})),
        "prune_table": JobNeeds(Line(300, 8), Line(30, 0.05), reads_limit=True),
        # lm
        "language_model": JobNeeds(Line(400, 60), Line(30, 0.5), BUDGET_MB, growth=Growth(
            "mono", Line(0.935, 1.3), Power(25.5, 0.824), {"select_mono": 1})),
        "interpolated_language_model": JobNeeds(Line(300, 18), Line(30, 0.1)),
        # rnn
        "rnn_prepare": JobNeeds(Line(400, 0.5), Line(15, 0.02), growth=Growth(
            "bitext", Line(5.25, 3.27), Power(230, 0.886), {"phrase_table": 1, "select_bitext": 1})),
        "rnn_train": JobNeeds(ByPreset("rnn", 700, 2800, 8000), None),
        "shortlist": JobNeeds(Line(300), Line(30)),
        "rnn_score": JobNeeds(ByPreset("rnn", 600, 1300, 4000), Line(30, 0.6)),
        # cslm
        "cslm_prepare": JobNeeds(Line(150), Line(15, 0.05)),
        "cslm_train": JobNeeds(ByPreset("cslm", 600, 2800, 8000), None),
        "cslm_perplexity": JobNeeds(Line(600, 10), Line(60)),
        "cslm_rescore": JobNeeds(
            Line(4000, 10) if config["cslm"]["unknown_in_lists"] == "lm" else ByPreset("cslm", 600, 1600, 4000), None),
        # nnjm
        "nnjm_prepare": JobNeeds(Line(300, 2), Line(15, 0.05)),
        "nnjm_train": JobNeeds(ByPreset("nnjm", 700, 1500, 8000), None),
        "nnjm_export": JobNeeds(ByPreset("nnjm", 600, 900, 1500), Line(30)),
        "nnjm_rescore": JobNeeds(ByPreset("nnjm", 900, 2500, 6000), None),
        # seq2seq
        "seq2seq_prepare": JobNeeds(Line(150, 3), Line(15, 0.1)),
        "seq2seq_train": JobNeeds(ByPreset("seq2seq", 700, 3200, 12000), None),
        "seq2seq_translate": JobNeeds(ByPreset("seq2seq", 600, 1600, 6000), Line(min(240 * sets, long))),
        "nbest_lists": JobNeeds(search, decoding, neural=decoded_once),
        "seq2seq_rescore": JobNeeds(ByPreset("seq2seq", 600, 1600, 6000), None),
        "even_weights": JobNeeds(Line(100), Line(10)),
        "tune_lists": JobNeeds(Line(400, 25), Line(120, 5)),
        "rerank": JobNeeds(Line(300, 9 / runs), Line(60, 1)),
        # moses; the growth of filter_tables is that of one text, and includes 8 bytes for every line that is kept
        "augment": JobNeeds(Line(350), Line(10, 0.02)),
        "moses_ini": JobNeeds(Line(100), Line(10)),
        "augmented_ini": JobNeeds(Line(100), Line(10)),
        "filter_tables": JobNeeds(Line(400), Line(10, 0.02), growth=Growth(
            "bitext", Line(2.53, 4.21), Power(19.6, 0.759))),
        "augment_filtered": JobNeeds(Line(350, 0.1), Line(10)),
        # tuning and evaluation
        "moses_tune": JobNeeds(moses, None),
        "mert": JobNeeds(search, None, neural=neural),
        "moses_decode": JobNeeds(moses, decoding),
        "decode": JobNeeds(search, decoding, neural=decoded_once),
        "detokenize_reference": JobNeeds(Line(200), Line(30)),
        "score": JobNeeds(Line(200), Line(30)),
        "table1": JobNeeds(Line(450), Line(120)),
        "provenance": JobNeeds(Line(250), Line(60)),
        # analysis and translation
        "learning_curve": JobNeeds(Line(250), Line(10)),
        "mert_curves": JobNeeds(Line(250), Line(10)),
        "bleu_curves": JobNeeds(Line(400), Line(60, 0.1)),
        "sentence_vectors": JobNeeds(Line(3000), Line(10)),
        "score_scatter": JobNeeds(Line(350), Line(10, 0.02)),
        "compare_systems": JobNeeds(search, Line(60), neural=compared),
        "phrase_examples": JobNeeds(Line(600, 2), Line(30, 0.05)),
        "embeddings": JobNeeds(Line(750, 2), Line(60)),
        "report_page": JobNeeds(Line(300, 5), Line(10)),
        "describe_system": JobNeeds(Line(250), Line(10)),
    }
    # fmt: on


def needed_memory(needs: JobNeeds, config: Mapping[str, Any], mb: Callable[[], float]) -> float:
    """Return the memory in MB of a job with ``mb()`` MB of input, which is called only if the memory depends on it."""
    if isinstance(needs.memory, ByPreset):
        return float(getattr(needs.memory, config[needs.memory.package]["preset"]))
    return min(needs.memory.at(mb() if needs.memory.slope else 0.0), needs.most)


CGROUP_OF_PROCESS, CGROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
"""File with the control groups of this process (Linux), and the directory of all control groups."""


def available_memory_mb() -> float:
    """Return the memory of this machine in MB, or the limit of a control group of this process if it is lower.

    Containers and batch systems limit the memory of processes by control groups, and the system kills processes that
    exceed the limit.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_cgroup_limits()]) / 1e6


def _cgroup_limits() -> Iterator[int]:
    """Yield the memory limits in bytes of the control groups of this process and of their parents, versions 1 and 2."""
    try:
        lines = CGROUP_OF_PROCESS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon:
            continue
        if not controllers:
            root, name = CGROUPS, "memory.max"
        elif "memory" in controllers.split(","):
            root, name = CGROUPS / "memory", "memory.limit_in_bytes"
        else:
            continue
        # in a container, the path may be that of the host, and only the limit of the root is visible
        group = Path(path.lstrip("/"))
        for directory in (group, *group.parents):
            with suppress(OSError, ValueError):  # version 2: "max" if there is no limit
                yield int((root / directory / name).read_text())


class Machine:
    """Machine on which the jobs of a run are executed: this machine, which they share, or the nodes of a cluster.

    Attributes:
        needs: resources by rule.
        gpu: number of GPUs that the job of a network requests: 0 or 1. A machine that submits jobs to a cluster cannot
            detect the GPUs of the cluster, so they must be requested by ``device: cuda``.
        device: device of networks, cpu or cuda. It is a resource of the jobs, so a change does not cause a rerun.
        long: ``runtime`` of a job that saves a checkpoint before its time limit and is resumed by the next attempt.
        stage_threads: threads of the stages from text to tables, at most half of the cores: otherwise they would wait
            for the end of a network's training, which may take hours on the other half. On a cluster, the maximum.
        search_threads: share of the cores for each system, so all systems are tuned at the same time.
        half: half of the cores.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        cores: int,
        memory_mb: float,
        has_gpu: bool,
        neural_mb: float,
        layer_mb: Mapping[str, float],
    ) -> None:
        """Describe the machine.

        Args:
            config: a checked configuration.
            cores: number of cores of this machine; 1 on a cluster, where the profile sets the threads.
            memory_mb: memory of all jobs of this machine together, in MB.
            has_gpu: whether this machine has a GPU.
            neural_mb: maximum memory in MB that a network in a search uses.
            layer_mb: additional memory of networks by name, see ``rnnsmt.monitoring.estimate``.
        """
        self.config, self.cores, self.neural_mb, self.layer_mb = config, cores, neural_mb, layer_mb
        self.is_cluster = config["cluster"]
        self.memory_mb = memory_mb
        device = config["rnn"]["device"]
        self.gpu = int(device == "cuda" or (device == "auto" and not self.is_cluster and has_gpu))
        self.device = device if self.gpu else "cpu"
        self.long = DAY if self.is_cluster else TEN_YEARS
        self.needs = needs_of_rules(config, self.long)
        self.half = max(1, cores // 2)
        self.stage_threads = MOST_STAGE_THREADS if self.is_cluster else min(self.half, MOST_STAGE_THREADS)
        if is_demo_corpus(config):  # a stage takes a second or two, and two stages with one thread each are faster
            self.stage_threads = 1
        self.search_threads = max(1, cores // len(config["compare"]))

    def _request(self, needs: JobNeeds, megabytes: float, attempt: int) -> int:
        """Return ``mem_mb`` of an attempt: Slurm kills jobs that use more, so every attempt requests more.

        On one machine, a job requests at most the memory of all jobs. Stages that read the request as ``--memory-mb``
        request less than half of it, so two of them fit into it. Another job that may need all of it runs alone.
        """
        needed = int(megabytes * attempt)
        if self.is_cluster:
            return needed + SNAKEMAKE_MB
        has_limit = needs.reads_limit or needs.most < math.inf
        return max(1, min(needed, int((LIMITED_SHARE if has_limit else 1.0) * self.memory_mb)))

    def memory(self, rule: str, input: SizedInput, attempt: int) -> int:
        """Return ``mem_mb`` of a rule."""
        needs = self.needs[rule]
        return self._request(needs, needed_memory(needs, self.config, lambda: input.size_mb), attempt)

    def search_memory(self, rule: str, input: Any, attempt: int) -> int:
        """Return ``mem_mb`` of a search: tables and language models, and for every network by the size of the text.

        ``input.network`` contains the networks of all training runs, of which a tuning run queries one.
        """
        needs = self.needs[rule]
        sources = {input.source} if isinstance(input.source, str) else set(input.source)
        size = sum(mb for path, mb in zip(input, input.size_files_mb, strict=True) if path in sources)
        neural = 0.0
        for name in {Path(model).parent.parent.name for model in input.network}:
            assert needs.neural is not None
            neural += min(needs.neural.at(size), self.neural_mb) + self.layer_mb.get(name, 0.0)
        return self._request(needs, neural + needed_memory(needs, self.config, lambda: input.size_mb), attempt)

    def threads_of_search(self, rule: str, input: Any, training: bool) -> int:
        """Return the threads of a search: more than ``search_threads`` if the memory is for fewer jobs than systems.

        training: whether a network is not trained yet. Its training takes up to half of the cores, for hours; a search
            that needs more than the others would wait for its end.
        """
        if self.is_cluster:
            return self.search_threads
        jobs = max(1, int(self.memory_mb / self.search_memory(rule, input, 1)))
        return max(self.search_threads, (self.half if training else self.cores) // jobs)

    def minutes(self, rule: str, input: SizedInput, attempt: int, parts: int = 1) -> int:
        """Return ``runtime`` of a rule in minutes; ``parts`` jobs share the work."""
        line = self.needs[rule].minutes
        if line is None:
            return self.long
        return int(line._replace(slope=line.slope / parts).at(input.size_mb if line.slope else 0.0) * attempt)

    def beside_tuning(self, most: int) -> int:
        """Return up to ``most`` threads, so that half of the cores remain for the tuning of other systems."""
        return min(self.half, most)

    def share(self, parts: int) -> int:
        """Return the threads of one of several jobs that run at the same time."""
        return max(1, self.cores // parts)
