"""Commands that convert raw files into clean, tokenised and truecased text."""

import argparse
import re
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from rnnsmt.base.io import InputError, read_lines, sha256, write_json, write_lines
from rnnsmt.base.options import add_threads, positive
from rnnsmt.base.progress import say, track
from rnnsmt.config.languages import code_mistake, yaml_code
from rnnsmt.corpus.options import (
    add_bitext,
    add_languages,
    add_output_sides,
    corpora_to_check,
    raw_corpus,
    sides_to_prepare,
)

FOUND = 3
"""Exit status of `rnnsmt corpus check` if it finds problems."""


def fetch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True, help="URL of the file (http, https, ftp or file)")
    parser.add_argument(
        "--mirror",
        nargs="+",
        action="extend",
        default=[],
        metavar="URL",
        help="alternative URLs of the same file, tried in this order",
    )
    parser.add_argument(
        "--sha256", required=True, metavar="HEX", help='expected SHA-256 of the file, or "none" to skip the check'
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="output file")


def fetch(args: argparse.Namespace) -> dict[str, object]:
    """Download a corpus file and check its SHA-256.

    --url is tried first, then the mirrors in the given order. The program curl must be installed. It downloads the
    file, resumes after a broken connection, and retries if a server is busy. An incomplete download is kept in
    FILE.KEY.part, and the same command resumes it; FILE is written only when the download is complete. If FILE exists
    and has the expected SHA-256, nothing is downloaded.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus fetch --url file://$PWD/try/texts.tar.gz --sha256 none --output try/fetched.tar.gz
    """
    from rnnsmt.corpus.download import fetch_first

    expected = None if args.sha256 == "none" else args.sha256.lower()
    if expected is not None and not re.fullmatch("[0-9a-f]{64}", expected):
        raise InputError(f'--sha256 {args.sha256}: must be 64 hexadecimal digits or "none"')
    output = Path(args.output)
    if expected is not None and output.is_file() and sha256(output) == expected:
        return {"bytes": output.stat().st_size, "sha256": expected, "from": "existing file"}
    size, digest, url = fetch_first([args.url, *args.mirror], expected, output)
    return {"bytes": size, "sha256": digest, "from": url}


def unpack_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--archive", required=True, metavar="FILE", help="tar archive (plain, .gz, .bz2 or .xz) or zip archive"
    )
    parser.add_argument("--member", required=True, metavar="PATH", help="path of the file inside the archive")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file")


def unpack(args: argparse.Namespace) -> dict[str, object]:
    """Extract one file from a tar archive (plain, .gz, .bz2 or .xz) or a zip archive, the formats used by WMT and OPUS.

    A tar archive is read sequentially up to the requested file; only this file is written to disk. A file that is
    compressed inside the archive is not decompressed.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus unpack --archive try/fetched.tar.gz --member try/demo/dev.en --output try/unpacked.en
    """
    from rnnsmt.corpus.download import extract_member

    return {"bytes": extract_member(args.archive, args.member, args.output)}


def separate_options(parser: argparse.ArgumentParser) -> None:
    add_bitext(parser, required=True, pair=True)
    add_languages(parser)
    add_output_sides(parser, required=True)
    selections = parser.add_mutually_exclusive_group()
    for option, what in (("--lines", "the only lines that are written"), ("--without-lines", "lines to leave out")):
        selections.add_argument(
            option, nargs="+", type=positive, default=[], metavar="N", help=f"numbers of {what}, from 1 on"
        )


def separate(args: argparse.Namespace) -> dict[str, object]:
    r"""Extract the source and target text of a zip archive, a TMX file or a TSV file, or lines of a corpus.

    A zip archive, as distributed by OPUS, contains a text file for each language (NAME.en and NAME.fr), or one TMX or
    TSV file. Every translation unit of a TMX file that has both languages becomes one line; formatting codes inside
    segments are removed. TMX files whose document type declares entities are rejected, and external references in a TMX
    file are not followed. TMX and TSV files may be compressed with gzip, bzip2 or xz. The text itself is not changed.

    --lines and --without-lines divide a corpus into held-out and training text; --bitext may then also be a source file
    and a target file.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus separate --bitext try/pairs.tsv --source-lang en --target-lang fr \
            --output-source try/pairs.en.gz --output-target try/pairs.fr.gz
    """
    from rnnsmt.base.io import atomic_binary

    if len(args.bitext) > 2:
        raise InputError(f"--bitext: {len(args.bitext)} files; specify one file with both languages, or two files")
    corpus = replace(raw_corpus(args, args.bitext), lines=args.lines, without_lines=args.without_lines)
    lines = 0
    with atomic_binary(args.output_source) as source, atomic_binary(args.output_target) as target:
        for source_segment, target_segment in track(corpus.rows(None), "separating"):
            source.write((source_segment or b"") + b"\n")
            target.write((target_segment or b"") + b"\n")
            lines += 1
        if not lines:
            raise InputError(f"{corpus}: contains no segments")
    return {"pairs": lines}


def prepare_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.base.fields import add_fields
    from rnnsmt.config.sections import Preprocessing

    add = parser.add_argument
    add("--source", metavar="FILE", help="source text; omit it for monolingual target text")
    add("--target", metavar="FILE", help="target text; omit it for monolingual source text")
    add_bitext(parser, required=False)
    add_languages(parser)
    add_output_sides(parser, required=False)
    add(
        "--report",
        required=True,
        metavar="JSON",
        help="output file: numbers of lines, tokens, rejected lines and repaired lines (JSON)",
    )
    add("--no-normalize", action="store_true", help="do not normalise punctuation")
    add("--no-tokenize", action="store_true", help="do not tokenise (the text is already tokenised)")
    add("--no-escape", action="store_true", help="do not escape & | < > ' \" [ ] as entities")
    add("--lowercase", action="store_true", help="lowercase the text")
    add_fields(parser, Preprocessing, "max_length", "max_ratio")
    add("--keep-all", action="store_true", help="keep all lines and repair invalid ones (for dev and test sets)")
    add("--min-lines", type=positive, default=1, metavar="N", help="minimum number of non-empty lines in the output")
    add("--no-check", action="store_true", help="do not check the languages, the order of the sides, and shifted lines")
    add_threads(parser, "processes")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Normalise, tokenise and clean a monolingual or parallel corpus.

    Input is plain text with one segment per line, or SGM as distributed by WMT; either may be compressed with gzip,
    bzip2 or xz. --bitext is one file with source and target text; see `rnnsmt corpus separate`. The format is detected
    from the first bytes of the file, not from its name.

    Normalisation, tokenisation and cleaning follow Moses (normalize-punctuation.perl, tokenizer.perl,
    clean-corpus-n.perl). A line or pair is discarded if a side is empty or longer than --max-length, or if
    one side is more than --max-ratio times as long as the other. The report (JSON) contains the
    number of discarded and repaired lines by reason, and the size and SHA-256 of the input files. A file is rejected if
    more than three of its lines, and more than 3 % of them, are not valid UTF-8.

    The first 2,000 lines are checked first. The command ends with an error if source and target are swapped. It warns
    if a side is in another language, contains numbers or single words instead of sentences, has no spaces between
    words, or is shifted by a line. --no-check skips these checks.

    --no-normalize --no-tokenize passes tokenised corpora through unchanged except for whitespace, control characters
    and cleaning. Do not use --no-escape for text that Moses will read: such text must not contain an unescaped "|".

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus prepare --source try/demo/general.en.gz --target try/demo/general.fr.gz --source-lang en \
            --target-lang fr --output-source try/general.en.gz --output-target try/general.fr.gz \
            --report try/general.json --threads 2
    """
    from rnnsmt.config.sections import Preprocessing
    from rnnsmt.corpus.preparation import prepare_corpus

    files, outputs = sides_to_prepare(args)
    corpus = raw_corpus(args, files)
    options = Preprocessing(
        normalize=not args.no_normalize,
        tokenize=not args.no_tokenize,
        escape=not args.no_escape,
        lowercase=args.lowercase,
        max_length=args.max_length,
        max_ratio=args.max_ratio,
    )
    prepared = prepare_corpus(
        corpus,
        outputs,
        options,
        args.keep_all,
        threads=args.threads,
        min_lines=args.min_lines,
        check=not args.no_check,
    )
    write_json(args.report, prepared.report())
    return prepared.figures()


def split_options(parser: argparse.ArgumentParser) -> None:
    from rnnsmt.corpus.splitting import NEAR

    add = parser.add_argument
    add("--source", metavar="FILE", help="source side")
    add("--target", metavar="FILE", help="target side")
    add_bitext(parser, required=False, pair=True)
    add_languages(parser)
    add("--dev", type=positive, default=2000, metavar="N", help="number of dev pairs")
    add("--test", type=positive, default=2000, metavar="N", help="number of test pairs")
    add(
        "--similarity",
        type=float,
        default=NEAR,
        metavar="X",
        help="discard training pairs whose similarity to a dev or test pair is at least this value; 1: discard only "
        "identical sentences",
    )
    add("--unique", action="store_true", help="discard duplicate training pairs")
    add("--seed", type=int, default=1, metavar="N", help="random seed for drawing the dev and test pairs")
    add(
        "--output-dir",
        required=True,
        metavar="DIR",
        help="output directory: source and target files of train, dev and test",
    )
    add("--report", metavar="JSON", help="output file: numbers of train, dev, test and discarded pairs (JSON)")


def split(args: argparse.Namespace) -> dict[str, object]:
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
    """
    from rnnsmt.corpus.sample import sample_warnings
    from rnnsmt.corpus.splitting import FILES, SplitOptions, split_bitext

    if not 0 < args.similarity <= 1:
        raise InputError(f"--similarity {args.similarity}: must be a number greater than 0 and at most 1")
    files = args.bitext or []
    if bool(files) == (args.source is not None) or (args.source is None) != (args.target is None):
        raise InputError("--source and --target, or --bitext, is required")
    if len(files) > 2:
        raise InputError(f"--bitext: {len(files)} files; specify one file with both languages, or two files")
    corpus = raw_corpus(args, files or [args.source, args.target])
    options = SplitOptions(args.dev, args.test, args.similarity, args.unique, args.seed)
    for warning in sample_warnings(corpus):
        say(f"warning: {warning}")
    done = split_bitext(corpus, Path(args.output_dir), options)
    if args.report:
        settings = {"seed": args.seed, "similarity": args.similarity, "unique": args.unique}
        write_json(args.report, {"input": str(corpus), **settings, **done.report()})
    roles = {"train": "bitext", "dev": "dev", "test": "test"}
    entries = []
    for subset, role in roles.items():
        source, target = (FILES[subset].format(lang) for lang in corpus.langs)
        entries.append(f"  - {{name: {subset}, role: {role}, source: {source}, target: {target}}}")
    codes = [yaml_code(lang) for lang in corpus.langs]
    print("\n".join([f"languages: {{source: {codes[0]}, target: {codes[1]}}}", "corpora:", *entries]))
    discarded = {
        "near-duplicates of dev and test": done.near.total(),
        "repeated": done.repeated,
        **dict(sorted(done.unusable.items())),
    }
    counts = ", ".join(f"{reason}: {number:,}" for reason, number in discarded.items() if number)
    return {**{subset: f"{done.sizes[subset]:,} pairs" for subset in roles}, "discarded": counts or "none"}


def check_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    inputs = parser.add_mutually_exclusive_group(required=True)
    inputs.add_argument(
        "--config",
        metavar="YAML",
        help="configuration file of the workflow, from which languages, data_dir and corpora are read",
    )
    add("--data-dir", metavar="DIR", help="directory of the corpus files; overrides data_dir in the configuration")
    inputs.add_argument(
        "--corpus",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=ROLE=FILE[=FILE]",
        help="corpora to check, instead of --config; ROLE is bitext, mono, dev or test; FILE=FILE are source and "
        "target, a single FILE contains both (for mono, only the target)",
    )
    add_languages(parser, "the configuration or the file names, otherwise those of the demo corpus")
    add("--json", action="store_true", help="print the report as JSON")


def check(args: argparse.Namespace) -> None:
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
    """
    from rnnsmt.corpus.check import CorpusCheck, lines_of

    if find_spec("py3langid") is None:
        say("the languages are not checked, because py3langid is not installed; run `pip install 'rnnsmt[check]'`")
    languages, corpora = corpora_to_check(args)
    for side, lang in zip(("source", "target"), languages, strict=True):
        if wrong := code_mistake(lang):
            raise InputError(f"{side} language: {wrong}")
    checked = CorpusCheck(languages).run(corpora)
    if args.json:
        import json

        print(json.dumps([vars(findings) for findings in checked], indent=2, ensure_ascii=False))
    else:
        print("\n".join(lines_of(checked)))
    if any(findings.errors or findings.warnings for findings in checked):
        sys.stdout.flush()
        raise SystemExit(FOUND)


def overlap_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--training", nargs="+", required=True, metavar="FILE", help="training text, source side")
    add("--set", nargs="+", required=True, metavar="NAME=FILE", help="name and source side of each dev and test set")
    add("--output", required=True, metavar="JSON", help="output file: number of sentences and of known ones by set")


def overlap(args: argparse.Namespace) -> dict[str, object]:
    r"""Count the source sentences of dev and test sets that also occur in the training text.

    All texts must have the same preprocessing. Sentences are compared exactly, without white space at both ends; empty
    lines are not counted. The command warns about every set with more than 2 % of such sentences, because they make
    scores too high. The output is {"NAME": {"sentences": n, "known": k}}. `rnnsmt corpus check` also finds
    near-duplicates.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus overlap --training try/general.en.gz --set dev=try/dev.en.gz --output try/overlap.json
    """
    from rnnsmt.corpus.overlap import known_sentences, known_warnings

    files: dict[str, str] = {}
    for text in args.set:
        name, _, path = text.partition("=")
        if not (name and path):
            raise InputError(f"--set {text}: must be NAME=FILE")
        if name in files:
            raise InputError(f"--set {text}: there are two sets named {name}")
        files[name] = path
    training = track(chain.from_iterable(map(read_lines, args.training)), "reading training text")
    found = known_sentences(training, {name: read_lines(path) for name, path in files.items()})
    write_json(args.output, found)
    for warning in known_warnings(found):
        say(f"warning: {warning}")
    return {name: f"{counts['known']:,} of {counts['sentences']:,} known" for name, counts in found.items()}


def join_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", nargs="+", required=True, metavar="FILE", help="text files, concatenated in this order"
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="output file: the concatenated text")


def join(args: argparse.Namespace) -> dict[str, object]:
    """Concatenate text files.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus join --input try/general.fr.gz try/dev.fr.gz --output try/joined.fr.gz
    """
    from rnnsmt.corpus.raw_text import all_lines

    lines = write_lines(args.output, all_lines(args.input))
    return {"files": len(args.input), "lines": lines}


def train_truecaser_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text in one language")
    parser.add_argument("--output-model", required=True, metavar="FILE", help="output file: truecasing model")


def train_truecaser(args: argparse.Namespace) -> dict[str, object]:
    """Train a truecasing model on tokenised text and write it in Moses format.

    The model contains the counts of the cased forms of every word, as written by train-truecaser.perl. Words at the
    start of a sentence are not counted.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus train-truecaser --input try/general.fr.gz --output-model try/truecaser.fr
    """
    from rnnsmt.corpus.tokenizer import learn_casing, save_casing

    lines = chain.from_iterable(read_lines(path) for path in args.input)
    casing = learn_casing(track(lines, "learning case"))
    if not casing:
        raise InputError(f"{', '.join(args.input)}: every line has at most one word; is this tokenised text?")
    save_casing(casing, args.output_model)
    forms = sum(len(forms) for forms in casing.values())
    return {"words": len(casing), "forms": forms}


def truecase_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE", help="model written by `corpus train-truecaser`")
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file: truecased text")
    add_threads(parser, "processes")


def truecase(args: argparse.Namespace) -> dict[str, object]:
    """Truecase a tokenised text with a truecasing model in Moses format, like truecase.perl.

    The first word of a sentence, and any unseen form of a known word, is replaced by the most frequent form of the
    word. Words that are not in the model are not changed.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus truecase --model try/truecaser.fr --input try/dev.fr.gz --output try/dev.tc.fr.gz
    """
    from rnnsmt.base.parallel import map_lines
    from rnnsmt.corpus.tokenizer import Truecaser

    model = Truecaser(args.model)  # read here, so that an invalid model is reported before any work
    lines = track(read_lines(args.input), "truecasing")
    return {"lines": write_lines(args.output, map_lines(lambda: model, lines, args.threads))}


def detokenize_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text")
    parser.add_argument("--output", required=True, metavar="FILE", help="output file")
    parser.add_argument("--lang", required=True, metavar="L", help="language of the text, two-letter code (ISO 639-1)")
    parser.add_argument("--no-detruecase", action="store_true", help="do not capitalise the first word of a sentence")
    parser.add_argument("--no-detokenize", action="store_true", help="do not detokenise: keep tokens and entities")
    add_threads(parser, "processes")


def detokenize(args: argparse.Namespace) -> dict[str, object]:
    """Detruecase and detokenise a text.

    The first word of every sentence is capitalised, entities are replaced by their characters, and tokens are joined,
    as in Moses (detruecase.perl, detokenizer.perl) but implemented by sacremoses.

    Example, in the directory of a run of the demo corpus:

        rnnsmt corpus detokenize --input try/dev.tc.fr.gz --output try/dev.detokenized.fr --lang fr
    """
    from rnnsmt.base.parallel import map_lines
    from rnnsmt.corpus.detokenizer import Detokenizer

    if wrong := code_mistake(args.lang):
        raise InputError(f"--lang {wrong}")
    make = partial(Detokenizer, args.lang, not args.no_detruecase, not args.no_detokenize)
    lines = track(read_lines(args.input), "detokenising")
    return {"lines": write_lines(args.output, map_lines(make, lines, args.threads))}
