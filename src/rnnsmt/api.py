"""Python functions for the commands of the pipeline, on files or lists of sentences.

Each function runs the same code as the command. A text is a path, or a list of tokenised sentences whose
words are separated by single spaces. All of them raise ``InputError``, with one sentence, where a file is missing or
malformed, or where parallel texts differ in length.

>>> from tempfile import mkdtemp
>>> directory = Path(mkdtemp())
>>> english = ["the house", "the sea", "a house", "a sea"] * 5
>>> french = ["la maison", "la mer", "une maison", "une mer"] * 5
>>> alignment = align(english, french, aligner="fast_align")
>>> alignment[0]
[(0, 0), (1, 1)]
>>> tables = extract(english, french, alignment, directory)
>>> lm = estimate_lm(french, directory / "lm.arpa.gz", order=2)
>>> network = train_rnn(tables.phrases, english, french, directory / "rnn", preset="demo", updates=3, hidden=8)
>>> augmented = augment(tables.phrases, network, directory / "augmented.gz")
>>> ini = write_ini(directory / "moses.ini", augmented, tables.reordering, lm, lm_order=2, scores=5)
>>> decode(ini, ["a house", ""])
['une maison', '']
>>> tuned, bleu = tune(ini, ["the house a sea"], ["la maison une mer"], directory / "tuned.ini", max_iterations=1)
>>> round(evaluate(["la maison bleue et grande"], ["la maison bleue et belle"]).bleu, 2)
66.87
"""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from rnnsmt.base.io import InputError, read_lines, write_lines

if TYPE_CHECKING:
    from rnnsmt.bleu.multi_bleu import BleuScore

Text = str | Path | Sequence[str]
"""A file with one tokenised sentence per line, or the sentences."""

Links = list[list[tuple[int, int]]]
"""Links (source word, target word) from 0, for every sentence pair."""


class TableFiles(NamedTuple):
    """Files of ``extract``: phrase table, and reordering table ``wbe-msd-bidirectional-fe``, in Moses format."""

    phrases: Path
    reordering: Path


class Network(NamedTuple):
    """Files of ``train_rnn``: the network, and the directory of the phrase pairs as word ids."""

    model: Path
    pairs: Path


def _file(text: Text, scratch: str, name: str) -> str:
    """Return the file of a text; sentences are written to a file of this name in a temporary directory."""
    if isinstance(text, (str, Path)):
        return str(text)
    path = Path(scratch) / name
    write_lines(path, _sentences(text))
    return str(path)


def _sentences(text: Text) -> list[str]:
    """Return the sentences of a text.

    Raises:
        InputError: a sentence contains a line break.
    """
    if isinstance(text, (str, Path)):
        return list(read_lines(text))
    for number, sentence in enumerate(text, 1):
        if "\n" in sentence or "\r" in sentence:
            raise InputError(f"sentence {number} contains a line break; each item must be a single sentence")
    return list(text)


def align(
    source: Text, target: Text, aligner: str = "model4", heuristic: str = "grow-diag-final-and", threads: int = 1
) -> Links:
    """Align the words of a parallel corpus in both directions, and combine both alignments.

    Args:
        source, target: parallel texts of S sentences.
        aligner: ``model4`` (Brown et al. 1993), ``hmm`` (Vogel et al. 1996) or ``fast_align`` (Dyer et al. 2013).
        heuristic: of ``rnnsmt.align.symmetrization.HEURISTICS`` (Och and Ney 2003).
        threads: number of threads; does not affect the links.

    Returns:
        The links of the S sentence pairs, sorted.

    Raises:
        InputError: as ``read_bitext``; aligner or heuristic is not known.
    """
    from rnnsmt.align.bitext import read_bitext
    from rnnsmt.align.pharaoh import to_lists
    from rnnsmt.align.symmetrization import HEURISTICS, symmetrize_links
    from rnnsmt.align.training import ALIGNERS, DIRECTIONS
    from rnnsmt.align.training import align as align_words

    for name, value, choices in (("aligner", aligner, ALIGNERS), ("heuristic", heuristic, HEURISTICS)):
        if value not in choices:
            raise InputError(f"{name} {value!r}: must be one of {', '.join(choices)}")
    with TemporaryDirectory() as scratch:
        bitext = read_bitext(_file(source, scratch, "source"), _file(target, scratch, "target"))
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
    max_length: int = 7,
    smoothing: str = "none",
    threads: int = 1,
) -> TableFiles:
    """Extract phrase pairs, and write phrase table and reordering table (Koehn, Och and Marcu 2003; Koehn et al. 2005).

    Args:
        source, target: parallel texts.
        alignment: links of each sentence pair, or a file in Pharaoh format.
        output_dir: directory of the tables, created if it does not exist.
        max_length: maximum number of words of a phrase, 1 to 8.
        smoothing: of the phrase probabilities, ``none`` or ``kneser-ney`` (Foster et al. 2006).
        threads: number of threads.

    Returns:
        The files; a line of the phrase table has p(f|e), lex(f|e), p(e|f) and lex(e|f), f source and e target.

    Raises:
        InputError: a link is out of range, or no phrase pair can be extracted.
    """
    from rnnsmt.align.pharaoh import from_lists, write_links
    from rnnsmt.phrases.extraction import extract_phrases
    from rnnsmt.phrases.lexical_table import count_lexical, write_lexical_tables
    from rnnsmt.phrases.phrase_table import score_phrases, write_reordering_table
    from rnnsmt.plan.paths import FULL_TABLE, REORDERING_TABLE

    directory = Path(output_dir)
    directory.mkdir(parents=True, exist_ok=True)
    tables = TableFiles(directory / FULL_TABLE, directory / REORDERING_TABLE)
    with TemporaryDirectory() as scratch:
        e2f, f2e, pairs = (f"{scratch}/{name}" for name in ("lex.e2f", "lex.f2e", "extract.parquet"))
        links = str(alignment) if isinstance(alignment, (str, Path)) else f"{scratch}/links"
        if not isinstance(alignment, (str, Path)):
            write_links(links, [from_lists(alignment)])
        texts = [_file(source, scratch, "source")], [_file(target, scratch, "target")], [links]
        write_lexical_tables(count_lexical(*texts)[0], e2f, f2e)
        extract_phrases(*texts, pairs, max_length, threads)
        score_phrases(pairs, e2f, f2e, str(tables.phrases), threads, smoothing=smoothing)
        write_reordering_table(pairs, str(tables.reordering), threads=threads)
    return tables


def estimate_lm(text: Text, output: str | Path, order: int = 5) -> Path:
    """Estimate an interpolated modified Kneser-Ney language model, as KenLM's lmplz (Heafield et al. 2013).

    Args:
        text: the text.
        output: the ARPA file, compressed if its suffix says so.
        order: maximum length of an n-gram in words.

    Returns:
        The file.

    Raises:
        InputError: the text is empty, or contains ``<s>``, ``</s>`` or ``<unk>``.
    """
    from rnnsmt.lm.estimation import estimate

    with TemporaryDirectory() as scratch:
        estimate([_file(text, scratch, "text")], order, output)
    return Path(output)


def train_rnn(
    phrase_table: str | Path,
    source: Text,
    target: Text,
    output_dir: str | Path,
    preset: str = "small",
    vocab_size: int = 15_000,
    seed: int = 1,
    threads: int = 1,
    device: str = "auto",
    **settings: Any,
) -> Network:
    """Train an RNN Encoder–Decoder on the phrase pairs of a table (Cho et al. 2014, sections 2 and 3.1).

    Args:
        phrase_table: the table, every pair of which counts once.
        source, target: its training text, from which the vocabularies are made.
        output_dir: directory of the network (``rnn.pt``), its learning curve, checkpoints and phrase pairs.
        preset: of ``rnnsmt.rnn.settings.PRESETS``: ``demo``, ``small`` or ``paper``.
        vocab_size: number of words of each side, with UNK and the id 0.
        seed: random seed.
        threads: number of threads.
        device: ``auto``, ``cpu`` or ``cuda``.
        settings: settings of ``RnnSettings`` instead of those of the preset, for example ``epochs=2``.

    Raises:
        InputError: a setting is not known or out of range; torch is not installed.
    """
    from rnnsmt.networks.options import need_torch, preset_with
    from rnnsmt.rnn.settings import PRESETS

    need_torch()
    if preset not in PRESETS:
        raise InputError(f"preset {preset!r}: must be one of {', '.join(PRESETS)}")
    if unknown := sorted(set(settings) - set(PRESETS[preset].described())):
        raise InputError(f"{unknown[0]}: not a setting of the network")
    chosen = preset_with(PRESETS[preset], settings)

    from rnnsmt.base.resuming import Stop
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.pairs import Pairs, prepare_pairs
    from rnnsmt.rnn.training import RnnTrainer

    directory = Path(output_dir)
    directory.mkdir(parents=True, exist_ok=True)
    network = Network(directory / "rnn.pt", directory / "pairs")
    with TemporaryDirectory() as scratch:
        texts = [_file(source, scratch, "source")], [_file(target, scratch, "target")]
        prepare_pairs(str(phrase_table), *texts, str(network.pairs), size=vocab_size, max_length=50)
    with set_up_device(device, 1, chosen.precision) as setup:
        trainer = RnnTrainer(Pairs.open(network.pairs), chosen, seed, setup, threads)
        trainer.fit(directory / "rnn.checkpoint", 300.0, Stop(None))
        trainer.save(network.model, directory / "rnn.json")
    return network


def augment(phrase_table: str | Path, network: Network, output: str | Path, device: str = "auto") -> Path:
    """Add p(target | source) by a network as the last score of a phrase table (Cho et al. 2014, section 3.1).

    Args:
        phrase_table: the table that the network was trained on.
        network: result of ``train_rnn``.
        output: the table with the further score.
        device: ``auto``, ``cpu`` or ``cuda``.

    Returns:
        The new table.

    Raises:
        InputError: the network belongs to another table.
    """
    import numpy as np

    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.phrases.augmentation import augment_table
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import Pairs
    from rnnsmt.rnn.phrase_scores import score_range

    setup = set_up_device(device, 1)
    model, pairs, _ = load_model_of(Pairs.open(network.pairs), network.model, setup)
    with TemporaryDirectory() as scratch:
        column = f"{scratch}/scores.npy"
        np.save(column, score_range(model, pairs, 0, len(pairs), setup.device))
        augment_table(str(phrase_table), [[column]], str(output))
    return Path(output)


def write_ini(
    output: str | Path,
    phrase_table: str | Path,
    reordering_table: str | Path | None,
    lm: str | Path,
    lm_order: int = 5,
    scores: int = 4,
) -> Path:
    """Write the moses.ini of a model with Moses' weights before tuning.

    Args:
        output: the ini.
        phrase_table, reordering_table, lm: files of the model; None: distance-based reordering only.
        lm_order: order of the language model.
        scores: number of scores of the phrase table, 4, or 5 after ``augment``.

    Raises:
        InputError: a file is missing.
    """
    from rnnsmt.moses.ini import default_ini

    for path in (phrase_table, reordering_table, lm):
        if path is not None and not Path(path).is_file():
            raise InputError(f"{path}: no such file")
    table, model = (str(Path(path).resolve()) for path in (phrase_table, lm))
    reordering = None if reordering_table is None else str(Path(reordering_table).resolve())
    default_ini(Path(output).resolve().parent, table, reordering, model, lm_order, scores).write(output)
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

    read, sentences = MosesIni.read(ini), _sentences(text)
    model = load_model(read, sentences, threads=threads)
    translations = search(model, sentences, model.weights(read), SearchOptions(threads=threads))
    return [translation.text for translation in translations]


def tune(
    ini: str | Path,
    source: Text,
    reference: Text,
    output: str | Path,
    optimiser: str = "mert",
    max_iterations: int = 25,
    seed: int = 1,
    threads: int = 1,
) -> tuple[Path, float]:
    """Tune the weights of a model for BLEU of a development set (Och 2003).

    Args:
        ini: the model with the initial weights.
        source, reference: development set, tokenised.
        output: the ini with the tuned weights.
        optimiser: ``mert``, ``mira`` or ``pro``.
        max_iterations: maximum number of iterations.
        seed: random seed.
        threads: number of threads.

    Returns:
        The ini, and BLEU of the development set in percent.

    Raises:
        InputError: the texts are empty or differ in length, or the optimiser is not known.
    """
    from rnnsmt.bleu.batch import BatchBleu
    from rnnsmt.bleu.multi_bleu import read_texts
    from rnnsmt.moses.ini import MosesIni
    from rnnsmt.search import SearchOptions, load_model
    from rnnsmt.tuning.checkpoint import TuningCheckpoint
    from rnnsmt.tuning.loop import tune as tune_weights
    from rnnsmt.tuning.options import OPTIMISERS, LoopOptions, OptimiserOptions
    from rnnsmt.tuning.runs import ModelDecoder

    if optimiser not in OPTIMISERS:
        raise InputError(f"optimiser {optimiser!r}: must be mert, mira or pro")
    with TemporaryDirectory() as scratch:
        sources, references = read_texts(_file(source, scratch, "source"), [_file(reference, scratch, "reference")])
        read = MosesIni.read(ini)
        decoder = ModelDecoder(read, sources, load_model(read, sources, threads=threads),
                               SearchOptions(threads=threads, nbest=100))  # fmt: skip
        options = LoopOptions(seed, max_iterations, threads=threads, optimiser=OptimiserOptions(optimiser))
        checkpoint = TuningCheckpoint(f"{scratch}/checkpoint", {})
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
    from rnnsmt.bleu.multi_bleu import corpus_bleu, read_texts

    if not references:
        raise InputError("at least one reference is required")
    with TemporaryDirectory() as scratch:
        files = [_file(text, scratch, f"reference{number}") for number, text in enumerate(references)]
        return corpus_bleu(*read_texts(_file(hypothesis, scratch, "hypothesis"), files))
