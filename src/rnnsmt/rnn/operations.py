"""Operations on the RNN Encoder-Decoder."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rnnsmt.base.arguments import (
    SAVE_EVERY,
    THREADS,
    CheckpointDir,
    InputDirectory,
    InputFile,
    OptionalOutput,
    OutputDirectory,
    OutputFile,
    Positive,
    SaveEvery,
    Seed,
    Text,
    TextFiles,
    Texts,
    Threads,
    TimeLimit,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Values, Written, operation
from rnnsmt.base.paths import StrPath
from rnnsmt.config.sections import Device, Rnn, VocabSize
from rnnsmt.networks.settings import Presets
from rnnsmt.rnn.settings import PRESETS, RnnSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.rnn.training import RnnTask


def _parse_shard(text: str) -> tuple[int, int]:
    """Parse ``K/N``, or ``K-of-N`` as Snakemake's scattergather writes it."""
    match = re.fullmatch(r"(\d+)[/-](?:of-)?(\d+)", text)
    if match is None or not _is_shard(shard := (int(match[1]), int(match[2]))):
        raise ValueError("must be K/N with K from 1 to N, for example 2/8")
    return shard


def _is_shard(shard: tuple[int, int]) -> bool:
    """Return whether K of a shard (K, N) is from 1 to N."""
    return 1 <= shard[0] <= shard[1]


def _check_shard(shard: tuple[int, int]) -> None:
    """Check a shard of a call from Python."""
    if not _is_shard(shard):
        raise ValueError("must be (K, N) with K from 1 to N, for example (2, 8)")


Shard = Annotated[tuple[int, int], Field(metavar="K/N", parse=_parse_shard, check=_check_shard)]


class TableColumn(NamedTuple):
    """A number for every line of a phrase table; a path, as arguments of functions are, if there is an output file.

    Attributes:
        values: float32, in the order of the table; mapped from the output file if there is one.
        figures: statistics of the values, by name.
        path: the output file, if there is one.
    """

    values: "NDArray[np.float32]"
    figures: dict[str, object]
    path: Path | None = None

    def __fspath__(self) -> str:
        """Return the path of the output file as a string."""
        if self.path is None:
            raise InputError("the values were not written to a file")
        return str(self.path)


@operation(version=3)
def prepare(
    phrase_table: InputFile,
    source: Texts,
    target: Texts,
    output_dir: OutputDirectory,
    *,
    vocab_size: VocabSize = Rnn.vocab_size,
    max_length: Positive = 50,
) -> Written:
    r"""Convert a phrase table into memory-mapped arrays of word ids, with the vocabularies of the training corpus.

    The pairs are in phrase table order; the counts of the table are ignored. The vocabulary of a side consists of the
    most frequent words of that side of the corpus; all other words are mapped to UNK.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn prepare --phrase-table results/model/phrase-table.gz --vocab-size 1500 \
            --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --output-dir try/pairs

    Args:
        phrase_table: phrase table in Moses format.
        source: source side of the parallel corpus, tokenised.
        target: target side of the parallel corpus, tokenised.
        output_dir: output directory.
        max_length: maximum phrase length in words; longer phrases are an error.

    Returns:
        The directory; its figures are the number of pairs, and the share of the words of each side of the corpus that
        are in the vocabulary.

    Raises:
        InputError: the sides differ in length, the table is empty, or a phrase is longer than ``max_length``.
    """
    from rnnsmt.rnn.pairs import prepare_pairs

    with TextFiles() as files:
        texts = files.all_of("source", source), files.all_of("target", target)
        figures = prepare_pairs(str(phrase_table), *texts, str(output_dir), size=vocab_size, max_length=max_length)
    return Written(Path(output_dir), figures)


@operation(version=7)
def train(
    pairs: InputDirectory,
    output_model: OutputFile,
    output_history: OutputFile,
    checkpoint_dir: CheckpointDir,
    *,
    settings: Annotated[RnnSettings, Field(group=Presets(PRESETS, "small"))] = PRESETS["small"],
    seed: Seed = 1,
    save_every: SaveEvery = SAVE_EVERY,
    time_limit: TimeLimit | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Written:
    r"""Train the RNN Encoder-Decoder (Cho et al. 2014) on phrase pairs.

    Input is the directory written by `rnn prepare`; outputs are the network and its learning curve (JSON).

    ``checkpoint_dir`` contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
    ``threads``, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly before
    ``time_limit``, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again to
    resume.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn train --pairs try/pairs --preset demo --epochs 2 --seed 1 --output-model try/rnn.safetensors \
            --output-history try/rnn.json --checkpoint-dir try/rnn.checkpoint --threads 2

    Args:
        pairs: directory written by `rnn prepare`.
        output_model: output file: the trained network.
        output_history: output file: settings and learning curve (JSON).
        settings: sizes of the network and settings of its training, such as RnnSettings.preset("demo", epochs=2).

    Returns:
        The network; its figures are the results of the training run.

    Raises:
        InputError: a file is missing or malformed, the checkpoint is that of a training run with other settings, the
            loss became infinite, or torch is not installed.
        KeyboardInterrupt: after Ctrl-C, with the checkpoint saved.
        SystemExit: 75 after SIGTERM or at the time limit, with the checkpoint saved.
    """
    from rnnsmt.networks.run_training import run_training

    def make_task(setup: "DeviceSetup") -> "RnnTask":
        from rnnsmt.rnn.pairs import Pairs
        from rnnsmt.rnn.training import RnnTask

        return RnnTask(Pairs.open(pairs), settings, seed, setup)

    return run_training(
        make_task,
        settings,
        (output_model, output_history),
        (checkpoint_dir, save_every, time_limit),
        device,
        threads,
    )


@operation(version=2)
def score(
    pairs: InputDirectory,
    model: InputFile,
    output: OptionalOutput = None,
    *,
    shard: Shard = (1, 1),
    lines: InputFile | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> TableColumn:
    """Compute log p(target | source) of all phrase pairs with the network.

    The score is a natural logarithm; it includes EOS and is not normalised by length. The output is a float32 array
    (.npy) with one score per line of the phrase table, in the order of the table.

    ``shard=K/N`` scores the K-th of N consecutive shards of nearly equal size, for parallel jobs. Scores do not depend
    on the sharding: each differs by less than 1e-4 from the score of the pair computed alone. Matrix products are
    computed in full float32 precision.

    With ``lines``, the output has one score for each of these lines, and the shards are shards of these lines. `phrases
    augment` adds them to the filtered table, without ``kept_lines``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn score --pairs try/pairs --model try/rnn.safetensors --output try/scores.npy --threads 2

    Args:
        pairs: directory written by `rnn prepare`.
        model: model file written by `rnn train`.
        output: output file: scores (.npy).
        shard: score only shard K of N.
        lines: score only these lines of the phrase table: output of `phrases filter --output-lines`.

    Returns:
        The scores.

    Raises:
        InputError: a file is missing or malformed, the network has other vocabularies than the pairs, ``lines`` is of
            another table, or torch is not installed.
    """
    from rnnsmt.networks.options import need_torch

    need_torch()

    import numpy as np

    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.phrase_scores import lines_of, score_batches

    opened, setup = Pairs.open(pairs), set_up_device(device, 1)
    if lines is not None:
        opened = opened.at(lines_of(str(lines), opened))
    network = load_model_of(opened, model, setup)
    number, shards = shard
    bounds = len(opened) * (number - 1) // shards, len(opened) * number // shards
    values = _column(output, score_batches(network, opened, *bounds, setup.device, threads))
    mean = float(values.sum(dtype=np.float64)) / max(len(values), 1)
    return TableColumn(values, {"pairs": len(values), "mean score": mean}, None if output is None else Path(output))


@operation(version=1)
def shortlist(pairs: InputDirectory, output: OptionalOutput = None) -> TableColumn:
    """Count the target words of every phrase pair that are not in the shortlist, the word penalty (WP) of the paper.

    This is not the WordPenalty of Moses, which counts all words. The output is an array (.npy) with one count n per
    line of the phrase table, in the order of the table. `phrases augment` adds the score e^n to the table. The decoder
    takes the logarithm, so the feature value of a translation is its number of words outside the shortlist. No trained
    network is required, only the directory written by `rnn prepare`.

    Source words that are not in the phrase table are copied to the output by the decoder and are not counted. Their
    number is the same in every translation of a sentence, so counting them would not change any ranking.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn shortlist --pairs try/pairs --output try/shortlist.npy

    Args:
        pairs: directory written by `rnn prepare`.
        output: output file: number of words outside the shortlist for every phrase pair (.npy).

    Returns:
        The counts.

    Raises:
        InputError: a file of the directory is missing or malformed.
    """
    import numpy as np

    from rnnsmt.base.progress import say
    from rnnsmt.rnn.pairs import Pairs, words_outside

    values = _column(output, words_outside(Pairs.open(pairs).sides[1]))
    touched, words = int(np.count_nonzero(values)), int(values.sum(dtype=np.float64))
    if not words:
        say(
            "all target words of the phrase table are in the shortlist, so that the feature is 0 for all entries and "
            "has no effect"
        )
    outside = {"pairs with words outside the shortlist": touched, "words outside the shortlist": words}
    return TableColumn(values, {"pairs": len(values), **outside}, None if output is None else Path(output))


def _column(output: StrPath | None, batches: "Iterable[NDArray[np.number]]") -> "NDArray[np.float32]":
    """Write batches of numbers to a ``.npy`` file, which is returned mapped, or return them in memory."""
    import numpy as np

    from rnnsmt.base.arrays import growing_array

    if output is None:
        return np.concatenate([np.zeros(0, np.float32), *(batch.astype(np.float32) for batch in batches)])
    with growing_array(output, np.float32) as out:
        for batch in batches:
            out.append(batch)
    return np.load(output, mmap_mode="r")


@operation(version=1)
def translate(
    model: InputFile,
    pairs: InputDirectory,
    input: Text,
    output: OptionalOutput = None,
    *,
    max_length: Positive = 30,
    beam: Positive = 10,
    nbest: Positive | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Values[list[tuple[str, float]]]:
    r"""Translate phrases with the network, by beam search for the target with the highest log p(target | source).

    The output has one target per line. With ``nbest=N``, it has the N best targets of every phrase instead, one per
    line: ``0-based line number ||| target ||| log p``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn translate --model try/rnn.safetensors --pairs try/pairs --input try/phrases \
            --output try/translations --nbest 5

    Args:
        model: model file written by `rnn train`.
        pairs: directory written by `rnn prepare`, for its vocabularies.
        input: source phrases, tokenised, one per line.
        output: output file: target phrases.
        max_length: maximum length of a target phrase in words.
        beam: beam size: number of partial hypotheses per phrase.
        nbest: write n-best lists of N targets per phrase, at most the beam size (default: write the best target only).

    Returns:
        For every source phrase, its targets with log p(target | source), best first.

    Raises:
        InputError: a phrase is empty, ``nbest`` is more than ``beam``, the network has other vocabularies than the
            pairs, or torch is not installed.
    """
    if nbest is not None and nbest > beam:
        raise InputError(f"--nbest {nbest}: must be an integer from 1 to the beam size, {beam}")

    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.base.writing import write_lines
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.generation import beam_search, read_phrases
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs

    opened, setup = Pairs.open(pairs), set_up_device(device, threads)
    network, (source, target) = load_model_of(opened, model, setup), opened.vocabularies
    with TextFiles() as files:
        sources = read_phrases(files.of("input", input), source)
    found = beam_search(network, sources, beam, max_length, nbest or 1)
    targets = [[(target.text(one.words), one.score) for one in of_source] for of_source in found]
    if output is not None and nbest is None:
        write_lines(output, (best[0][0] for best in targets))
    elif output is not None:
        lines = (
            f"{number} ||| {text} ||| {log_p:.6f}"
            for number, of_source in enumerate(targets)
            for text, log_p in of_source
        )
        write_lines(output, lines)
    mean = sum(best[0][1] for best in targets) / len(targets)
    return Values(targets, {"phrases": len(sources), "mean log p": mean})
