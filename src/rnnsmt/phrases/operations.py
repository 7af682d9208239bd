"""Operations that create and filter phrase tables and reordering tables, and add score columns."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rnnsmt.base.arguments import (
    MEMORY_MB,
    THREADS,
    Alignments,
    InputDirectory,
    InputFile,
    MemoryMb,
    OptionalOutput,
    OutputDirectory,
    OutputFile,
    Positive,
    TextFiles,
    Texts,
    Threads,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Written, WrittenFiles, operation
from rnnsmt.config.sections import Device, PhraseLength, Phrases, PhraseSmoothing, Rnn
from rnnsmt.registries import COLUMNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnnsmt.phrases.showing import ShownPairs


class LexicalTables(NamedTuple):
    """Lexical translation tables.

    Attributes:
        e2f: file with p(source word | target word).
        f2e: file with p(target word | source word).
        figures: sizes of the text and of the tables by name; the last line in the log of the command.
    """

    e2f: Path
    f2e: Path
    figures: Mapping[str, object]


@operation(version=1)
def lexical(
    source: Texts, target: Texts, alignment: Alignments, output_e2f: OutputFile, output_f2e: OutputFile
) -> LexicalTables:
    r"""Compute lexical translation probabilities from a word alignment, as in ``lex.e2f`` and ``lex.f2e`` of Moses.

    The probabilities are relative frequencies of links (Koehn, Och and Marcu 2003, section 4.4). A word without a link
    is counted as linked to NULL, as in step 4 of ``train-model.perl``.

    With a source word f and a target word e, a line of ``lex.e2f`` is ``f e p(f|e)``, and a line of ``lex.f2e`` is
    ``e f p(e|f)``, with seven decimals. Both files are sorted by f, then e. Links that are repeated in a line are
    counted once, and the order of links has no effect.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases lexical --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz --output-e2f try/lex.e2f \
            --output-f2e try/lex.f2e

    Args:
        source: source side of the training corpus, tokenised.
        target: target side of the training corpus, tokenised.
        alignment: word alignment in Pharaoh format (i-j), parallel to the text.
        output_e2f: output file: lex.e2f, p(source word | target word).
        output_f2e: output file: lex.f2e, p(target word | source word).

    Returns:
        The files.

    Raises:
        InputError: text and alignment differ in length, or a link points beyond the end of a sentence.
    """
    from rnnsmt.formats.pharaoh import links_files
    from rnnsmt.phrases.lexical_table import count_lexical, write_lexical_tables

    with TextFiles() as files:
        texts = files.all_of("source", source), files.all_of("target", target)
        counts, figures = count_lexical(*texts, links_files(files, "alignment", alignment))
    write_lexical_tables(counts, output_e2f, output_f2e)
    return LexicalTables(Path(output_e2f), Path(output_f2e), figures.as_dict() | {"word pairs": len(counts.pairs)})


@operation(version=5)
def extract(
    source: Texts,
    target: Texts,
    alignment: Alignments,
    output: OutputFile,
    output_pairs: OutputFile | None = None,
    *,
    max_length: PhraseLength = Phrases.max_length,
    threads: Threads = THREADS,
    memory_mb: MemoryMb = MEMORY_MB,
) -> Written:
    r"""Extract and count the phrase pairs consistent with a word alignment (Koehn, Och and Marcu 2003), as in Moses.

    The output (Parquet) contains every distinct triple of source phrase, target phrase and phrase-internal alignment,
    with its count and the counts of its orientations (word-based msd model, previous and next), sorted like the phrase
    table. `phrases score` and `phrases reordering` read it. Words are stored as ids, and the vocabularies are stored in
    the metadata of the file. ``output_pairs`` contains every distinct pair once, in the same order, for score columns
    (`phrases column`) and networks. Links that are repeated in a line are counted once, and the order of links has no
    effect.

    If there are several files, the n-th files of ``source``, ``target`` and ``alignment`` are parallel. A text may be
    given several times with different alignments; the counts are added. If ``memory_mb`` is insufficient, temporary
    files are used.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases extract --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz --max-length 7 \
            --output try/extract.parquet --output-pairs try/extract.safetensors --threads 2 --memory-mb 2000

    Args:
        source: source side of the training corpus, tokenised.
        target: target side of the training corpus, tokenised.
        alignment: word alignment in Pharaoh format (i-j), parallel to the text.
        output: output file: phrase pairs and counts (Parquet).
        output_pairs: output file: distinct phrase pairs (safetensors).

    Returns:
        The file; its figures are numbers of words, links and pairs.

    Raises:
        InputError: text and alignment differ in length, a link points beyond the end of a sentence, or no phrase pair
            is consistent with the links.
    """
    from rnnsmt.formats.pharaoh import links_files
    from rnnsmt.phrases.extraction import extract_phrases

    with TextFiles() as files:
        texts = files.all_of("source", source), files.all_of("target", target)
        links = links_files(files, "alignment", alignment)
        figures = extract_phrases(*texts, links, str(output), max_length, threads, memory_mb)
    if output_pairs is not None:
        from rnnsmt.phrases.extract_file import ExtractFile
        from rnnsmt.phrases.pairs import write_extracted_pairs

        figures |= write_extracted_pairs(ExtractFile(str(output), threads, memory_mb), output_pairs)
    return Written(Path(output), figures)


@operation(version=2)
def import_table(
    phrase_table: InputFile,
    output: OutputFile,
    *,
    output_scores: OutputFile | None = None,
    reordering_table: InputFile | None = None,
    output_reordering: OutputFile | None = None,
) -> Written:
    r"""Convert a phrase table and a reordering table in Moses format to phrase pairs and their scores.

    The pairs are in the order of the lines of the phrase table. `phrases column` and networks read the pairs, and
    `phrases select` reads both pairs and scores. The tables may have been built by Moses, and may be filtered.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases import-table --phrase-table results/model/phrase-table.gz --output try/pairs.safetensors \
            --output-scores try/table.safetensors \
            --reordering-table results/model/reordering-table.wbe-msd-bidirectional-fe.gz \
            --output-reordering try/table.msd.safetensors

    Args:
        phrase_table: phrase table in Moses format.
        output: output file: phrase pairs (safetensors).
        output_scores: output file: scores and counts of the pairs (safetensors).
        reordering_table: reordering table in Moses format, with the same pairs in the same order.
        output_reordering: output file: reordering scores of the pairs (safetensors).

    Returns:
        The file of phrase pairs; its figures are the number of source phrases and the number of pairs.

    Raises:
        InputError: a table is empty or malformed, the tables have different pairs, or only one of
            ``reordering_table`` and ``output_reordering`` is given.
    """
    from rnnsmt.phrases.importing import import_tables

    if (reordering_table is None) != (output_reordering is None):
        raise InputError("--reordering-table and --output-reordering: must be used together")
    reordering = (
        None if reordering_table is None or output_reordering is None else (reordering_table, output_reordering)
    )
    return Written(Path(output), import_tables(phrase_table, output, output_scores, reordering))


def _parse_shard(text: str) -> tuple[int, int]:
    """Parse ``K/N``, or ``K-of-N`` as written by scattergather of Snakemake."""
    match = re.fullmatch(r"(\d+)[/-](?:of-)?(\d+)", text)
    if match is None or not _is_shard(shard := (int(match[1]), int(match[2]))):
        raise ValueError("must be K/N with K from 1 to N, for example 2/8")
    return shard


def _is_shard(shard: tuple[int, int]) -> bool:
    """Return whether a pair (K, N) is a shard, that is, whether K is from 1 to N."""
    return 1 <= shard[0] <= shard[1]


def _check_shard(shard: tuple[int, int]) -> None:
    """Check a shard that is given in a call from Python."""
    if not _is_shard(shard):
        raise ValueError("must be (K, N) with K from 1 to N, for example (2, 8)")


Shard = Annotated[tuple[int, int], Field(metavar="K/N", parse=_parse_shard, check=_check_shard)]


class TableColumn(NamedTuple):
    """A score for every phrase pair; accepted by functions that expect a path if the scores were written to a file.

    Attributes:
        values: float32 [pairs], in the order of the pairs; mapped from the output file if there is one.
        figures: statistics of the values by name.
        path: the output file, or None.
    """

    values: "NDArray[np.float32]"
    figures: dict[str, object]
    path: Path | None = None

    def __fspath__(self) -> str:
        """Return the path of the output file as a string."""
        if self.path is None:
            raise InputError("the values were not written to a file")
        return str(self.path)


@operation(version=2)
def column(
    pairs: InputFile,
    output: OptionalOutput = None,
    *,
    name: Annotated[str, Field(f"score; {COLUMNS.described()}", registry=COLUMNS)],
    vocabularies: InputDirectory | None = None,
    model: InputFile | None = None,
    shard: Shard = (1, 1),
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> TableColumn:
    r"""Compute a score for every phrase pair: a column of the phrase table, used as a feature of the decoder.

    The output is a float32 array with one score per pair: a natural logarithm of a probability, or a count. It can only
    be used with the same phrase pairs. `phrases select` adds columns to the phrase table of the decoder, and
    `phrases augment` adds columns to a phrase table in Moses format. The score of the RNN includes EOS and is not
    normalised by length; wp is not the WordPenalty of Moses.

    ``shard=(k, n)`` scores the k-th of n consecutive shards of nearly equal size, for parallel jobs. Shards have almost
    no effect on scores: each score differs by less than 1e-4 from the score that the pair has if computed alone.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt phrases column --name wp --pairs results/phrases/pairs.safetensors \
            --vocabularies results/rnn/vocabularies --output try/wp.safetensors
        rnnsmt phrases column --name rnn --pairs results/phrases/pairs.safetensors \
            --vocabularies results/rnn/vocabularies --model results/rnn/network1/model.safetensors --shard 1/2 \
            --output try/rnn.1-of-2.safetensors --threads 2

    Args:
        pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
        output: output file: scores (safetensors, array ``score``).
        vocabularies: directory written by `networks prepare --network rnn`, for rnn and wp.
        model: trained network, for scores computed by a network.
        shard: score only shard K of N.

    Returns:
        The scores.

    Raises:
        InputError: a file is missing or malformed, the network has other vocabularies, or torch is not installed.
    """
    import numpy as np

    from rnnsmt.base.array_file import ArrayFile
    from rnnsmt.base.progress import say
    from rnnsmt.phrases.column_files import REMEDY, SCORE, write_columns
    from rnnsmt.phrases.columns import ColumnInputs
    from rnnsmt.phrases.pairs import PhrasePairs

    store = PhrasePairs(pairs, shard)
    begin, end = store.begin, store.end
    directory, network = (None if path is None else Path(path) for path in (vocabularies, model))
    blocks = COLUMNS[name].scores(ColumnInputs(store, begin, end, directory, network, device, threads))

    def check(scores: int) -> None:
        if scores != end - begin:
            raise InputError(f"--name {name}: computed {scores} scores for {end - begin} phrase pairs; correct it")

    if output is None:
        values = np.concatenate([np.zeros(0, np.float32), *(block.astype(np.float32) for block in blocks)])
        check(len(values))
    else:
        with write_columns(output, store, {SCORE: np.float32}, name=name, begin=begin) as out:
            for block in blocks:
                out.append(SCORE, block)
            check(out.lengths[SCORE])  # checked inside the block, so that an output file is not created
        values = ArrayFile(output, REMEDY)[SCORE]
    if len(values) and not np.count_nonzero(values):
        say(f"all scores of {COLUMNS[name].label} are 0, so that the feature has no effect")
    mean = float(values.sum(dtype=np.float64)) / max(len(values), 1)
    return TableColumn(values, {"pairs": len(values), "mean score": mean}, None if output is None else Path(output))


@operation(version=5)
def score(
    extract: InputFile,
    pairs: InputFile,
    lex_e2f: InputFile,
    lex_f2e: InputFile,
    output: OutputFile,
    *,
    smoothing: PhraseSmoothing = Phrases.smoothing,
    threads: Threads = THREADS,
    memory_mb: MemoryMb = MEMORY_MB,
) -> Written:
    r"""Compute the scores of the phrase table: p(f|e), lex(f|e), p(e|f) and lex(e|f) of every distinct phrase pair.

    f is the source phrase and e the target phrase. Phrase probabilities are smoothed by modified Kneser-Ney smoothing
    (Foster et al. 2006); with ``smoothing="none"``, they are relative frequencies. Lexical weights are computed as in
    Koehn, Och and Marcu (2003, section 4.4), with the most frequent alignment of the pair; ties are broken as in Moses.

    The output contains an array for each score, with one element per pair. Scores have six significant digits, as in
    Moses, and are stored in single precision. `phrases export` writes them as a phrase table in Moses format.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases score --extract try/extract.parquet --pairs try/extract.safetensors --lex-e2f try/lex.e2f \
            --lex-f2e try/lex.f2e --smoothing kneser-ney --output try/scores.safetensors

    Args:
        extract: phrase pairs and counts, written by `phrases extract`.
        pairs: distinct phrase pairs, written by the same command.
        lex_e2f: p(source word | target word), written by `phrases lexical`.
        lex_f2e: p(target word | source word), written by `phrases lexical`.
        output: output file: scores, alignments and counts of the pairs (safetensors).

    Returns:
        The file; its figures are the number of phrase pairs and the number of source phrases.

    Raises:
        InputError: a file is missing or malformed, or ``extract`` and ``pairs`` have different pairs.
    """
    from rnnsmt.phrases.scoring import score_phrases

    files = str(extract), str(pairs), str(lex_e2f), str(lex_f2e)
    return Written(Path(output), score_phrases(*files, str(output), threads, memory_mb, smoothing))


@operation(version=3)
def reordering(
    extract: InputFile,
    pairs: InputFile,
    output: OutputFile,
    *,
    smoothing: Annotated[float, Field(gt=0)] = 0.5,
    threads: Threads = THREADS,
    memory_mb: MemoryMb = MEMORY_MB,
) -> Written:
    r"""Compute the scores of the lexicalised reordering table ``wbe-msd-bidirectional-fe`` (Koehn et al. 2005).

    A phrase pair has six probabilities: monotone, swap and discontinuous with respect to the previous phrase, and the
    same three with respect to the next phrase. They are estimated from counts with additive smoothing. If
    `phrases extract` has read the same text with n alignments, each alignment contributes 1/n to the counts, so that a
    duplicate alignment does not change the result.

    The output contains an array for each probability, with one element per pair.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases reordering --extract try/extract.parquet --pairs try/extract.safetensors \
            --output try/reordering.safetensors

    Args:
        extract: phrase pairs and counts, written by `phrases extract`.
        pairs: distinct phrase pairs, written by the same command.
        output: output file: reordering scores of the pairs (safetensors).
        smoothing: constant added to every count.

    Returns:
        The file; its figure is the number of phrase pairs.

    Raises:
        InputError: a file is missing or malformed, or ``extract`` and ``pairs`` have different pairs.
    """
    from rnnsmt.phrases.scoring import score_orientations

    figures = score_orientations(str(extract), str(pairs), str(output), smoothing, threads, memory_mb)
    return Written(Path(output), figures)


@operation(version=1)
def select(
    pairs: InputFile,
    scores: InputFile,
    reordering: InputFile,
    output: OutputFile,
    *,
    input: Texts | None = None,
    column: Sequence[Sequence[InputFile]] = (),
) -> Written:
    r"""Select the phrase pairs and scores with which the decoder translates given texts.

    A pair is selected if its source phrase occurs in a text; without a text, all pairs are selected. The output is a
    phrase table and reordering table in binary form (`search binarize`): in the ``model_dir`` of `search decode` or
    `tuning tune`, phrase-table.binary.safetensors replaces phrase-table.gz. The scores are identical to the scores in
    the tables in Moses format (`phrases export`, `phrases augment`).

    Every ``column`` adds one score, in the given order; the files of a column are consecutive shards.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases select --pairs try/extract.safetensors --scores try/scores.safetensors \
            --reordering try/reordering.safetensors \
            --input results/corpus/joined/truecased/dev.en.gz --output try/selected/phrase-table.binary.safetensors

    Args:
        pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
        scores: scores of the pairs, written by `phrases score` or `phrases import-table`.
        reordering: reordering scores of the pairs, written by `phrases reordering` or `phrases import-table`.
        output: output file: phrase table of the decoder (safetensors).
        input: tokenised texts to translate.
        column: scores of the pairs, written by `phrases column`, in consecutive shards; may be repeated.

    Returns:
        The file; its figures are numbers of source phrases, pairs and scores.

    Raises:
        InputError: a file is missing, malformed or contains scores of other phrase pairs; the texts contain no words.
    """
    from rnnsmt.phrases.selection import select_table

    with TextFiles() as files:
        texts = None if input is None else files.all_of("input", input)
        table, figures = select_table(pairs, scores, reordering, column, texts)
    table.write(output)
    return Written(Path(output), figures)


@operation(version=1)
def export(
    pairs: InputFile,
    scores: InputFile,
    output_phrase_table: OutputFile,
    *,
    reordering: InputFile | None = None,
    output_reordering_table: OutputFile | None = None,
    threads: Threads = THREADS,
) -> WrittenFiles:
    r"""Write phrase pairs and their scores as a phrase table and a reordering table in Moses format.

    Format, sort order and numbers are the same as in the tables that Moses builds from the same alignment.
    `phrases augment` adds columns to the phrase table.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases export --pairs try/extract.safetensors --scores try/scores.safetensors \
            --reordering try/reordering.safetensors --output-phrase-table try/phrase-table.gz \
            --output-reordering-table try/reordering-table.gz

    Args:
        pairs: phrase pairs, written by `phrases extract`.
        scores: scores of the pairs, written by `phrases score`.
        output_phrase_table: output file: phrase table.
        reordering: reordering scores of the pairs, written by `phrases reordering`.
        output_reordering_table: output file: reordering table.

    Returns:
        The tables; their figure is the number of phrase pairs.

    Raises:
        InputError: a file is missing, malformed, contains scores of other phrase pairs, or was imported from a table in
            Moses format; only one of ``reordering`` and ``output_reordering_table`` is given.
    """
    from rnnsmt.phrases.exporting import export_phrase_table, export_reordering_table
    from rnnsmt.phrases.pairs import PhrasePairs

    if (reordering is None) != (output_reordering_table is None):
        raise InputError("--reordering and --output-reordering-table: must be used together")
    store = PhrasePairs(pairs)
    figures = export_phrase_table(store, scores, output_phrase_table, threads)
    if reordering is None or output_reordering_table is None:
        return WrittenFiles([Path(output_phrase_table)], figures)
    export_reordering_table(store, reordering, output_reordering_table, threads)
    return WrittenFiles([Path(output_phrase_table), Path(output_reordering_table)], figures)


@operation(version=1)
def show(
    pairs: InputFile,
    *,
    source: Annotated[str, Field("source phrase (default: the first ones of the table)", metavar="WORDS")]
    | None = None,
    scores: InputFile | None = None,
    reordering: InputFile | None = None,
    column: Sequence[Sequence[InputFile]] = (),
    limit: Positive = 20,
) -> "ShownPairs":
    r"""Print phrase pairs with named scores, grouped by source phrase and sorted by descending p(target|source).

    The output is a table with tabs between the columns, and the names of the columns in the first line. The input files
    can also be read with ``safetensors.numpy.load_file``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases show --pairs results/phrases/pairs.safetensors --scores results/phrases/scores.safetensors \
            --column results/columns/rnn/network1/1-of-2.safetensors results/columns/rnn/network1/2-of-2.safetensors \
            --column results/columns/wp/network1/1-of-1.safetensors --source "the harbour" --limit 5

    Args:
        pairs: phrase pairs, written by `phrases extract` or `phrases import-table`.
        scores: scores of the pairs, written by `phrases score` or `phrases import-table`.
        reordering: reordering scores of the pairs, written by `phrases reordering` or `phrases import-table`.
        column: scores of the pairs, written by `phrases column`, in consecutive shards; may be repeated.
        limit: maximum number of pairs.

    Returns:
        The lines; the attribute ``frame`` contains the table as a DataFrame.

    Raises:
        InputError: a file is malformed or contains scores of other phrase pairs.
    """
    from rnnsmt.phrases.showing import show_pairs

    return show_pairs(pairs, scores, reordering, column, source, limit)


@operation(version=2)
def filter(
    input: Texts,
    phrase_table: InputFile,
    reordering_table: InputFile,
    output_dir: OutputDirectory,
    *,
    max_length: Positive = Phrases.max_length,
) -> Written:
    r"""Filter a phrase table and a reordering table in Moses format for input texts, for the decoder of Moses.

    A line is kept if its source phrase occurs in the input. Both tables are streamed; the output files have the same
    names as the tables.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases filter --input results/corpus/joined/truecased/dev.en.gz \
            --phrase-table try/phrase-table.gz --reordering-table try/reordering-table.gz --output-dir try/filtered

    Args:
        input: tokenised texts to translate.
        phrase_table: phrase table in Moses format.
        reordering_table: reordering table in Moses format.
        output_dir: output directory: both filtered tables.
        max_length: maximum number of words of a source phrase in the tables.

    Returns:
        The directory; its figures are numbers of lines.

    Raises:
        InputError: the input contains no words, a table is malformed, or the output directory contains the tables.
    """
    from rnnsmt.phrases.filtering import filter_tables

    with TextFiles() as files:
        texts = files.all_of("input", input)
        figures = filter_tables(texts, str(phrase_table), str(reordering_table), str(output_dir), max_length)
    return Written(Path(output_dir), figures)


@operation(version=2)
def augment(
    column: Sequence[Sequence[InputFile]],
    output: OutputFile,
    *,
    phrase_table: InputFile | None = None,
    ini: InputFile | None = None,
    output_ini: OutputFile | None = None,
    threads: Threads = THREADS,
) -> Written:
    r"""Add scores to a phrase table, and their weights to the moses.ini of the model.

    A score file contains one natural logarithm per line of the table. The probability exp(score) is added to each line,
    because Moses takes the logarithm of every score; probabilities below 1e-40 are replaced by 1e-40. The table is
    streamed; its other fields are not changed. Every ``column`` adds one score; the files of a column are consecutive
    shards.

    With ``ini``, scores are added to the phrase table of a model, for example a model that Moses built. ``output_ini``
    is a copy of this moses.ini that refers to the new table and has a weight for every added score: 0 if all scores are
    integers, that is, counts (such as wp), otherwise 0.2. All other weights and settings are unchanged. Paths in the
    copy are absolute, so that Moses can be started in any directory. Tune the weights before you use the model.

    Example, in the directory of a run of the demo corpus:

        rnnsmt phrases augment --phrase-table results/model/phrase-table.gz --output try/augmented.gz \
            --column results/columns/rnn/network1/1-of-2.safetensors results/columns/rnn/network1/2-of-2.safetensors \
            --column results/columns/wp/network1/1-of-1.safetensors
        rnnsmt phrases augment --ini results/model/moses.ini --output try/column.gz --output-ini try/column.ini \
            --column results/columns/wp/network1/1-of-1.safetensors

    Args:
        column: scores of the lines of the table, written by `phrases column`, in consecutive shards; may be repeated.
        output: output file: phrase table with the additional scores.
        phrase_table: phrase table in Moses format.
        ini: moses.ini of a model; the scores are added to its phrase table; requires ``output_ini``.
        output_ini: output file: moses.ini that refers to the new table; requires ``ini``.

    Returns:
        The table; its figures are the number of lines and the number of scores per line.

    Raises:
        InputError: both or neither of ``phrase_table`` and ``ini`` are given; only one of ``ini`` and ``output_ini`` is
            given; the number of scores in a column differs from the number of lines in the table; a score is not a log
            probability.
    """
    from rnnsmt.phrases.augmentation import augment_model, augment_table

    if (ini is None) != (output_ini is None):
        raise InputError("--ini and --output-ini: must be used together")
    columns = [[str(path) for path in paths] for paths in column]
    if ini is not None and output_ini is not None and phrase_table is None:
        figures = augment_model(str(ini), columns, str(output), str(output_ini), threads)
    elif phrase_table is not None and ini is None:
        figures = augment_table(str(phrase_table), columns, str(output), threads)
    else:
        raise InputError("--phrase-table or --ini: exactly one of them is required")
    return Written(Path(output), figures)
