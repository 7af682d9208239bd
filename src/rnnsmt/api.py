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
>>> pairs = rnnsmt.rnn.prepare(tables.phrases, english, french, directory / "pairs").path
>>> settings = rnnsmt.rnn.RnnSettings.preset("demo", updates=3, hidden=8)
>>> files = [directory / name for name in ("rnn.safetensors", "rnn.json", "rnn.checkpoint")]
>>> network = rnnsmt.rnn.train(pairs, *files, settings=settings)
>>> augmented = augment(tables.phrases, Network(network.path, pairs), directory / "augmented.gz")
>>> ini = write_ini(directory / "moses.ini", augmented, tables.reordering, lm.path, lm_order=2, scores=5)
>>> decode(ini, ["a house", ""])
['une maison', '']
>>> tuned, bleu = tune(ini, ["the house a sea"], ["la maison une mer"], directory / "tuned.ini", iterations=1)
>>> round(evaluate(["la maison bleue et grande"], ["la maison bleue et belle"]).bleu, 2)
66.87
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, get_args

from rnnsmt.base.arguments import Alignment, Text, TextFiles, sentences
from rnnsmt.base.io import InputError, check_output, check_output_directory
from rnnsmt.base.options import DEVICES, MAX_INT, MAX_SEED, MAX_THREADS, check_choice, check_integer
from rnnsmt.config.sections import Alignment, Lm, Phrases, Smoothing, Tuning, default_iterations

if TYPE_CHECKING:
    from rnnsmt.bleu.multi_bleu import BleuScore


class Network(NamedTuple):
    """Files of ``rnnsmt.rnn.train``: the network, and the directory of the phrase pairs as word ids."""

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


def augment(phrase_table: str | Path, network: Network, output: str | Path, device: str = "auto") -> Path:
    """Add p(target | source) by a network as the last score of a phrase table (Cho et al. 2014, section 3.1).

    Args:
        phrase_table: the table that the network was trained on.
        network: the network of ``rnnsmt.rnn.train`` and the directory of ``rnnsmt.rnn.prepare``.
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
        scores: number of scores of the phrase table, 4, or 5 after ``augment``.
        cslm, nnjm: networks of ``rnnsmt.cslm.train`` and ``rnnsmt.nnjm.train``, used during the search.
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
