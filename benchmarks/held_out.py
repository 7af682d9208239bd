"""Measure the effect of features on held-out training text: splits, runs of the workflow, pooled contrasts.

research/protocol.md describes the measurements and their reasons. Three steps, which do not repeat finished work:

    python benchmarks/held_out.py split --source train.en.xz --target train.fr.xz --dev val.en.xz val.fr.xz \\
        --kind random --output-dir WORK          # WORK/random1 ... random5: train, dev, test, config.yaml
    python benchmarks/held_out.py run WORK/random? --smoothing kneser-ney none --trainings 1 --cores 1
    python benchmarks/held_out.py report WORK/random?

The scores of the published figures are in benchmarks/held_out.tar.xz and benchmarks/e11/*.tar.xz: unpack them into WORK
(``for f in FILES; do tar xf $f -C WORK; done``), then run ``report``, ``claims``, ``optimizers`` or ``forest``.

``split --kind random`` draws five disjoint sets of 2,000 sentences; each of the five training texts consists of all
other sentences. ``--kind fresh`` draws eight more, of sentences that none of these sets has. ``--kind topics`` holds
out whole topics, i.e. clusters of tf-idf vectors; neither the training text nor the tuning text contains a sentence of
the topic.

``run`` runs the workflow on every split with each kind of phrase table. Text, alignment, language model and networks of
the second run are hard links to those of the first, so that nothing is trained twice.

``halves`` writes two splits with the same training text and two texts, each of which is the dev set of one split and
the test text of the other; ``run --same-training`` trains their models once.
"""

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.reading import read_json, read_lines
from rnnsmt.base.writing import write_json, write_lines
from rnnsmt.bleu.batch import bleu_of_many
from rnnsmt.corpus.training_overlap import NgramOverlap
from rnnsmt.evaluation.scores import read_score

SPLITS = 5
SENTENCES = 2000
USED_BEFORE = 20261122
"""Seed of the 2,000 sentences of earlier comparisons (research/worth.md), which are never drawn again."""
SEED = 20261124
FRESH_SPLITS, FRESH_SEED = 8, 20261128
"""Number of the splits of E11, and the seed with which their sentences are drawn."""
E11_OPTIMIZERS = ("moses", "mert", "mert-averaged", "mira")
"""Optimizers of E11; moses is `mert-moses.pl`."""
SHARED = ("corpus", "align", "phrases", "rnn", "cslm", "nnjm", "selection", "downloads")
"""Directories below results/ that do not depend on the smoothing of the phrase table."""
MODELS = [
    "results/model/moses.ini",
    "results/model/selected/all/phrase-table.binary.safetensors",
    "results/augmented/rnn/network1/selected/all/phrase-table.binary.safetensors",
    *(f"results/augmented/{system}/network1/moses.ini" for system in ("rnn", "cslm", "cslm_rnn")),
    "results/cslm/network1/model.safetensors",
    "results/model/lm.binary.safetensors",
]
"""Files that `tuning.py` needs of a split."""
CHECKOUT = Path(__file__).resolve().parents[1]


def random_splits(source: list[str]) -> list[list[int]]:
    """Draw disjoint sets of sentences whose source sides are unique and that were not used in earlier comparisons."""
    counts = Counter(source)
    unique = [number for number, line in enumerate(source) if counts[line] == 1]
    used = set(random.Random(USED_BEFORE).sample(unique, SENTENCES))
    drawn = random.Random(SEED).sample([number for number in unique if number not in used], SPLITS * SENTENCES)
    return [sorted(drawn[k * SENTENCES : (k + 1) * SENTENCES]) for k in range(SPLITS)]


def _not_drawn(source: list[str]) -> list[int]:
    """Return the sentences whose source sides are unique and that are in no set before the fresh ones."""
    counts = Counter(source)
    unique = [number for number, line in enumerate(source) if counts[line] == 1]
    used = set(random.Random(USED_BEFORE).sample(unique, SENTENCES)).union(*random_splits(source))
    return [number for number in unique if number not in used]


def fresh_splits(source: list[str]) -> list[list[int]]:
    """Draw disjoint sets of sentences whose source sides are unique and that are in no set of `random_splits`."""
    drawn = random.Random(FRESH_SEED).sample(_not_drawn(source), FRESH_SPLITS * SENTENCES)
    return [sorted(drawn[k * SENTENCES : (k + 1) * SENTENCES]) for k in range(FRESH_SPLITS)]


def unused_sentences(source: list[str]) -> list[int]:
    """Return the sentences whose source sides are unique and that are in no random or fresh set, in order.

    They are the held-out set of workflow/configs/multi30k.yaml.
    """
    drawn = set().union(*fresh_splits(source))
    return [number for number in _not_drawn(source) if number not in drawn]


def topic_splits(source: list[str], dev: list[str]) -> tuple[list[list[int]], list[list[int]], list[list[str]]]:
    """Cluster the sentences by topic; return the tightest clusters, their dev sentences and their typical words.

    The vectors are tf-idf of words that occur in at most 3 % of the sentences (this excludes "man" and "red"), reduced
    to 50 dimensions by singular value decomposition and normalised to length 1; k-means with 16 clusters. Of the
    clusters of 1,000 to 2,000 sentences, the five with the largest mean cosine between a sentence and the centre of its
    cluster are returned.
    """
    from sklearn.cluster import KMeans
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    words = TfidfVectorizer(
        stop_words="english", min_df=5, max_df=0.03, sublinear_tf=True, token_pattern=r"[^ ]*[a-z][^ ]*"
    )
    table = words.fit_transform(source)
    svd = TruncatedSVD(50, random_state=0)
    vectors = normalize(svd.fit_transform(table))
    clusters = KMeans(n_clusters=16, random_state=SEED, n_init=5).fit(vectors)
    labels, centres = clusters.labels_, normalize(clusters.cluster_centers_)
    dev_labels = clusters.predict(normalize(svd.transform(words.transform(dev))))
    cosine = (vectors * centres[labels]).sum(1)
    sizes = np.bincount(labels)
    fitting = [k for k in range(len(sizes)) if 1000 <= sizes[k] <= 2000]
    chosen = sorted(fitting, key=lambda k: -cosine[labels == k].mean())[:SPLITS]
    names = words.get_feature_names_out()
    typical = [
        [str(names[i]) for i in np.asarray(table[labels == k].mean(0)).ravel().argsort()[::-1][:8]] for k in chosen
    ]
    return (
        [np.flatnonzero(labels == k).tolist() for k in chosen],
        [np.flatnonzero(dev_labels == k).tolist() for k in chosen],
        typical,
    )


def config_of(directory: Path) -> dict[str, object]:
    """Return the configuration of a split: tokenised text, presets `small`, batch MIRA.

    If the directory has a file ``mono.fr``, it is additional text for the language models.
    """
    roles = {"train": "bitext", "val": "dev", "test": "test"}
    corpora = [
        {"name": name, "role": role, "source": f"{name}.en", "target": f"{name}.fr"} for name, role in roles.items()
    ]
    if (directory / "mono.fr").is_file():
        corpora.append({"name": "mono", "role": "mono", "target": "mono.fr"})
    return {
        "data_dir": str(directory.resolve()),
        "corpora": corpora,
        "text": {"normalize": False, "tokenize": False, "escape": False, "truecase": False},
        "selection": {"bitext": 1, "mono": 1},
        "rnn": {"preset": "small", "vocab_size": 15000},
        "cslm": {"preset": "small"},
        "tuning": {"optimizer": "mira"},
        "compare": ["baseline", "rnn", "cslm", "cslm_rnn"],
    }


def unused(args: argparse.Namespace) -> None:
    """Print the line numbers of the sentences that are in no random or fresh set."""
    print(*(number + 1 for number in unused_sentences(list(read_lines(args.source)))), sep=", ")


def split(args: argparse.Namespace) -> None:
    """Write the directories of the splits."""
    source, target = list(read_lines(args.source)), list(read_lines(args.target))
    dev = [list(read_lines(path)) for path in args.dev]
    if args.kind == "topics":
        held_out, left_out_of_dev, typical = topic_splits(source, dev[0])
    else:
        held_out = fresh_splits(source) if args.kind == "fresh" else random_splits(source)
        left_out_of_dev, typical = [[] for _ in held_out], [[] for _ in held_out]
    for number, rows in enumerate(held_out, 1):
        directory = Path(args.output_dir) / f"{args.kind}{number}"
        directory.mkdir(parents=True, exist_ok=True)
        inside, dropped = set(rows), set(left_out_of_dev[number - 1])
        for lang, lines, dev_lines in (("en", source, dev[0]), ("fr", target, dev[1])):
            write_lines(directory / f"train.{lang}", [line for k, line in enumerate(lines) if k not in inside])
            write_lines(directory / f"test.{lang}", [lines[k] for k in rows])
            write_lines(directory / f"val.{lang}", [line for k, line in enumerate(dev_lines) if k not in dropped])
        about = {"kind": args.kind, "lines": rows, "dropped from dev": sorted(dropped), "words": typical[number - 1]}
        write_json(directory / "split.json", about)
        write_json(directory / "config.yaml", config_of(directory))
        print(directory, len(rows), "sentences held out,", len(dropped), "left out of dev", *typical[number - 1])


def halves(args: argparse.Namespace) -> None:
    """Write two splits with the same training text and with dev and test text exchanged."""
    first, second = (Path(args.output_dir) / f"{args.name}{number}" for number in (1, 2))
    for directory, dev, test in ((first, args.texts[0], args.texts[1]), (second, args.texts[1], args.texts[0])):
        directory.mkdir(parents=True, exist_ok=True)
        for side, lang in enumerate(("en", "fr")):
            write_lines(directory / f"val.{lang}", read_lines(dev[side]))
            write_lines(directory / f"test.{lang}", read_lines(test[side]))
    training = {"train.en": args.source, "train.fr": args.target} | ({"mono.fr": args.mono} if args.mono else {})
    for name, path in training.items():
        write_lines(first / name, read_lines(path))
        # hard links, so that the second training text is not newer than the models that both splits share
        (second / name).unlink(missing_ok=True)
        os.link(first / name, second / name)
    for directory in (first, second):
        write_json(directory / "config.yaml", config_of(directory))
        print(directory)


def snakemake(directory: Path, cores: int, settings: Sequence[str], *targets: str) -> None:
    """Run the workflow of a split for some targets.

    Only files that are older than their inputs are created again, so that a split that was started with an earlier
    version of the package keeps its networks.
    """
    command = [sys.executable, "-m", "snakemake", *targets, "--snakefile", str(CHECKOUT / "Snakefile")]
    command += [
        "--rerun-triggers",
        "mtime",
        "input",
        "--cores",
        str(cores),
        "--directory",
        str(directory),
        "--configfile",
        str(directory.parent / "config.yaml"),
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": str(cores)}
    status = subprocess.run([*command, "--config", *settings], check=False, env=environment).returncode
    if status:
        raise SystemExit(f"{directory}: the workflow ended with exit status {status}")


def link_shared(other: Path, directory: Path) -> None:
    """Link the files that do not depend on the smoothing from one run into another; existing files are kept."""
    results = other / "results"
    paths = [path for name in SHARED for path in (results / name).rglob("*")]
    paths += [*results.glob("model/lex.*"), *results.glob("model/reordering-table*")]
    link_files(paths, results, directory / "results")


def link_training(other: Path, directory: Path) -> None:
    """Link the files that depend only on the training text from the run of one split into that of another."""
    results = other / "results"
    paths = [path for name in SHARED for path in (results / name).rglob("*")] + list((results / "model").glob("*"))
    of_texts = re.compile(r"(dev|val|test|all)\b")
    link_files([path for path in paths if not of_texts.match(path.name)], results, directory / "results")


def link_files(paths: Sequence[Path], root: Path, new_root: Path) -> None:
    """Create hard links to files in another directory tree; existing files are kept."""
    for path in filter(Path.is_file, paths):
        new = new_root / path.relative_to(root)
        if not new.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, new)


def run(args: argparse.Namespace) -> None:
    """Run the workflow on every split with every kind of table."""
    settings = [f"tuning={{runs: {args.trainings}}}", f"networks={{seeds: {args.trainings}}}", *args.config]
    for directory in map(Path, args.split):
        runs = [directory / smoothing for smoothing in args.smoothing]
        for here, smoothing in zip(runs, args.smoothing, strict=True):
            own = [*settings, f"phrases={{smoothing: {smoothing}}}"]
            table = here / "results/model/phrase-table.gz"
            here.mkdir(exist_ok=True)
            if args.same_training and directory != Path(args.split[0]):
                link_training(Path(args.split[0]) / smoothing, here)
            elif here != runs[0]:
                link_shared(runs[0], here)
                snakemake(here, args.cores, own, str(table.relative_to(here)))
                # both tables have the same pairs, so files that were created from them are up to date
                shutil.copystat(runs[0] / table.relative_to(here), table)
            snakemake(here, args.cores, own, *(MODELS if args.models else ["results/table1.tsv"]))


CONTRASTS: dict[str, dict[str, int]] = {
    "A = RNN - Baseline": {"rnn": 1, "baseline": -1},
    "B = (CSLM + RNN) - CSLM": {"cslm_rnn": 1, "cslm": -1},
    "I = B - A": {"cslm_rnn": 1, "cslm": -1, "rnn": -1, "baseline": 1},
    "C = CSLM - Baseline": {"cslm": 1, "baseline": -1},
}
"""Estimands: coefficient of each system in a sum of BLEU scores."""

OF_THE_PAPER = {"A = RNN - Baseline": 0.57}
"""The paper's figure of a contrast, newstest2014; it published no interval, and none of the other contrasts."""

PRIMARY = list(CONTRASTS)[:2]
"""Contrasts whose p-values are corrected together, for the kinds of splits that the protocol names."""

RESAMPLES = 2000
"""Number of resamples of the bootstrap over sentences."""


class Split(NamedTuple):
    """Results of a split: BLEU statistics ``[R, S, 9]`` by system, and the overlap of every sentence [S]."""

    name: str
    statistics: dict[str, NDArray[np.int64]]
    overlap: NDArray[np.float64]


def overlap_with(source: Sequence[str], train: Sequence[str]) -> NDArray[np.float64]:
    """Return for every source sentence the mean share of its n-grams, n = 1 to 4, that occur in the training text."""
    overlap = NgramOverlap()
    sentences = [line.split() for line in source]
    for words in sentences:
        overlap.add(words)
    for line in train:
        overlap.read_training(line.split())
    return np.array([overlap.of(words) for words in sentences])


def read_split(
    directory: Path, smoothing: str, systems: Sequence[str], runs_used: Sequence[int] | None = None
) -> Split | None:
    """Read the results of a split for the runs that all systems have; return None if there are none.

    runs_used: numbers of the runs to read; None: all.
    """
    runs = [
        {
            int(path.parent.name[3:]): path
            for path in (directory / smoothing / "results/systems" / name).glob("run*/test.bleu.json")
        }
        for name in systems
    ]
    numbers = sorted(set.intersection(*map(set, runs), *([set(runs_used)] if runs_used else [])))
    if not numbers:
        return None
    statistics = {
        name: np.array([read_score(paths[number]).sentences for number in numbers], np.int64)
        for name, paths in zip(systems, runs, strict=True)
    }
    return Split(directory.name, statistics, overlap_of(directory))


def overlap_of(directory: Path) -> NDArray[np.float64]:
    """Return the overlap of every sentence of a split, from its texts or, in an archive, from ``overlap.json``."""
    if (directory / "overlap.json").is_file():
        return np.array(read_json(directory / "overlap.json"))
    return overlap_with(list(read_lines(directory / "test.en")), list(read_lines(directory / "train.en")))


def archive(args: argparse.Namespace) -> None:
    """Write the score files of splits into one archive; `report` can read them after unpacking.

    A score file contains the BLEU statistics of every sentence; the archive contains no text. Results of `tuning.py`
    (dev BLEU, CPU seconds) are packed with them.
    """
    number = 0
    with tarfile.open(args.output, "w:xz") as tar:
        for directory in map(Path, args.split):
            scores = sorted(directory.glob("*/results/systems/*/run*/test.bleu.json"))
            others = sorted(directory.glob("tuning/*/*/run*/result.json"))
            if scores:
                write_json(directory / "overlap.json", overlap_of(directory).tolist())
                others.append(directory / "overlap.json")
            for path in [*others, *scores]:
                member = tar.gettarinfo(path, str(path.relative_to(directory.parent)))
                member.uid = member.gid = member.mtime = 0
                member.uname = member.gname = ""
                with path.open("rb") as file:
                    tar.addfile(member, file)
            number += len(scores)
    if not number:
        Path(args.output).unlink()
        raise SystemExit("no split has a score file (SMOOTHING/results/systems/SYSTEM/run*/test.bleu.json)")
    print(args.output, number, "score files")


def bleu(
    splits: Sequence[Split], system: str, times: Sequence[NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """Return BLEU of the pooled sentences, mean over runs, [n].

    times: for every split, the count of each sentence in each of n resamples, ``[n, S]``.
    """
    R = trainings(splits)
    runs = []
    for r in range(R):
        sums = [
            (np.ones((1, split.statistics[system].shape[1])) if times is None else times[k])
            @ split.statistics[system][r]
            for k, split in enumerate(splits)
        ]
        runs.append(bleu_of_many(np.sum(sums, axis=0)))
    return np.mean(runs, axis=0)


def trainings(splits: Sequence[Split]) -> int:
    """Return the number of training runs that every system of every split has."""
    return min(len(rows) for split in splits for rows in split.statistics.values())


def contrast(
    splits: Sequence[Split], weights: Mapping[str, float], times: Sequence[NDArray[np.float64]] | None = None
) -> NDArray[np.float64]:
    """Return a sum of BLEU of the pooled sentences, [n] for n resamples."""
    return np.sum([weight * bleu(splits, system, times) for system, weight in weights.items()], axis=0)


TUNING_VARIANCE = {"mert": 0.09**2, "mira": 0.04**2}
"""Variance of BLEU over tuning seeds, of one system (E6, benchmarks/tuning.md); used where tuning was not repeated."""

NETWORK_VARIANCE = 0.09**2
"""Variance of BLEU over networks of one kind (E9, benchmarks/tuning.md); used where training was not repeated."""


def optimizer_of(name: str) -> str:
    """Return the optimizer whose noise results have, by the beginning of their name: mert- and moses- are MERT."""
    return "mert" if name.startswith(("mert", "moses")) else "mira"


def assumed_variance(weights: Mapping[str, float], split: str, runs: int, only_networks: bool) -> float:
    """Return the variance of a contrast due to one network of each kind and, unless only_networks, to tuning.

    Systems with the same network have the same error, so a network counts with the sum of the factors of its systems.

    split: name of the split, which begins with the optimizer unless the names of the systems do (``by_optimizers``).
    """
    networks: defaultdict[str, float] = defaultdict(float)
    tuning = 0.0
    for name, weight in weights.items():
        optimizer, _, system = name.rpartition(":")
        for feature in set(system.split("_")) - {"baseline", "wp"}:
            networks[feature] += weight
        tuning += TUNING_VARIANCE[optimizer_of(optimizer or split)] * weight**2 / runs
    variance = NETWORK_VARIANCE * sum(factor**2 for factor in networks.values())
    return variance if only_networks else variance + tuning


class Estimate(NamedTuple):
    """A contrast with its 95 % interval over sentences, tuning, networks and, if there are several, splits.

    Attributes:
        value: mean over the splits of their contrasts, each the mean over its runs.
        p: two-sided p-value of the null hypothesis that the contrast is 0.
        detectable: smallest true contrast that would be detected with a power of 80 %.
        sentences: 95 % interval of the bootstrap over sentences only.
        within, between: variance of the contrast of one split due to sentences, tuning and networks, and the variance
            of the contrasts of the splits (nan for one split).
    """

    value: float
    by_split: list[float]
    interval: tuple[float, float]
    p: float
    detectable: float
    sentences: tuple[float, float]
    within: float
    between: float


def estimate(splits: Sequence[Split], weights: Mapping[str, float], networks: int | None = None) -> Estimate:
    """Estimate a contrast by the rule of the protocol (research/protocol.md, "One interval, two answers").

    Within a split, the runs of a system differ by tuning and, with as many networks as runs, by networks. What a split
    does not repeat is taken from E6 and E9 (``assumed_variance``). Splits are a random effect: the variance of their
    mean is the larger one of the variance within and that between them, divided by their number. It does not include
    the variation of what the splits have in common, most of the training text and the text that is tuned on.

    Args:
        networks: number of networks of each kind; None: as many as runs.
    """
    from scipy import stats

    runs, k = trainings(splits), len(splits)
    each, drawn, repeated = [], [], []
    for split, times in zip(splits, resamples(splits), strict=True):
        each.append(float(contrast([split], weights)[0]))
        drawn.append(contrast([split], weights, [times]))
        of_runs = [float(contrast([run_of(split, r)], weights)[0]) for r in range(runs)]
        repeated.append(float(np.var(of_runs, ddof=1)) / runs if runs > 1 else 0.0)
    measured = float(np.mean(repeated))
    if runs == 1 or networks == 1:
        assumed = assumed_variance(weights, splits[0].name, runs, only_networks=runs > 1)
    else:
        assumed = 0.0
    within = float(np.mean(np.var(drawn, axis=1))) + measured + assumed
    between = float(np.var(each, ddof=1)) if k > 1 else float("nan")
    larger = max(within, between) if k > 1 else within
    # only the repeated trainings have degrees of freedom that matter: Welch and Satterthwaite
    freedom = (larger / measured) ** 2 * k * (runs - 1) if measured else float("inf")
    value, error = float(np.mean(each)), (larger / k) ** 0.5
    t = float(stats.t.ppf(0.975, freedom))
    low, high = np.quantile(np.mean(drawn, axis=0), [0.025, 0.975])
    return Estimate(
        value=value,
        by_split=each,
        interval=(value - t * error, value + t * error),
        p=float(2 * stats.t.sf(abs(value) / error, freedom)),
        detectable=(t + float(stats.t.ppf(0.8, freedom))) * error,
        sentences=(float(low), float(high)),
        within=within,
        between=between,
    )


def shown(estimate: Estimate) -> str:
    """Return the value and the interval of an estimate."""
    value, low, high = (format(x, "+z.2f").replace("-", "−") for x in (estimate.value, *estimate.interval))
    return f"{value} ({low} to {high})"


def answers(interval: tuple[float, float], paper: float | None) -> str:
    """Return the two answers of the protocol: does the interval exclude 0, does it contain the figure of the paper?"""
    low, high = interval
    found = "not significant" if low <= 0 <= high else "significant" if low > 0 else "significant loss"
    if paper is None:
        return found
    if low <= 0 <= high and low <= paper <= high:
        return "inconclusive: 0 and the paper's figure"
    return f"{found}, {'smaller' if high < paper else 'larger' if low > paper else 'agrees'}"


def run_of(split: Split, run: int) -> Split:
    """Return a split with one of its runs."""
    return Split(split.name, {name: rows[run : run + 1] for name, rows in split.statistics.items()}, split.overlap)


def resamples(splits: Sequence[Split]) -> list[NDArray[np.float64]]:
    """Draw the count of each sentence in each resample of the bootstrap, for every split ``[n, S]``."""
    rng = np.random.default_rng(1)
    sizes = [len(split.overlap) for split in splits]
    return [rng.multinomial(size, np.full(size, 1 / size), RESAMPLES).astype(np.float64) for size in sizes]


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p-values for their number (Holm 1979)."""
    order = np.argsort(p_values)
    found, least = [0.0] * len(order), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * p_values[place]))
        found[place] = least
    return found


def bins(splits: Sequence[Split], number: int) -> list[tuple[float, float, list[Split]]]:
    """Divide the sentences of all splits into bins of nearly equal size by overlap.

    Sentences with equal overlap are in the same bin.

    Returns:
        For each bin its smallest and largest overlap and its sentences.
    """
    overlap = np.concatenate([split.overlap for split in splits])
    edges = np.unique(np.quantile(overlap, np.linspace(0, 1, number + 1)[1:-1]))
    found = []
    for k in range(len(edges) + 1):
        parts = []
        for split in splits:
            inside = np.searchsorted(edges, split.overlap, "right") == k
            if inside.any():
                statistics = {name: rows[:, inside] for name, rows in split.statistics.items()}
                parts.append(Split(split.name, statistics, split.overlap[inside]))
        if parts:
            of_bin = np.concatenate([part.overlap for part in parts])
            found.append((float(of_bin.min()), float(of_bin.max()), parts))
    return found


def slope(cut: Sequence[tuple[float, float, list[Split]]], weights: dict[str, int]) -> tuple[float, float, float]:
    """Fit a line to a contrast as a function of mean overlap; return its slope per 0.1 and the 95 % interval."""
    places = np.array([np.concatenate([part.overlap for part in parts]).mean() for _, _, parts in cut])
    values = np.array([contrast(parts, weights)[0] for _, _, parts in cut])
    drawn = np.array([contrast(parts, weights, resamples(parts)) for _, _, parts in cut])
    of = (places - places.mean()) / ((places - places.mean()) ** 2).sum() / 10
    low, high = np.quantile(of @ drawn, [0.025, 0.975])
    return float(of @ values), float(low), float(high)


def kind_of(split: Split) -> str:
    """Return the kind of a split: its name without its number."""
    return split.name.rstrip("0123456789")


def contrasts_table(
    splits: Sequence[Split], wanted: dict[str, dict[str, int]], networks: int | None
) -> dict[str, float]:
    """Print the contrasts of one kind of splits; return the p-values of the primary contrasts."""
    primary = {}
    head = ["contrast", "value", "95 %", "p", "answers", "detectable", "95 %, sentences only", "splits"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for name, weights in wanted.items():
        one = estimate(splits, weights, networks)
        if name in PRIMARY and kind_of(splits[0]) in ("random", "topics"):
            primary[f"{name[0]}, {kind_of(splits[0])}"] = one.p
        cells = [name, f"{one.value:+.2f}", "{:+.2f} to {:+.2f}".format(*one.interval), f"{one.p:.3f}"]
        cells += [answers(one.interval, OF_THE_PAPER.get(name)), f"{one.detectable:.2f}"]
        cells += ["{:+.2f} to {:+.2f}".format(*one.sentences), " ".join(f"{value:+.2f}" for value in one.by_split)]
        print("|", " | ".join(cells), "|")
    return primary


def report(args: argparse.Namespace) -> None:
    """Print BLEU and contrasts of the complete splits by kind, and contrasts by overlap."""
    wanted = ({} if args.only else CONTRASTS) | dict(map(parse_contrast, args.contrast))
    if not wanted:
        raise SystemExit("--only: give at least one --contrast")
    systems = list(dict.fromkeys(name for weights in wanted.values() for name in weights))
    for path in args.split:
        if not any((Path(path) / name).is_file() for name in ("test.en", "overlap.json")):
            raise SystemExit(f"{path}: is no directory of `held_out.py split`")
    printed = False
    for smoothing in args.smoothing:
        found = {path: read_split(Path(path), smoothing, systems, args.runs) for path in args.split}
        complete = [split for split in found.values() if split]
        printed = printed or bool(complete)
        if missing := [Path(path).name for path, split in found.items() if not split]:
            print(f"\n{smoothing}: not complete and left out: {', '.join(missing)}")
        primary: dict[str, float] = {}
        for kind in dict.fromkeys(map(kind_of, complete)):
            splits = [split for split in complete if kind_of(split) == kind]
            number = sum(len(split.overlap) for split in splits)
            runs = trainings(splits)
            heading = f"{kind}, {smoothing}: {len(splits)} splits, {number:,} sentences"
            print(f"\n### {heading}, {runs} training run(s) per split\n")
            print("BLEU: " + ", ".join(f"{name} {bleu(splits, name)[0]:.2f}" for name in systems) + "\n")
            primary |= contrasts_table(splits, wanted, args.networks)
        if primary:
            corrected = holm(list(primary.values()))
            print("\nHolm: " + ", ".join(f"{name} p {p:.3f}" for name, p in zip(primary, corrected, strict=True)))
        if complete and args.bins:
            cut = bins(complete, args.bins)
            print(f"\n### By overlap with the training text, {smoothing}, all splits\n")
            print("| overlap | sentences | " + " | ".join(wanted) + " |\n|---|---|" + "---|" * len(wanted))
            for low, high, parts in cut:
                cells = []
                for weights in wanted.values():
                    one = estimate(parts, weights)
                    cells.append(
                        "{:+.2f} ({:+.2f} to {:+.2f})".format(float(contrast(parts, weights)[0]), *one.sentences)
                    )
                size = sum(len(part.overlap) for part in parts)
                print("|", " | ".join([f"{low:.2f}-{high:.2f}", str(size), *cells]), "|")
            if len(cut) > 1:
                cells = ["{:+.2f} ({:+.2f} to {:+.2f})".format(*slope(cut, weights)) for weights in wanted.values()]
                print("|", " | ".join(["slope per 0.1 of overlap", "", *cells]), "|")
    if not printed:
        raise SystemExit(f"no split has the score files of all systems: {', '.join(systems)}")


def by_optimizers(
    directory: Path, number: int, optimizers: Sequence[str], systems: Sequence[str], runs: Sequence[int]
) -> Split:
    """Read these runs of split fresh``number`` under several optimizers; a system is named ``OPTIMIZER:SYSTEM``."""
    found: dict[str, NDArray[np.int64]] = {}
    overlap = np.zeros(0)
    for optimizer in optimizers:
        path = directory / f"{optimizer}-fresh{number}"
        if (split := read_split(path, "none", systems, runs)) is None:
            raise SystemExit(f"{path}: no score files of {', '.join(systems)}")
        found |= {f"{optimizer}:{system}": rows for system, rows in split.statistics.items()}
        overlap = split.overlap
    return Split(f"fresh{number}", found, overlap)


def optimizers(args: argparse.Namespace) -> None:
    """Print the differences of every pair of optimizers of E11 in A and in the mean BLEU of the systems of both.

    The networks of both are the same. Therefore only run 1 is used of ``mert-moses.pl``, and of what is compared with
    it: for its run 2, the networks of six splits were trained again. The others have runs 1 and 2.
    """
    for line in optimizers_table(Path(args.directory)):
        print(line)


def optimizers_table(directory: Path) -> list[str]:
    """Return the lines of the table of optimizers (benchmarks/tuning.md)."""
    lines = ["| optimizers | difference in A | difference of the mean held-out BLEU | systems |", "|---|---|---|---:|"]
    for one, other in combinations(E11_OPTIMIZERS, 2):
        moses = "moses" in (one, other)
        systems = ["baseline", "rnn"] if moses else ["baseline", "rnn", "cslm", "cslm_rnn"]
        runs = [1] if moses else [1, 2]
        both = [by_optimizers(directory, n, (one, other), systems, runs) for n in range(1, FRESH_SPLITS + 1)]
        signs = {one: 1, other: -1}
        of_a = {
            f"{name}:{system}": sign * CONTRASTS[PRIMARY[0]][system]
            for name, sign in signs.items()
            for system in systems[:2]
        }
        of_mean = {f"{name}:{system}": sign / len(systems) for name, sign in signs.items() for system in systems}
        cells = [" − ".join("`mert-moses.pl`" if name == "moses" else f"`{name}`" for name in signs)]
        cells += [shown(estimate(both, weights, networks=1)) for weights in (of_a, of_mean)]
        lines.append("| " + " | ".join([*cells, str(len(systems))]) + " |")
    return lines


class Text(NamedTuple):
    """A kind of test text of the published table: its splits, and how they are evaluated.

    Attributes:
        pattern: directories of the splits.
        networks: see ``estimate``.
        runs: numbers of the runs to use; None: all.
        drawn: label in the plot; empty: not drawn.
        systems: systems that the splits have; a contrast of others is left out.
    """

    label: str
    pattern: str
    networks: int | None = None
    smoothing: str = "none"
    runs: Sequence[int] | None = None
    drawn: str = ""
    systems: Sequence[str] = ("baseline", "rnn", "cslm", "cslm_rnn")

    def has(self, weights: Mapping[str, float]) -> bool:
        """Return whether the splits have the systems of a contrast."""
        return set(weights) <= set(self.systems)


PUBLISHED = [
    Text(
        "eight fresh splits of Multi30k, `mert-moses.pl` of Moses",
        "moses-fresh?",
        1,
        runs=(1, 2),
        drawn="eight fresh splits, mert-moses.pl",
        systems=("baseline", "rnn"),
    ),
    Text(
        "the same, first tuning seed only (main result until 2026-11-29)",
        "moses-fresh?",
        1,
        runs=(1,),
        systems=("baseline", "rnn"),
    ),
    Text("the same networks, MERT (default)", "mert-fresh?", 1, runs=(1, 2), drawn="the same networks, MERT"),
    Text("the same networks, averaged MERT", "mert-averaged-fresh?", 1, drawn="the same networks, averaged MERT"),
    Text("the same networks, MIRA", "mira-fresh?", 1, drawn="the same networks, MIRA"),
    Text(
        "five random splits of Multi30k, averaged MERT",
        "mert-half-random?",
        1,
        runs=(1,),
        drawn="five random splits, averaged MERT",
    ),
    Text(
        "five random splits of Multi30k, MIRA, the same networks",
        "mira-half-random?",
        1,
        runs=(1,),
        drawn="the networks of these splits, MIRA",
    ),
    Text("five random splits of Multi30k, MIRA, two networks of version 1.0.0", "random?"),
    Text("the same with smoothed phrase tables (default for your own corpora)", "random?", smoothing="kneser-ney"),
    Text("five topics that are not in the training text, MIRA, three networks", "topics?", drawn="five topics, MIRA"),
    Text("news: newstest2012 and 2013, each tuned on the other, MIRA", "news?", drawn="news, MIRA"),
    Text("laws, MIRA, training text of 3 million words", "laws3M"),
    Text("laws, MIRA, training text of 10 million words", "laws10M", 1, drawn="laws, 10 million words, MIRA"),
    Text("further laws, MIRA, networks trained again on 10 million words", "laws10Mcpu2"),
]
"""Rows of the published table of gains (docs/results.md)."""

PAPER_ROW = "the paper: newstest2014, MERT, training text of 348 million words"


def published(directory: Path, text: Text) -> list[Split]:
    """Read the splits of a row of the published table."""
    found = [
        split
        for path in sorted(directory.glob(text.pattern))
        if (split := read_split(path, text.smoothing, text.systems, text.runs)) is not None
    ]
    if not found:
        raise SystemExit(f"{directory}/{text.pattern}: no score files; unpack held_out.tar.xz and e11/*.tar.xz there")
    return found


def claims(args: argparse.Namespace) -> None:
    """Print the published table: the RNN's gains on every kind of text, with their intervals and answers."""
    for line in claims_table(Path(args.directory), PUBLISHED):
        print(line)


def claims_table(directory: Path, texts: Sequence[Text]) -> list[str]:
    """Return the lines of the published table."""
    names = list(CONTRASTS)[:2]
    lines = [
        "| test sentences, optimizer | sentences | RNN − Baseline | | (CSLM + RNN) − CSLM | |",
        "|---|---:|---|---|---|---|",
    ]
    lines.append(f"| {PAPER_ROW} | 3,003 | {OF_THE_PAPER[names[0]]:+.2f} | | not published | |")
    for text in texts:
        splits = published(directory, text)
        cells = [text.label, f"{sum(len(split.overlap) for split in splits):,}"]
        for name in names:
            if not text.has(CONTRASTS[name]):
                cells += ["not measured", ""]
                continue
            one = estimate(splits, CONTRASTS[name], text.networks)
            value = f"**{shown(one)}**" if one.interval[0] > 0 else shown(one)
            cells += [value, answers(one.interval, OF_THE_PAPER.get(name))]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def forest(args: argparse.Namespace) -> None:
    """Draw two contrasts of every kind of text with their 95 % intervals, by relative frequencies.

    All intervals are those of ``estimate``.
    """
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rnnsmt"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    axes.axvline(0, color="0.6", linewidth=1)
    labels = ["the paper: newstest2014, tuned by MERT"]
    axes.plot(OF_THE_PAPER[PRIMARY[0]], 0.12, "o", color="black")
    for row, text in enumerate((text for text in PUBLISHED if text.drawn), 1):
        splits = published(Path(args.directory), text)
        labels.append(f"{text.drawn} ({sum(len(split.overlap) for split in splits):,} sentences)")
        for name, colour, offset in zip(PRIMARY, ("black", "tab:blue"), (0.12, -0.12), strict=True):
            if not text.has(CONTRASTS[name]):
                continue
            one = estimate(splits, CONTRASTS[name], text.networks)
            axes.plot(one.interval, [offset - row] * 2, color=colour)
            axes.plot(one.value, offset - row, "o" if name == PRIMARY[0] else "s", color=colour)
            interval = "{:+.2f} to {:+.2f}".format(*one.interval)
            print(
                f"{labels[-1]}: {name} {one.value:+.2f} ({interval}); {answers(one.interval, OF_THE_PAPER.get(name))}"
            )
    axes.set_yticks([-row for row in range(len(labels))], labels)
    axes.set_xlabel("difference in BLEU, 95 % interval")
    for name, colour, marker in zip(PRIMARY, ("black", "tab:blue"), "os", strict=True):
        axes.plot([], [], marker, color=colour, label=name.partition(" = ")[2].replace("-", "\u2212"))
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(args.output, metadata={"Date": None}, facecolor="white")


def power(args: argparse.Namespace) -> None:
    """Print how often the interval of `estimate` excludes 0 above, by simulation of normally distributed contrasts."""
    from scipy import stats

    rng = np.random.default_rng(1)
    print("| splits | true contrast | sd of a split beyond W | standard error | above 0 |\n" + "|---" * 5 + "|")
    for true, heterogeneity in product((0.0, *args.contrast), (0.0, *args.heterogeneity)):
        spread = (args.within + heterogeneity**2) ** 0.5
        each = rng.normal(true, spread, (args.simulations, args.splits))
        between = each.var(1, ddof=1) if args.splits > 1 else 0.0
        limits = stats.norm.ppf(0.975) * (np.maximum(args.within, between) / args.splits) ** 0.5
        found = float((each.mean(1) > limits).mean())
        cells = [str(args.splits), f"{true:.2f}", f"{heterogeneity:.2f}", f"{spread / args.splits**0.5:.3f}"]
        print("|", " | ".join([*cells, f"{found:.1%}"]), "|")


def parse_contrast(text: str) -> tuple[str, dict[str, int]]:
    """Parse a contrast: its name, and the factor of each system.

    ``D=cslm_rnn-cslm`` or ``I=cslm_rnn-cslm-rnn+baseline``; with spaces, names may contain a plus:
    ``L=baseline+nnjm - baseline``.
    """
    label, _, sum_of = text.partition("=")
    if " " in sum_of.strip():
        terms = re.findall(r"(?:^|\s)([+-]?)\s*([a-z0-9_][a-z0-9_+]*)", sum_of.strip())
    else:
        terms = re.findall(r"([+-]?)([a-z0-9_]+)", sum_of)
    found: dict[str, int] = {}
    for sign, name in terms:
        found[name] = found.get(name, 0) + (-1 if sign == "-" else 1)
    if not label or not found:
        raise SystemExit(f"--contrast {text}: write NAME=SYSTEM-SYSTEM")
    return label, found


def add_figures(commands: Any) -> None:
    """Add the subcommands that make published figures."""
    new = commands.add_parser("power", help="simulate how often the interval excludes 0")
    new.add_argument("--splits", type=int, default=5)
    new.add_argument("--within", type=float, required=True, help="W: variance of the contrast of one split")
    new.add_argument("--contrast", type=float, nargs="*", default=[], help="true contrasts, in addition to 0")
    new.add_argument("--heterogeneity", type=float, nargs="*", default=[], help="standard deviations of the splits")
    new.add_argument("--simulations", type=int, default=200000)
    new.set_defaults(function=power)
    new = commands.add_parser("claims", help="print the table of gains in docs/results.md")
    new.add_argument("directory", help="directory in which held_out.tar.xz and e11/*.tar.xz were unpacked")
    new.set_defaults(function=claims)
    new = commands.add_parser("optimizers", help="compare the optimizers of E11")
    new.add_argument("directory", help="directory in which e11/*.tar.xz were unpacked")
    new.set_defaults(function=optimizers)
    new = commands.add_parser("forest", help="draw the gains on every kind of text")
    new.add_argument("directory", help="directory in which held_out.tar.xz and e11/*.tar.xz were unpacked")
    new.add_argument("--output", required=True, metavar="FILE.svg")
    new.set_defaults(function=forest)


def main() -> None:
    """Parse the command line and run the subcommand."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    new = commands.add_parser("split", help="write training, dev and test text of every split")
    new.add_argument("--source", required=True, help="source side of the training text")
    new.add_argument("--target", required=True, help="target side of the training text")
    new.add_argument("--dev", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="text for tuning")
    new.add_argument("--kind", choices=("random", "fresh", "topics"), required=True, help="what is held out")
    new.add_argument("--output-dir", required=True)
    new.set_defaults(function=split)
    new = commands.add_parser("unused", help="print the numbers of the lines that no random or fresh set has")
    new.add_argument("--source", required=True, help="source side of the training text")
    new.set_defaults(function=unused)
    new = commands.add_parser("halves", help="write two splits with dev and test text exchanged")
    new.add_argument("--source", required=True, help="source side of the training text")
    new.add_argument("--target", required=True, help="target side of the training text")
    new.add_argument("--mono", metavar="FILE", help="further text for the language models")
    new.add_argument(
        "--texts", nargs=2, action="append", required=True, metavar=("SOURCE", "TARGET"), help="given twice: a text"
    )
    new.add_argument("--name", default="half", help="name of the splits, before their numbers")
    new.add_argument("--output-dir", required=True)
    new.set_defaults(function=halves)
    new = commands.add_parser("run", help="run the workflow on every split")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--smoothing", nargs="+", default=["kneser-ney", "none"], help="of the phrase table")
    new.add_argument("--trainings", type=int, default=1, help="networks of each kind, and tuning runs")
    new.add_argument("--cores", type=int, default=1)
    new.add_argument("--config", nargs="*", default=[], help="further settings, as --config of snakemake")
    new.add_argument("--models", action="store_true", help="only make the models, for `tuning.py`")
    new.add_argument("--same-training", action="store_true", help="train models once, for the first split (`halves`)")
    new.set_defaults(function=run)
    new = commands.add_parser("archive", help="pack the score files of splits")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--output", required=True, metavar="FILE.tar.xz")
    new.set_defaults(function=archive)
    new = commands.add_parser("report", help="print BLEU and contrasts")
    new.add_argument("split", nargs="+", help="directories of splits")
    new.add_argument("--smoothing", nargs="+", default=["none", "kneser-ney"])
    new.add_argument("--contrast", nargs="*", default=[], metavar="NAME=rnn_blind-rnn", help="further contrasts")
    new.add_argument("--only", action="store_true", help="print only the contrasts of --contrast")
    new.add_argument("--runs", type=int, nargs="+", metavar="N", help="training runs to use (default: all)")
    new.add_argument(
        "--networks", type=int, metavar="N", help="networks of each kind of a split (default: as many as runs)"
    )
    new.add_argument("--bins", type=int, default=5, help="bins of overlap; 0: none")
    new.set_defaults(function=report)
    add_figures(commands)
    args = parser.parse_args()
    args.function(args)


if __name__ == "__main__":
    main()
