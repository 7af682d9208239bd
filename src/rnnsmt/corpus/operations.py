"""Operations on raw files and text: from downloads to clean, tokenised and truecased sentences, and back to text."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from rnnsmt.base.arguments import (
    InputDirectory,
    InputFile,
    InputFiles,
    OptionalOutput,
    OutputDirectory,
    OutputFile,
    Positive,
    Seed,
    Text,
    TextFiles,
    Texts,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Values, Written, operation
from rnnsmt.base.options import MAX_THREADS
from rnnsmt.base.paths import StrPath
from rnnsmt.config.corpus_entry import Format
from rnnsmt.config.languages import Language
from rnnsmt.config.sections import (
    Escape,
    LengthRatio,
    Lowercase,
    Normalize,
    Preprocessing,
    SentenceLength,
    Tokenize,
)
from rnnsmt.corpus.inputs import corpus_entry
from rnnsmt.corpus.training_overlap import NEAR
from rnnsmt.registries import CORPUS_FORMATS

if TYPE_CHECKING:
    from rnnsmt.corpus.findings import CheckedCorpora
    from rnnsmt.corpus.preparation import Prepared
    from rnnsmt.corpus.splitting import SplitCorpus
    from rnnsmt.corpus.tokenizer import Casing
    from rnnsmt.corpus.training_overlap import KnownSentences

Processes = Annotated[int, Field("number of processes; does not affect the result", ge=1, le=MAX_THREADS)]

SourceLang = Annotated[
    Language, Field("source language, two-letter code (ISO 639-1) (default: from the names or content of the inputs)")
]

TargetLang = Annotated[
    Language, Field("target language, two-letter code (ISO 639-1) (default: from the names or content of the inputs)")
]

FORMATS = " or ".join(map(str.upper, CORPUS_FORMATS))

BITEXT = f"file with source and target text: zip archive, {FORMATS}, or the prefix of two text files"

Bitext = Annotated[InputFile, Field(BITEXT)]

BitextFiles = Annotated[InputFiles, Field(f"{BITEXT}; or a source file and a target file")]

Columns = Annotated[
    tuple[Positive, Positive],
    Field("1-based column numbers of source and target in a TSV file", metavar=("S", "T")),
]

Members = Annotated[
    tuple[str, str],
    Field(
        "names of the source and target files in a zip archive (default: the files whose suffixes are the language "
        "codes)",
        metavar=("S", "T"),
    ),
]


def _check_digest(text: str) -> None:
    """Check the text of a SHA-256."""
    if text != "none" and not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise ValueError('must be 64 hexadecimal digits or "none"')


class WrittenSides(NamedTuple):
    """Files with the two sides of a corpus.

    Attributes:
        source, target: the files.
        figures: number of pairs, by name: the last line in the log of the command.
    """

    source: Path
    target: Path
    figures: Mapping[str, object]


@operation(version=1)
def fetch(
    url: str,
    output: OutputFile,
    *,
    sha256: Annotated[str, Field(metavar="HEX", check=_check_digest)],
    mirror: Annotated[Sequence[str], Field(metavar="URL")] = (),
) -> Written:
    """Download a corpus file and check its SHA-256.

    ``url`` is tried first, then the mirrors in the given order. The program curl must be installed. It downloads the
    file, resumes after a broken connection, and retries if a server is busy. An incomplete download is kept in
    FILE.KEY.part, and the same command resumes it; FILE is written only when the download is complete. If FILE exists
    and has the expected SHA-256, nothing is downloaded.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus fetch --url file://$PWD/try/texts.tar.gz --sha256 none --output try/fetched.tar.gz

    Args:
        url: URL of the file (http, https, ftp or file).
        output: output file.
        sha256: expected SHA-256 of the file, or "none" to skip the check.
        mirror: alternative URLs of the same file, tried in this order.

    Returns:
        The file; its figures are the number of bytes, the SHA-256 and where it is from.

    Raises:
        InputError: no URL works, a file has another SHA-256, or curl is not installed.
    """
    from rnnsmt.base.opening import sha256 as digest_of
    from rnnsmt.corpus.download import fetch_first

    expected = None if sha256 == "none" else sha256.lower()
    path = Path(output)
    if expected is not None and path.is_file() and digest_of(path) == expected:
        return Written(path, {"bytes": path.stat().st_size, "sha256": expected, "from": "existing file"})
    size, digest, found = fetch_first([url, *mirror], expected, path)
    return Written(path, {"bytes": size, "sha256": digest, "from": found})


@operation(version=1)
def unpack(archive: InputFile, member: Annotated[str, Field(metavar="PATH")], output: OutputFile) -> Written:
    """Extract one file from a tar archive (plain, .gz, .bz2 or .xz) or a zip archive, the formats used by WMT and OPUS.

    A tar archive is read sequentially up to the requested file; only this file is written to disk. A file that is
    compressed inside the archive is not decompressed.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus unpack --archive try/fetched.tar.gz --member try/demo/dev.en --output try/unpacked.en

    Args:
        archive: tar archive (plain, .gz, .bz2 or .xz) or zip archive.
        member: path of the file inside the archive.
        output: output file.

    Returns:
        The file; its figure is the number of bytes.

    Raises:
        InputError: the archive is damaged, or does not contain the file.
    """
    from rnnsmt.corpus.download import extract_member

    return Written(Path(output), {"bytes": extract_member(str(archive), member, str(output))})


@operation(version=3)
def separate(
    bitext: BitextFiles,
    output_source: OutputFile,
    output_target: OutputFile,
    *,
    source_lang: SourceLang | None = None,
    target_lang: TargetLang | None = None,
    columns: Columns = (1, 2),
    members: Members | None = None,
    format: Format | None = None,
    lines: Sequence[Positive] = (),
    without_lines: Sequence[Positive] = (),
) -> WrittenSides:
    r"""Extract the source and target text of a zip archive, a TMX file or a TSV file, or lines of a corpus.

    A zip archive, as distributed by OPUS, contains a text file for each language (NAME.en and NAME.fr), or one TMX or
    TSV file. Every translation unit of a TMX file that has both languages becomes one line; formatting codes inside
    segments are removed. TMX files whose document type declares entities are rejected, and external references in a TMX
    file are not followed. TMX and TSV files may be compressed with gzip, bzip2 or xz. The text itself is not changed.

    ``lines`` and ``without_lines`` divide a corpus into held-out and training text; ``bitext`` may then also be a
    source file and a target file.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus separate --bitext try/pairs.tsv --source-lang en --target-lang fr \
            --output-source try/pairs.en.gz --output-target try/pairs.fr.gz

    Args:
        output_source: output file: source side.
        output_target: output file: target side.
        lines: numbers of the only lines that are written, from 1 on.
        without_lines: numbers of the lines to leave out, counted from 1.

    Returns:
        The files; their figure is the number of pairs.

    Raises:
        InputError: the languages are unknown, a file is malformed, or the corpus has no segments, or fewer lines than
            the numbers that are given.
    """
    from dataclasses import replace

    from rnnsmt.base.progress import track
    from rnnsmt.base.writing import atomic_binary
    from rnnsmt.corpus.inputs import raw_corpus

    if lines and without_lines:
        raise InputError("--lines and --without-lines cannot be combined")
    corpus = raw_corpus(_one_or_two(bitext), (source_lang, target_lang), columns, members, format)
    corpus = replace(corpus, lines=lines, without_lines=without_lines)
    pairs = 0
    with atomic_binary(output_source) as source, atomic_binary(output_target) as target:
        for source_segment, target_segment in track(corpus.rows(None), "separating"):
            source.write((source_segment or b"") + b"\n")
            target.write((target_segment or b"") + b"\n")
            pairs += 1
        if not pairs:
            raise InputError(f"{corpus}: contains no segments")
    return WrittenSides(Path(output_source), Path(output_target), {"pairs": pairs})


@operation(version=8)
def prepare(
    source: Text | None = None,
    target: Text | None = None,
    *,
    bitext: Bitext | None = None,
    source_lang: SourceLang | None = None,
    target_lang: TargetLang | None = None,
    columns: Columns = (1, 2),
    members: Members | None = None,
    format: Format | None = None,
    output_source: OutputFile | None = None,
    output_target: OutputFile | None = None,
    report: OptionalOutput = None,
    normalize: Normalize = Preprocessing.normalize,
    tokenize: Tokenize = Preprocessing.tokenize,
    escape: Escape = Preprocessing.escape,
    lowercase: Lowercase = Preprocessing.lowercase,
    max_length: SentenceLength = Preprocessing.max_length,
    max_ratio: LengthRatio = Preprocessing.max_ratio,
    keep_all: bool = False,
    min_lines: Positive = 1,
    check: bool = True,
    threads: Processes = 1,
) -> "Prepared":
    r"""Normalise, tokenise and clean a monolingual or parallel corpus.

    Input is plain text with one segment per line, or SGM as distributed by WMT; either may be compressed with gzip,
    bzip2 or xz. ``bitext`` is one file with source and target text; see `rnnsmt corpus separate`. The format is
    detected from the first bytes of the file, not from its name.

    Normalisation, tokenisation and cleaning follow Moses (normalize-punctuation.perl, tokenizer.perl,
    clean-corpus-n.perl). A line or pair is discarded if a side is empty or longer than ``max_length``, or if
    one side is more than ``max_ratio`` times as long as the other. The report (JSON) contains the
    number of discarded and repaired lines by reason, and the size and SHA-256 of the input files. A file is rejected if
    more than three of its lines, and more than 3 % of them, are not valid UTF-8.

    The first 2,000 lines are checked first. The command ends with an error if source and target are swapped. It warns
    if a side is in another language, contains numbers or single words instead of sentences, has no spaces between
    words, or is shifted by a line. ``check=False`` skips these checks.

    ``normalize=False`` ``tokenize=False`` passes tokenised corpora through unchanged except for whitespace, control
    characters and cleaning. Do not use ``escape=False`` for text that Moses will read: such text must not contain an
    unescaped "|".

    Examples, in the directory of a run of the demo corpus:

        rnnsmt corpus prepare --source try/demo/general.en.gz --target try/demo/general.fr.gz --source-lang en \
            --target-lang fr --output-source try/general.en.gz --output-target try/general.fr.gz \
            --report try/general.json --threads 2
        rnnsmt corpus prepare --source try/demo/dev.en --target try/demo/dev.fr --source-lang en --target-lang fr \
            --keep-all --output-source try/dev.en.gz --output-target try/dev.fr.gz --report try/dev.json

    Args:
        source: source text; omit it for monolingual target text.
        target: target text; omit it for monolingual source text.
        output_source: output file: source side; required with ``source``.
        output_target: output file: target side; required with ``target``.
        report: output file: numbers of lines, tokens, rejected lines and repaired lines (JSON).
        keep_all: keep all lines and repair invalid ones (for dev and test sets).
        min_lines: minimum number of non-empty lines in the output.
        check: check the languages, the order of the sides, and shifted lines.

    Returns:
        The counts (``report()``), and, if neither outputs nor a report are given, the lines of each side (``texts``).

    Raises:
        InputError: an option lacks its counterpart, a file is malformed or in another encoding, the sides have
            different numbers of lines or are swapped, or too few lines remain.
    """
    from dataclasses import replace

    from rnnsmt.base.reading import read_lines
    from rnnsmt.base.writing import write_json
    from rnnsmt.corpus.inputs import raw_corpus
    from rnnsmt.corpus.preparation import prepare_corpus

    if bitext is not None and (source is not None or target is not None):
        raise InputError("--bitext cannot be combined with --source or --target")
    is_given = {"source": source is not None, "target": target is not None} if bitext is None else {}
    to_write = {"source": output_source, "target": output_target}
    in_memory = report is None and not any(to_write.values())
    for side, output in to_write.items():
        if not in_memory and is_given.get(side, True) != (output is not None):
            raise InputError(
                f"--{side} and --output-{side} must be used together" if bitext is None else
                "--bitext requires --output-source and --output-target"
            )  # fmt: skip
    if bitext is None and not any(is_given.values()):
        raise InputError(
            "no input; specify --source, --target or both, or --bitext, with the corresponding --output options"
        )
    options = Preprocessing(
        normalize=normalize,
        tokenize=tokenize,
        escape=escape,
        lowercase=lowercase,
        max_length=max_length,
        max_ratio=max_ratio,
    )
    with TextFiles() as files:
        paths = [str(bitext)] if bitext is not None else _paths_of(files, source, target)
        corpus = raw_corpus(paths, (source_lang, target_lang), columns, members, format, files.directory)
        if in_memory:
            outputs = [str(files.directory / f"tokens {number}") for number in range(len(corpus.langs))]
        else:
            outputs = [str(output) for output in to_write.values() if output is not None]
        prepared = prepare_corpus(corpus, outputs, options, keep_all, threads=threads, min_lines=min_lines, check=check)
        if in_memory:
            prepared = replace(prepared, texts=tuple(list(read_lines(path)) for path in outputs))
    if report is not None:
        write_json(report, prepared.report())
    return prepared


@operation(version=5)
def split(
    source: Text | None = None,
    target: Text | None = None,
    output_dir: Annotated[OutputDirectory | None, Field(required=True)] = None,
    *,
    bitext: BitextFiles | None = None,
    source_lang: SourceLang | None = None,
    target_lang: TargetLang | None = None,
    columns: Columns = (1, 2),
    members: Members | None = None,
    format: Format | None = None,
    dev: Positive | None = None,
    test: Positive | None = None,
    similarity: Annotated[float, Field(gt=0, le=1)] = NEAR,
    unique: bool = False,
    seed: Seed = 1,
    report: OutputFile | None = None,
) -> "SplitCorpus":
    r"""Split one parallel corpus into training, dev and test text.

    The three parts have no source sentence and no target sentence in common; sentences are compared ignoring case,
    punctuation and the values of digits. Dev and test pairs are drawn at random from the pairs whose sentences occur
    only once. Training pairs that are similar to a dev or test pair on either side are discarded; similarity is the
    Jaccard index of the sets of word trigrams. Pairs with an empty side, invalid UTF-8 or a line of more than 65,536
    bytes are discarded as well. The first 2,000 lines are checked first: the command ends with an error if source and
    target are swapped, and warns if a side is in another language or is shifted by a line.

    The output files are DIR/train.LANG.gz, DIR/dev.LANG and DIR/test.LANG. By default, the languages are those of the
    suffixes of the input files, of the files in the zip archive, or of the TMX file. The command prints the entries of
    `languages` and `corpora` for the configuration.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus split --source try/demo/general.en.gz --target try/demo/general.fr.gz --source-lang en \
            --target-lang fr --dev 100 --test 100 --output-dir try/own --report try/own/split.json

    Args:
        source: source side.
        target: target side.
        output_dir: output directory: source and target files of train, dev and test.
        dev: number of dev pairs; default: 2,000, but at most a tenth of the pairs of the corpus.
        test: number of test pairs; default: as for ``dev``.
        similarity: discard training pairs whose similarity to a dev or test pair is at least this value; 1: discard
            only identical sentences.
        unique: discard duplicate training pairs.
        report: output file: numbers of train, dev, test and discarded pairs (JSON).

    Returns:
        The counts, the entries of the configuration (lines), and, without ``output_dir``, the text of each part.

    Raises:
        InputError: the languages are unknown or swapped, the sides have different numbers of lines, or there are too
            few pairs that can be dev and test pairs.
    """
    from rnnsmt.base.progress import warn
    from rnnsmt.base.writing import write_json
    from rnnsmt.corpus.inputs import raw_corpus
    from rnnsmt.corpus.sample import sample_warnings
    from rnnsmt.corpus.splitting import SplitCorpus, SplitOptions, split_bitext

    if (bitext is None) == (source is None) or (source is None) != (target is None):
        raise InputError("--source and --target, or --bitext, is required")
    options = SplitOptions(dev, test, similarity, unique, seed)
    with TextFiles() as files:
        paths = _paths_of(files, source, target) if bitext is None else _one_or_two(bitext)
        corpus = raw_corpus(paths, (source_lang, target_lang), columns, members, format, files.directory)
        for warning in sample_warnings(corpus):
            warn(warning)
        directory = files.directory / "parts" if output_dir is None else Path(output_dir)
        done = SplitCorpus(corpus.langs, split_bitext(corpus, directory, options))
        if output_dir is None:
            done.read_texts(directory)
    if report is not None:
        settings = {"seed": seed, "similarity": similarity, "unique": unique}
        write_json(report, {"input": str(corpus), **settings, **done.counts.report()})
    return done


@operation(version=5)
def check(
    corpus: Sequence[
        Annotated[
            Mapping[str, Any],
            Field(metavar="NAME=ROLE=FILE[=FILE]", parse=corpus_entry, expected="an entry of a configuration"),
        ]
    ] = (),
    *,
    config: Annotated[InputFile, Field(metavar="YAML")] | None = None,
    data_dir: InputDirectory | None = None,
    source_lang: Language | None = None,
    target_lang: Language | None = None,
    json: bool = False,
) -> "CheckedCorpora":
    r"""Check corpora before a run: languages, swapped sides, duplicates, test sentences in the training text, encoding.

    For every corpus, the report contains the numbers of lines, of empty lines, of lines that are not UTF-8, and of
    pairs that have very different lengths, have the same text on both sides, or are repeated. It is an error if source
    and target are swapped. The command warns if a side is in another language (as guessed by py3langid, the extra
    `check`); if sentence lengths show that one side is shifted by a line, and from which line on; if sentences of dev
    and test are also in the training text (compared ignoring case, punctuation and the values of digits) or have a
    near-duplicate there (half of the word trigrams are shared); and if many words of dev and test do not occur in the
    training text. The n-gram overlap of dev and test is the share of the n-grams of their source sentences, n = 1 to 4,
    that occur in the training text: the mean over n and over the sentences.

    The exit status is 0 if no problems are found, 3 if problems are found, and 2 for invalid options.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus check --corpus train=bitext=try/own/train.en.gz=try/own/train.fr.gz \
            dev=dev=try/own/dev.en=try/own/dev.fr test=test=try/own/test.en=try/own/test.fr

    Args:
        corpus: corpora to check, instead of ``config``; ROLE is bitext, mono, dev or test; FILE=FILE are source and
            target, a single FILE contains both (for mono, only the target).
        config: configuration file of the workflow, from which languages, data_dir and corpora are read.
        data_dir: directory of the corpus files; overrides data_dir in the configuration.
        source_lang: source language, two-letter code (ISO 639-1) (default: from the configuration or the file names,
            otherwise that of the demo corpus).
        target_lang: target language, two-letter code (ISO 639-1) (default: from the configuration or the file names,
            otherwise that of the demo corpus).
        json: print the report as JSON.

    Note:
        In Python, ``corpus`` is a list of entries of `corpora` in a configuration, such as {"name": "news", "role":
        "mono", "target": "news.fr"}.

    Returns:
        The report (lines), and the figures and problems of every corpus (``findings``).

    Raises:
        InputError: the configuration or an entry of it is malformed, or a language is not a code.
    """
    from rnnsmt.corpus.findings import CheckedCorpora, CorpusCheck
    from rnnsmt.corpus.inputs import corpora_to_check

    if bool(corpus) == (config is not None):
        raise InputError("either --config or --corpus is required")
    languages, corpora = corpora_to_check(corpus, config, data_dir, (source_lang, target_lang))
    return CheckedCorpora(CorpusCheck(languages).run(corpora), json)


@operation(version=1)
def overlap(
    training: Texts, set: Annotated[Mapping[str, Text], Field(metavar="NAME=FILE")], output: OptionalOutput = None
) -> "KnownSentences":
    r"""Count the source sentences of dev and test sets that also occur in the training text.

    All texts must have the same preprocessing. Sentences are compared exactly, without white space at both ends; empty
    lines are not counted. The command warns about every set with more than 2 % of such sentences, because they make
    scores too high. The output is {"NAME": {"sentences": n, "known": k}}. `rnnsmt corpus check` also finds
    near-duplicates.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus overlap --training try/general.en.gz --set dev=try/dev.en.gz --output try/overlap.json

    Args:
        training: training text, source side.
        set: name and source side of each dev and test set.
        output: output file: number of sentences and of known ones by set (JSON).

    Returns:
        The values of the output.
    """
    from rnnsmt.base.arguments import sentences
    from rnnsmt.base.progress import track, warn
    from rnnsmt.base.reading import read_lines
    from rnnsmt.base.writing import write_json
    from rnnsmt.corpus.training_overlap import known_sentences, known_warnings

    with TextFiles() as files:
        lines = chain.from_iterable(map(read_lines, files.all_of("training", training)))
        sets = {name: sentences(f"set {name}", text) for name, text in set.items()}
        found = known_sentences(track(lines, "reading training text"), sets)
    if output is not None:
        write_json(output, found)
    for warning in known_warnings(found):
        warn(warning)
    return found


@operation(version=1)
def join(input: InputFiles, output: OutputFile) -> Written:
    """Concatenate text files.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus join --input try/general.fr.gz try/dev.fr.gz --output try/joined.fr.gz

    Args:
        input: text files, concatenated in this order.
        output: output file: the concatenated text.

    Returns:
        The file; its figures are the numbers of files and of lines.

    Raises:
        InputError: the files contain no lines.
    """
    from rnnsmt.base.writing import write_lines
    from rnnsmt.corpus.raw_text import all_lines

    paths = [str(path) for path in each(input)]
    lines = write_lines(output, all_lines(paths))
    return Written(Path(output), {"files": len(paths), "lines": lines})


@operation(version=1)
def train_truecaser(input: Texts, output_model: OptionalOutput = None) -> "Casing":
    """Train a truecasing model on tokenised text and write it in Moses format.

    The model contains the counts of the cased forms of every word, as written by train-truecaser.perl. Words at the
    start of a sentence are not counted.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus train-truecaser --input try/general.fr.gz --output-model try/truecaser.fr

    Args:
        input: tokenised text in one language.
        output_model: output file: truecasing model.

    Returns:
        The model: the counts of the forms of every lower-cased word.

    Raises:
        InputError: every line has at most one word.
    """
    from rnnsmt.base.progress import track
    from rnnsmt.base.reading import read_lines
    from rnnsmt.corpus.tokenizer import learn_casing, save_casing

    with TextFiles() as files:
        paths = files.all_of("input", input)
        casing = learn_casing(track(chain.from_iterable(map(read_lines, paths)), "learning case"))
        if not casing:
            raise InputError(f"{', '.join(paths)}: every line has at most one word; is this tokenised text?")
    if output_model is not None:
        save_casing(casing, output_model)
    return casing


@operation(version=1)
def truecase(
    model: Annotated[
        StrPath | Mapping[str, Mapping[str, int]],
        Field(metavar="FILE", path="input", expected="a path or a model of train_truecaser"),
    ],
    input: Text,
    output: OptionalOutput = None,
    *,
    threads: Processes = 1,
) -> Written | Values[str]:
    """Truecase a tokenised text with a truecasing model in Moses format, like truecase.perl.

    The first word of a sentence, and any unseen form of a known word, is replaced by the most frequent form of the
    word. Words that are not in the model are not changed.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus truecase --model try/truecaser.fr --input try/dev.fr.gz --output try/dev.tc.fr.gz

    Args:
        model: model written by `corpus train-truecaser`.
        input: tokenised text.
        output: output file: truecased text.

    Returns:
        The lines; the file, if ``output`` is given.

    Raises:
        InputError: the model is malformed or empty.
    """
    from rnnsmt.corpus.tokenizer import Truecaser, save_casing

    with TextFiles() as files:
        if isinstance(model, Mapping):
            save_casing(model, files.directory / "model")
            model = files.directory / "model"
        truecaser = Truecaser(model)  # read here, so that an invalid model is reported before any work
    return _converted(lambda: truecaser, "truecasing", input, output, threads)


@operation(version=4)
def detokenize(
    input: Text,
    output: OptionalOutput = None,
    *,
    lang: Language,
    detruecase: bool = True,
    detokenize: bool = True,
    threads: Processes = 1,
) -> Written | Values[str]:
    """Detruecase and detokenise a text.

    The first word of every sentence is capitalised, entities are replaced by their characters, and tokens are joined,
    as in Moses (detruecase.perl, detokenizer.perl) but implemented by sacremoses.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus detokenize --input try/dev.tc.fr.gz --output try/dev.detokenized.fr --lang fr

    Args:
        input: tokenised text.
        output: output file.
        lang: language of the text, two-letter code (ISO 639-1).
        detruecase: capitalise the first word of a sentence.
        detokenize: join tokens and replace entities.

    Returns:
        The lines; the file, if ``output`` is given.
    """
    from rnnsmt.corpus.detokenizer import Detokenizer

    return _converted(partial(Detokenizer, lang, detruecase, detokenize), "detokenising", input, output, threads)


def _one_or_two(bitext: BitextFiles) -> list[str]:
    """Return the paths of a file with both sides, or of two files."""
    paths = [str(path) for path in each(bitext)]
    if len(paths) not in (1, 2):
        raise InputError(f"--bitext: {len(paths)} files; specify one file with both languages, or two files")
    return paths


def _paths_of(files: TextFiles, source: Text | None, target: Text | None) -> list[str | None]:
    """Return the files of both sides; None for a side that is not given."""
    sides = {"source": source, "target": target}
    return [None if text is None else files.of(side, text) for side, text in sides.items()]


def _converted(
    make: Callable[[], Callable[[str], str]], what: str, input: Text, output: OptionalOutput, threads: int
) -> Written | Values[str]:
    """Convert the lines of a text in several processes, see ``rnnsmt.base.parallel.map_lines``."""
    from rnnsmt.base.arguments import sentences
    from rnnsmt.base.parallel import map_lines
    from rnnsmt.base.progress import track
    from rnnsmt.base.writing import write_lines

    lines = map_lines(make, track(sentences("input", input), what), threads)
    if output is None:
        texts = list(lines)
        return Values(texts, {"lines": len(texts)})
    return Written(Path(output), {"lines": write_lines(output, lines)})
