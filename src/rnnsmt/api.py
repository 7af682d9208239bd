"""Python functions for the commands of the pipeline, on files or lists of sentences.

Each function runs the same code as the command. A text is a path (string or ``Path``), or an iterable of tokenised
sentences: a list, a generator or a pandas column of strings, whose words are separated by single spaces. Replace
missing values with empty strings. All functions raise ``InputError``, with one sentence, if a file is missing or
malformed, if an argument is out of range, or if parallel texts differ in length. Progress and warnings are written to
``sys.stderr``; ``contextlib.redirect_stderr`` redirects them.

>>> import rnnsmt
>>> from rnnsmt.cli import main
>>> from tempfile import mkdtemp
>>> directory = Path(mkdtemp())
>>> english = ["the house", "the sea", "a house", "a sea"] * 5
>>> french = ["la maison", "la mer", "une maison", "une mer"] * 5
>>> directions = [
...     rnnsmt.align.words(english, french, direction=direction, aligner="fast_align")
...     for direction in ("forward", "reverse")
... ]
>>> alignment = rnnsmt.align.symmetrize(*directions)
>>> alignment[0]
[(0, 0), (1, 1)]
>>> lexical = rnnsmt.phrases.lexical(english, french, alignment, directory / "lex.e2f", directory / "lex.f2e")
>>> pairs = rnnsmt.phrases.extract(english, french, alignment, directory / "pairs.parquet").path
>>> table = rnnsmt.phrases.score(pairs, lexical.e2f, lexical.f2e, directory / "table.gz", smoothing="none").path
>>> reordering = rnnsmt.phrases.reordering(pairs, directory / "reordering.gz").path
>>> lm = rnnsmt.lm.estimate(french, directory / "lm.arpa.gz", order=2)
>>> network = train_rnn(table, english, french, directory / "rnn", preset="demo", updates=3, hidden=8)
>>> scores = str(directory / "scores.npy")
>>> main(["rnn", "score", "--pairs", str(network.pairs), "--model", str(network.model), "--output", scores])
0
>>> augmented = rnnsmt.phrases.augment([[scores]], directory / "augmented.gz", phrase_table=table).path
>>> ini = write_ini(directory / "moses.ini", augmented, reordering, lm.path, lm_order=2, scores=5)
>>> decode(ini, ["a house", ""])
['une maison', '']
>>> tuned, bleu = tune(ini, ["the house a sea"], ["la maison une mer"], directory / "tuned.ini", iterations=1)
>>> round(evaluate(["la maison bleue et grande"], ["la maison bleue et belle"]).bleu, 2)
66.87
"""

import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnsmt.base.arguments import Alignment, Text, TextFiles, sentences
from rnnsmt.base.io import InputError, check_output, check_output_directory
from rnnsmt.base.options import DEVICES, MAX_INT, MAX_SEED, MAX_THREADS, check_choice, check_integer
from rnnsmt.config.sections import Lm, Rnn, Tuning, default_iterations

if TYPE_CHECKING:
    from rnnsmt.bleu.multi_bleu import BleuScore
    from rnnsmt.networks.options import SomeSettings
    from rnnsmt.networks.settings import TrainingSettings
    from rnnsmt.networks.task import Task


class Network(NamedTuple):
    """Files of ``train_rnn``: the network, and the directory of the phrase pairs as word ids."""

    model: Path
    pairs: Path


class _Files(TextFiles):
    """Files with the texts and alignments of a call."""

    def of_links(self, alignment: Alignment) -> str:
        """Return the file of an alignment; links are written to a temporary file."""
        from rnnsmt.align.pharaoh import links_file

        return links_file(self, "alignment", alignment)


def _directory(path: str | Path) -> Path:
    """Return an output directory, which is created if it does not exist."""
    check_output_directory(path)
    Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def _check_seed(seed: int) -> None:
    check_integer("seed", seed, 0, MAX_SEED)


def _check_threads(threads: int) -> None:
    check_integer("threads", threads, 1, MAX_THREADS)


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
        The path of the network, an argument of ``write_ini``.

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
    alignment: Alignment,
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
        alignment: the links, as returned by ``rnnsmt.align.symmetrize``, or a file in Pharaoh format.
        output_dir: directory of the network (``nnjm.safetensors``), its learning curve, checkpoints and examples.
        preset: key of ``rnnsmt.nnjm.settings.PRESETS``: ``demo``, ``small`` or ``paper``.
        vocab_size: size of the shortlist of each side, including UNK and id 0.
        seed, threads, device: as in ``train_rnn``.
        settings: fields of ``JointSettings`` that override the preset, for example ``epochs=2``.

    Returns:
        The path of the network, an argument of ``write_ini``.

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


def write_ini(
    output: str | Path,
    phrase_table: str | Path,
    reordering_table: str | Path | None,
    lm: str | Path,
    lm_order: int = Lm.order,
    scores: int = 4,
    cslm: str | Path | None = None,
    nnjm: str | Path | None = None,
    unknown: str = "word",
) -> Path:
    """Write the moses.ini of a model with the initial weights of Moses.

    Args:
        output: the ini.
        phrase_table, reordering_table, lm: files of the model; no reordering table: distance-based reordering only.
        lm_order: order of the language model.
        scores: number of scores of the phrase table, 4, or 5 with that of a network (``rnnsmt.phrases.augment``).
        cslm, nnjm: networks of ``train_cslm`` and ``train_nnjm``, used during the search.
        unknown: the probability that they assign to a word outside the shortlist: ``class``, p(UNK), as in the paper,
            or ``word``, p(UNK) divided by the number of such words in the training text.

    Raises:
        InputError: a file is missing, a number is less than 1, or ``unknown`` is invalid.
    """
    from rnnsmt.moses.default_ini import default_ini
    from rnnsmt.moses.ini import CSLM_UNKNOWN

    check_integer("lm_order", lm_order, 1, MAX_INT)
    check_integer("scores", scores, 1, MAX_INT)
    check_choice("unknown", unknown, CSLM_UNKNOWN)
    networks = {"CSLM": cslm, "NNJM": nnjm}
    for path in (phrase_table, reordering_table, lm, *networks.values()):
        if path is not None and not Path(path).is_file():
            raise InputError(f"{path}: no such file")
    table, model = (str(Path(path).resolve()) for path in (phrase_table, lm))
    reordering = None if reordering_table is None else str(Path(reordering_table).resolve())
    neural = {kind: (str(Path(path).resolve()), unknown) for kind, path in networks.items() if path is not None}
    directory = Path(output).resolve().parent
    default_ini(directory, table, reordering, model, lm_order, scores, neural=neural).write(output)
    return Path(output)


def decode(ini: str | Path, text: Text, threads: int = 1) -> list[str]:
    """Translate tokenised sentences by beam search (Koehn et al. 2003), with the weights of a moses.ini.

    Args:
        ini: the model.
        text: S sentences.
        threads: number of threads; does not affect the translations.

    Returns:
        S translations, tokenised; that of an empty sentence is empty.

    Raises:
        InputError: a file of the model is missing or malformed.
    """
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search import SearchOptions, load_model
    from rnnsmt.search import decode as search

    _check_threads(threads)
    read, lines = MosesIni.read(ini), list(sentences("text", text))
    model = load_model(read, lines, threads=threads)
    translations = search(model, lines, model.weights(read), SearchOptions(threads=threads))
    return [translation.text for translation in translations]


def tune(
    ini: str | Path,
    source: Text,
    reference: Text,
    output: str | Path,
    optimiser: str = Tuning.optimiser,
    iterations: int | None = None,
    seed: int = 1,
    threads: int = 1,
) -> tuple[Path, float]:
    """Tune the weights of a model for BLEU of a dev set (Och 2003).

    Args:
        ini: the model with the initial weights.
        source, reference: dev set, tokenised.
        output: the ini with the tuned weights.
        optimiser: ``mert``, ``mert-averaged`` or ``mira``.
        iterations: number of iterations: with ``mert``, the maximum (default: 25); otherwise the exact number (16), and
            the weights of the second half of them are averaged.
        seed: random seed.
        threads: number of threads.

    Returns:
        The ini, and BLEU of the dev set in percent.

    Raises:
        InputError: the texts are empty or differ in length, or an argument is invalid.
    """
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.multi_bleu import read_texts
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search import SearchOptions, load_model
    from rnnsmt.tuning.checkpoint import TuningCheckpoint
    from rnnsmt.tuning.loop import tune as tune_weights
    from rnnsmt.tuning.optimisers import OPTIMISERS
    from rnnsmt.tuning.options import LoopOptions, OptimiserOptions
    from rnnsmt.tuning.runs import ModelDecoder

    check_choice("optimiser", optimiser, tuple(OPTIMISERS))
    if iterations is None:
        iterations = default_iterations(optimiser)
    check_integer("iterations", iterations, 1, MAX_INT)
    _check_seed(seed)
    _check_threads(threads)
    check_output(output)
    with _Files() as files:
        sources, references = read_texts(files.of("source", source), [files.of("reference", reference)])
        read = MosesIni.read(ini)
        decoder = ModelDecoder(read, sources, load_model(read, sources, threads=threads),
                               SearchOptions(threads=threads, nbest=100))  # fmt: skip
        options = LoopOptions(seed, iterations, threads=threads, optimiser=OptimiserOptions(optimiser))
        checkpoint = TuningCheckpoint(files.directory / "checkpoint", {})
        tuned = tune_weights(decoder, BatchBleu(references), decoder.start, checkpoint, options)
    decoder.set_weights(tuned.weights)
    read.write(output)
    return Path(output), float(tuned.bleu)


def evaluate(hypothesis: Text, *references: Text) -> "BleuScore":
    """Compute tokenised corpus BLEU as multi-bleu.perl (Papineni et al. 2002).

    Args:
        hypothesis: S translations, tokenised.
        references: one or more texts of S sentences.

    Returns:
        BLEU and the precisions in percent, brevity penalty and lengths in words.

    Raises:
        InputError: no reference is given, the texts are empty, or they differ in length.
    """
    from rnnsmt.bleu.batch import corpus_bleu
    from rnnsmt.bleu.multi_bleu import read_texts

    if not references:
        raise InputError("at least one reference is required")
    with _Files() as files:
        paths = [files.of(f"reference {number}", text) for number, text in enumerate(references, 1)]
        return corpus_bleu(*read_texts(files.of("hypothesis", hypothesis), paths))
