"""Python functions for the commands of the pipeline, on files or lists of sentences.

Each function runs the same code as the command. A text is a path (string or ``Path``), or an iterable of tokenised
sentences: a list, a generator or a pandas column of strings, whose words are separated by single spaces. Replace
missing values with empty strings. All functions raise ``InputError``, with one sentence, if a file is missing or
malformed, if an argument is out of range, or if parallel texts differ in length. Progress and warnings are written to
``sys.stderr``; ``contextlib.redirect_stderr`` redirects them.

>>> import rnnsmt
>>> from tempfile import mkdtemp
>>> directory = Path(mkdtemp())
>>> english = ["the house", "the sea", "a house", "a sea"] * 5
>>> french = ["la maison", "la mer", "une maison", "une mer"] * 5
>>> alignment = align(english, french, aligner="fast_align")
>>> alignment[0]
[(0, 0), (1, 1)]
>>> tables = extract(english, french, alignment, directory)
>>> lm = rnnsmt.lm.estimate(french, directory / "lm.arpa.gz", order=2)
>>> network = train_rnn(tables.phrases, english, french, directory / "rnn", preset="demo", updates=3, hidden=8)
>>> augmented = augment(tables.phrases, network, directory / "augmented.gz")
>>> ini = rnnsmt.moses.write_ini(
...     directory / "moses.ini", directory, phrase_table=augmented.name, reordering_table=tables.reordering.name,
...     lm=lm.path.name, lm_order=2, num_features=5,
... ).path
>>> rnnsmt.search.decode(ini, ["a house", ""])
['une maison', '']
>>> [tuned] = rnnsmt.tuning.tune(ini, ["the house a sea"], ["la maison une mer"], directory / "tuned.ini", iterations=1)
>>> tuned.weights["WordPenalty0:0"] < 0
True
>>> [score] = rnnsmt.evaluation.score(["la maison bleue et grande"], ["la maison bleue et belle"])
>>> round(score.bleu.bleu, 2)
66.87
"""

import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from rnnsmt.base.arguments import Text, TextFiles
from rnnsmt.base.io import InputError, check_output_directory
from rnnsmt.base.options import DEVICES, MAX_INT, MAX_SEED, MAX_THREADS, check_choice, check_integer
from rnnsmt.config.sections import Alignment, Phrases, Rnn, Smoothing

if TYPE_CHECKING:
    from rnnsmt.networks.options import SomeSettings
    from rnnsmt.networks.settings import TrainingSettings
    from rnnsmt.networks.task import Task

Links = list[list[tuple[int, int]]]
"""Links (source word, target word), 0-based, of every sentence pair."""


class TableFiles(NamedTuple):
    """Files of ``extract``: phrase table, and reordering table ``wbe-msd-bidirectional-fe``, in Moses format."""

    phrases: Path
    reordering: Path


class Network(NamedTuple):
    """Files of ``train_rnn``: the network, and the directory of the phrase pairs as word ids."""

    model: Path
    pairs: Path


class _Files(TextFiles):
    """Files with the texts and alignments of a call."""

    def of_links(self, alignment: "str | Path | Links") -> str:
        """Return the file of an alignment; links are written to a temporary file."""
        if isinstance(alignment, (str, PathLike)):
            return str(alignment)

        from rnnsmt.align.pharaoh import from_lists, write_links

        try:
            packed = from_lists(alignment)
        except (TypeError, ValueError):
            raise InputError(
                "alignment: must be a path, or a list of links (source word, target word) for each sentence pair"
            ) from None
        write_links(str(self.directory / "alignment"), [packed])
        return str(self.directory / "alignment")


def _directory(path: str | Path) -> Path:
    """Return an output directory, which is created if it does not exist."""
    check_output_directory(path)
    Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def _check_seed(seed: int) -> None:
    check_integer("seed", seed, 0, MAX_SEED)


def _check_threads(threads: int) -> None:
    check_integer("threads", threads, 1, MAX_THREADS)


def align(
    source: Text, target: Text, aligner: str = "model4", heuristic: str = Alignment.symmetrization, threads: int = 1
) -> Links:
    """Align the words of a parallel corpus in both directions, and combine both alignments.

    Args:
        source, target: parallel texts of S sentences.
        aligner: ``model4`` (Brown et al. 1993), ``hmm`` (Vogel et al. 1996) or ``fast_align`` (Dyer et al. 2013).
        heuristic: one of ``rnnsmt.align.HEURISTICS`` (Och and Ney 2003).
        threads: number of threads; does not affect the links.

    Returns:
        The links of the S sentence pairs, sorted. ``" ".join(f"{i}-{j}" for i, j in links[0])`` is the first line of a
        file in Pharaoh format.

    Raises:
        InputError: as ``read_bitext``; an argument is invalid.
    """
    from rnnsmt.align import DIRECTIONS, HEURISTICS
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import to_lists
    from rnnsmt.align.symmetrization import symmetrize_links
    from rnnsmt.align.training import ALIGNERS
    from rnnsmt.align.training import align as align_words

    check_choice("aligner", aligner, ALIGNERS)
    check_choice("heuristic", heuristic, HEURISTICS)
    _check_threads(threads)
    with _Files() as files:
        bitext = read_bitext(files.of("source", source), files.of("target", target))
    forward, reverse = (align_words(bitext, aligner, direction, threads) for direction in DIRECTIONS)
    return [
        links
        for blocks in zip(forward, reverse, strict=True)
        for links in to_lists(symmetrize_links(*blocks, heuristic))
    ]


def extract(
    source: Text,
    target: Text,
    alignment: str | Path | Links,
    output_dir: str | Path,
    max_length: int = Phrases.max_length,
    smoothing: str = "none",
    threads: int = 1,
) -> TableFiles:
    """Extract phrase pairs, and write phrase table and reordering table (Koehn, Och and Marcu 2003; Koehn et al. 2005).

    Args:
        source, target: parallel texts.
        alignment: links of each sentence pair, or a file in Pharaoh format.
        output_dir: directory of the tables, created if it does not exist.
        max_length: maximum number of words of a phrase, 1 to 8.
        smoothing: smoothing of the phrase probabilities: ``none`` or ``kneser-ney`` (Foster et al. 2006).
        threads: number of threads.

    Returns:
        The files. The scores of the phrase table are p(f|e), lex(f|e), p(e|f) and lex(e|f): f is the source phrase, e
        the target phrase.

    Raises:
        InputError: a link or an argument is out of range, or no phrase pair can be extracted.
    """
    from rnnsmt.config.paths import PHRASE_TABLE, REORDERING_TABLE
    from rnnsmt.phrases.extraction import extract_phrases
    from rnnsmt.phrases.lexical_table import count_lexical, write_lexical_tables
    from rnnsmt.phrases.phrase_table import score_phrases, write_reordering_table

    check_integer("max_length", max_length, 1, 8)
    check_choice("smoothing", smoothing, get_args(Smoothing))
    _check_threads(threads)
    directory = _directory(output_dir)
    tables = TableFiles(directory / PHRASE_TABLE, directory / REORDERING_TABLE)
    with _Files() as files:
        e2f, f2e, pairs = (str(files.directory / name) for name in ("lex.e2f", "lex.f2e", "extract.parquet"))
        texts = [files.of("source", source)], [files.of("target", target)], [files.of_links(alignment)]
        write_lexical_tables(count_lexical(*texts)[0], e2f, f2e)
        extract_phrases(*texts, pairs, max_length, threads)
        score_phrases(pairs, e2f, f2e, str(tables.phrases), threads, smoothing=smoothing)
        write_reordering_table(pairs, str(tables.reordering), threads=threads)
    return tables


def train_rnn(
    phrase_table: str | Path,
    source: Text,
    target: Text,
    output_dir: str | Path,
    preset: str = "small",
    vocab_size: int = Rnn.vocab_size,
    seed: int = 1,
    threads: int = 1,
    device: str = "auto",
    **settings: Any,
) -> Network:
    """Train an RNN Encoder–Decoder on the phrase pairs of a table (Cho et al. 2014, sections 2 and 3.1).

    After Ctrl-C, the same call resumes from the checkpoint in ``output_dir``. If training has finished, the same call
    does not train again, and a call with other arguments replaces the network.

    Args:
        phrase_table: the phrase table; every pair has the same weight.
        source, target: the training text of the table, from which the vocabularies are built.
        output_dir: directory of the network (``rnn.safetensors``), its learning curve, checkpoints and phrase pairs.
        preset: key of ``rnnsmt.rnn.settings.PRESETS``: ``demo``, ``small`` or ``paper``.
        vocab_size: size of the vocabulary of each side, including UNK and id 0.
        seed: random seed.
        threads: number of threads.
        device: ``auto``, ``cpu`` or ``cuda``.
        settings: fields of ``RnnSettings`` that override the preset, for example ``epochs=2``.

    Raises:
        InputError: an argument or a setting is unknown or out of range; ``output_dir`` contains the checkpoint of an
            interrupted training run with other arguments; torch is not installed.
        KeyboardInterrupt: after Ctrl-C, with the checkpoint saved.
    """
    from rnnsmt.rnn.settings import PRESETS

    chosen = _settings(PRESETS, preset, settings, vocab_size, seed, threads, device)

    from rnnsmt.rnn.pairs import Pairs, prepare_pairs
    from rnnsmt.rnn.training import RnnTask

    directory = _directory(output_dir)
    network = Network(directory / "rnn.safetensors", directory / "pairs")
    with _Files() as files:
        texts = [files.of("source", source)], [files.of("target", target)]
        prepare_pairs(str(phrase_table), *texts, str(network.pairs), size=vocab_size, max_length=50)
    _train(RnnTask, Pairs.open(network.pairs), chosen, seed, threads, device, network.model)
    return network


def train_cslm(
    text: Text,
    output_dir: str | Path,
    preset: str = "small",
    vocab_size: int = Rnn.vocab_size,
    seed: int = 1,
    threads: int = 1,
    device: str = "auto",
    **settings: Any,
) -> Path:
    """Train a continuous-space language model on a text (Schwenk 2007).

    After Ctrl-C, the same call resumes, as in ``train_rnn``.

    Args:
        text: the text, tokenised.
        output_dir: directory of the network (``cslm.safetensors``), its learning curve, checkpoints and word ids of the
            text.
        preset: key of ``rnnsmt.cslm.settings.PRESETS``: ``demo``, ``small`` or ``paper``.
        vocab_size: size of the shortlist, including UNK and id 0.
        seed, threads, device: as in ``train_rnn``.
        settings: fields of ``CslmSettings`` that override the preset, for example ``order=5``.

    Returns:
        The path of the network, an argument of ``rnnsmt.moses.write_ini``.

    Raises:
        InputError: as ``train_rnn``.
        KeyboardInterrupt: after Ctrl-C, with the checkpoint saved.
    """
    from rnnsmt.cslm.settings import PRESETS

    chosen = _settings(PRESETS, preset, settings, vocab_size, seed, threads, device)

    from rnnsmt.cslm.model import cslm_task
    from rnnsmt.cslm.text import Text as WordIds
    from rnnsmt.cslm.text import prepare_text
    from rnnsmt.networks.data import Vocabulary

    directory = _directory(output_dir)
    with _Files() as files:
        paths = [files.of("text", text)]
        prepare_text(paths, Vocabulary.of_texts(paths, vocab_size, "to learn from"), str(directory / "text"))
    return _train(
        cslm_task, WordIds.open(directory / "text"), chosen, seed, threads, device, directory / "cslm.safetensors"
    )


def train_nnjm(
    source: Text,
    target: Text,
    alignment: str | Path | Links,
    output_dir: str | Path,
    preset: str = "small",
    vocab_size: int = Rnn.vocab_size,
    seed: int = 1,
    threads: int = 1,
    device: str = "auto",
    **settings: Any,
) -> Path:
    """Train a neural network joint model on word-aligned sentence pairs (Devlin et al. 2014).

    The network predicts the next target word, as the search requires. After Ctrl-C, the same call resumes, as in
    ``train_rnn``.

    Args:
        source, target: S tokenised sentences each.
        alignment: the links, as returned by ``align``, or a file in Pharaoh format.
        output_dir: directory of the network (``nnjm.safetensors``), its learning curve, checkpoints and examples.
        preset: key of ``rnnsmt.nnjm.settings.PRESETS``: ``demo``, ``small`` or ``paper``.
        vocab_size: size of the shortlist of each side, including UNK and id 0.
        seed, threads, device: as in ``train_rnn``.
        settings: fields of ``JointSettings`` that override the preset, for example ``epochs=2``.

    Returns:
        The path of the network, an argument of ``rnnsmt.moses.write_ini``.

    Raises:
        InputError: as ``train_rnn``.
        KeyboardInterrupt: after Ctrl-C, with the checkpoint saved.
    """
    from rnnsmt.nnjm.settings import PRESETS

    chosen = _settings(PRESETS, preset, settings, vocab_size, seed, threads, device)

    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.nnjm.examples import Examples, prepare_examples
    from rnnsmt.nnjm.training import nnjm_task

    directory = _directory(output_dir)
    with _Files() as files:
        sources, targets = [files.of("source", source)], [files.of("target", target)]
        vocabularies = (
            Vocabulary.of_texts(sources, vocab_size, "on the source side"),
            Vocabulary.of_texts(targets, vocab_size, "on the target side"),
        )
        prepare_examples(sources, targets, [files.of_links(alignment)], vocabularies, str(directory / "examples"))
    return _train(
        nnjm_task,
        Examples.open(directory / "examples"),
        chosen,
        seed,
        threads,
        device,
        directory / "nnjm.safetensors",
    )


def _settings(
    presets: Mapping[str, "SomeSettings"],
    preset: str,
    settings: dict[str, Any],
    vocab_size: int,
    seed: int,
    threads: int,
    device: str,
) -> "SomeSettings":
    """Return the settings of a network, and check the arguments that all training functions share."""
    from rnnsmt.networks.options import need_torch, preset_with

    need_torch()
    check_choice("preset", preset, presets)
    check_choice("device", device, DEVICES)
    check_integer("vocab_size", vocab_size, 3, MAX_INT)
    _check_seed(seed)
    _check_threads(threads)
    return preset_with(presets[preset], settings)


def _train(
    make_task: Callable[..., "Task"],
    data: Any,
    settings: "TrainingSettings",
    seed: int,
    threads: int,
    device: str,
    model: Path,
) -> Path:
    """Train a network on prepared data, resuming from its checkpoint; return the path of the model.

    The learning curve and the checkpoint are written to the directory of the model.
    """
    from rnnsmt.base.resuming import Stop
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.networks.training import Training

    stop = Stop(None)
    in_main_thread = threading.current_thread() is threading.main_thread()  # only it can set signal handlers
    with stop if in_main_thread else nullcontext():
        setup = set_up_device(device, 1, settings.precision)
        training = Training(make_task(data, settings, seed, setup), threads)
        try:
            training.fit(model.with_suffix(".checkpoint"), 300.0, stop)
            training.save(model, model.with_suffix(".json"))
        except SystemExit:
            if stop.signal == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise
        finally:
            if training.checkpoint is not None:
                training.checkpoint.release()
    return model


def augment(phrase_table: str | Path, network: Network, output: str | Path, device: str = "auto") -> Path:
    """Add p(target | source) by a network as the last score of a phrase table (Cho et al. 2014, section 3.1).

    Args:
        phrase_table: the table that the network was trained on.
        network: result of ``train_rnn``; for files of an earlier session, ``Network(model, pairs)``.
        output: the table with the additional score.
        device: ``auto``, ``cpu`` or ``cuda``.

    Returns:
        The path of the new table.

    Raises:
        InputError: the table does not have as many lines as that of the network, or the network was trained on other
            pairs; torch is not installed.
    """
    import numpy as np

    from rnnsmt.networks.options import need_torch

    need_torch()
    check_choice("device", device, DEVICES)
    if Path(output).resolve() == Path(phrase_table).resolve():
        raise InputError(f"{output}: is the phrase table itself; choose another output")

    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.phrases.augmentation import augment_table
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.phrase_scores import score_range

    setup = set_up_device(device, 1)
    pairs = Pairs.open(network.pairs)
    model = load_model_of(pairs, network.model, setup)
    with TemporaryDirectory() as scratch:
        column = f"{scratch}/scores.npy"
        np.save(column, score_range(model, pairs, 0, len(pairs), setup.device))
        augment_table(str(phrase_table), [[column]], str(output))
    return Path(output)
