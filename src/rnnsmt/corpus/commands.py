"""The commands that turn raw files into clean, tokenised, truecased text."""

import argparse
import re
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.io import InputError, read_lines, sha256, write_json, write_lines
from rnnsmt.languages import code_mistake
from rnnsmt.options import positive
from rnnsmt.progress import track

if TYPE_CHECKING:
    from rnnsmt.corpus.preparation import CorpusSide


def fetch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True)
    parser.add_argument(
        "--mirror", nargs="+", action="extend", default=[], metavar="URL", help="other places of the same file"
    )
    parser.add_argument("--sha256", required=True, metavar="HEX", help='or "none", which is not checked')
    parser.add_argument("--output", required=True, metavar="FILE")


def fetch(args: argparse.Namespace) -> dict[str, object]:
    """Download one corpus file, check its sha256 and put it in place whole.

    The URL is tried first, then the mirrors in their order; a server that breaks off or has no time is asked again,
    with growing pauses. What has come lies in FILE.part, and the same command goes on with it. A file that is already
    there with the right sum stays. http(s), ftp and file URLs work.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus fetch --url file://$PWD/try/texts.tar.gz --sha256 none --output try/fetched.tar.gz
    """
    from rnnsmt.corpus.download import fetch_first

    expected = None if args.sha256 == "none" else args.sha256.lower()
    if expected is not None and not re.fullmatch("[0-9a-f]{64}", expected):
        raise InputError(f'--sha256 {args.sha256}: 64 hexadecimal digits or "none" are needed')
    output = Path(args.output)
    if expected is not None and output.is_file() and sha256(output) == expected:
        return {"bytes": output.stat().st_size, "sha256": expected, "from": "the file that was there"}
    size, digest, url = fetch_first([args.url, *args.mirror], expected, output)
    return {"bytes": size, "sha256": digest, "from": url}


def unpack_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--archive", required=True, metavar="FILE")
    parser.add_argument("--member", required=True, metavar="PATH", help="the file inside the archive")
    parser.add_argument("--output", required=True, metavar="FILE")


def unpack(args: argparse.Namespace) -> dict[str, object]:
    """Take one file out of a tar archive (plain, .gz, .bz2 or .xz), as the corpora of WMT come.

    The archive is read from its beginning to the file that is wanted, and nothing else of it is written anywhere. A
    file that is compressed inside the archive stays compressed.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus unpack --archive try/fetched.tar.gz --member try/demo/dev.en --output try/unpacked.en
    """
    from rnnsmt.corpus.archive import extract_member

    size, passed = extract_member(args.archive, args.member, args.output)
    return {"bytes": size, "files passed": passed}


def prepare_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", metavar="FILE", help="source side; leave out for monolingual target text")
    add("--target", metavar="FILE", help="target side; leave out for monolingual source text")
    add("--source-lang", default="en", metavar="L", help="two letters")
    add("--target-lang", default="fr", metavar="L", help="two letters")
    add("--output-source", metavar="FILE")
    add("--output-target", metavar="FILE")
    add("--report", required=True, metavar="JSON", help="counts of lines, tokens, rejected and repaired lines")
    add("--no-normalize", action="store_true", help="leave punctuation as it is")
    add("--no-tokenize", action="store_true", help="the text is tokenised already")
    add("--no-escape", action="store_true", help="no entities for & | < > ' \" [ ]")
    add("--lowercase", action="store_true", help="lower-case everything")
    add("--min-length", type=int, default=1, metavar="N", help="tokens a side must have")
    add("--max-length", type=int, default=80, metavar="N", help="tokens a side may have")
    add("--max-ratio", type=float, default=9.0, metavar="R", help="of the two sides' lengths")
    add("--keep-all", action="store_true", help="dev and test sets: drop no line, repair what must be repaired")
    add("--min-lines", type=positive, default=1, metavar="N", help="lines with words that must be left")
    add("--threads", type=int, default=1, metavar="N", help="processes")


def prepare(args: argparse.Namespace) -> dict[str, object]:
    r"""Read, repair, normalise, tokenise and clean one corpus, of one language or parallel.

    Reads text with one segment a line or WMT's SGM files, plain or compressed by gzip, bzip2 or xz; which of them a
    file is, its first bytes say. Normalising and tokenising are those of Moses (normalize-punctuation.perl,
    tokenizer.perl), cleaning is that of clean-corpus-n.perl: a pair is dropped where a side is empty, longer than
    --max-length or more than --max-ratio times as long as the other. Every dropped and every repaired line is counted
    by its reason in the report, which also has size and sha256 of the raw files. A file of which more than 3 % of the
    lines are not UTF-8 is refused: it is in another encoding.

    With --no-normalize --no-tokenize released corpora pass as they are, apart from whitespace. Text for real Moses must
    not contain a bare "|": leave --no-escape out.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus prepare --source try/demo/general.en.gz --target try/demo/general.fr.gz --source-lang en \
            --target-lang fr --output-source try/general.en.gz --output-target try/general.fr.gz \
            --report try/general.json --threads 2
    """
    from rnnsmt.corpus.cleaning import CleaningOptions
    from rnnsmt.corpus.preparation import check_cleaning, prepare_corpus

    sides = _sides(args)
    options = CleaningOptions(
        normalize=not args.no_normalize,
        tokenize=not args.no_tokenize,
        escape=not args.no_escape,
        lowercase=args.lowercase,
        min_length=max(args.min_length, 1),
        max_length=args.max_length,
        max_ratio=args.max_ratio,
        keep_all=args.keep_all,
    )
    check_cleaning(options)
    prepared = prepare_corpus(sides, options, args.threads, args.min_lines)
    write_json(args.report, prepared.report())
    return prepared.figures()


def _sides(args: argparse.Namespace) -> "list[CorpusSide]":
    """The sides that the options give.

    Raises:
        InputError: none, half a side, or no code of a language.
    """
    from rnnsmt.corpus.preparation import CorpusSide

    sides = []
    for name, path, output, lang in (
        ("source", args.source, args.output_source, args.source_lang),
        ("target", args.target, args.output_target, args.target_lang),
    ):
        if (path is None) != (output is None):
            raise InputError(f"--{name} and --output-{name} belong together: give both or neither")
        if path is not None:
            if wrong := code_mistake(lang):
                raise InputError(f"--{name}-lang {wrong}")
            sides.append(CorpusSide(path, output, lang))
    if not sides:
        raise InputError("no input: give --source, --target or both, each with its --output")
    return sides


def join_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="text files, in their order")
    parser.add_argument("--output", required=True, metavar="FILE", help="the joined text")


def join(args: argparse.Namespace) -> dict[str, object]:
    """Join text files, one after the other.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus join --input try/general.fr.gz try/dev.fr.gz --output try/joined.fr.gz
    """
    from rnnsmt.corpus.reading import all_lines

    lines = write_lines(args.output, all_lines(args.input))
    return {"files": len(args.input), "lines": lines}


def train_truecaser_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", nargs="+", required=True, metavar="FILE", help="tokenised text of one language")
    parser.add_argument("--output-model", required=True, metavar="FILE")
    parser.add_argument("--lang", default="fr", metavar="L", help="two letters, for the log only")


def train_truecaser(args: argparse.Namespace) -> dict[str, object]:
    """Learn the usual case of every word from tokenised text and write Moses' truecasing model.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus train-truecaser --input try/general.fr.gz --output-model try/truecaser.fr --lang fr
    """
    from rnnsmt.corpus import truecaser

    lines = chain.from_iterable(read_lines(path) for path in args.input)
    casing = truecaser.learn(track(lines, "learning case"))
    if not casing:
        raise InputError(f"{', '.join(args.input)}: no word that is not the first of its line; is this tokenised text?")
    truecaser.save(casing, args.output_model)
    forms = sum(len(forms) for forms in casing.values())
    return {"language": args.lang, "words": len(casing), "forms": forms}


def truecase_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="FILE", help="from train-truecaser")
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="processes")


def truecase(args: argparse.Namespace) -> dict[str, object]:
    """Give every word of a tokenised text its usual case, with a model of Moses' format.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus truecase --model try/truecaser.fr --input try/dev.fr.gz --output try/dev.tc.fr.gz
    """
    from rnnsmt.corpus.truecaser import Truecaser
    from rnnsmt.parallel import map_lines

    model = Truecaser(args.model)  # read here, so that a bad model ends the stage before any work
    lines = track(read_lines(args.input), "truecasing")
    return {"lines": write_lines(args.output, map_lines(lambda: model, lines, args.threads))}


def detokenize_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--input", required=True, metavar="FILE", help="tokenised text")
    parser.add_argument("--output", required=True, metavar="FILE")
    parser.add_argument("--lang", required=True, metavar="L", help="two letters")
    parser.add_argument("--no-detruecase", action="store_true", help="leave sentence starts as they are")
    parser.add_argument("--no-detokenize", action="store_true", help="leave tokens and entities as they are")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="processes")


def detokenize(args: argparse.Namespace) -> dict[str, object]:
    """From a tokenised, truecased text to running text: sentence starts in capitals, entities and tokenisation undone.

    What Moses' detruecase.perl and detokenizer.perl do, by sacremoses.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt corpus detokenize --input try/dev.tc.fr.gz --output try/dev.detokenized.fr --lang fr
    """
    from rnnsmt.corpus.tokenizer import Detokenizer
    from rnnsmt.parallel import map_lines

    if wrong := code_mistake(args.lang):
        raise InputError(f"--lang {wrong}")
    make = partial(Detokenizer, args.lang, not args.no_detruecase, not args.no_detokenize)
    lines = track(read_lines(args.input), "detokenising")
    return {"lines": write_lines(args.output, map_lines(make, lines, args.threads))}
