"""The commands that put a tuned system to work."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from select import select
from typing import TYPE_CHECKING

from rnnsmt.corpus.reading import read_texts
from rnnsmt.io import STANDARD_STREAM, InputError, decoded, write_lines_or_stdout
from rnnsmt.networks.options import add_device
from rnnsmt.networks.settings import PRECISIONS
from rnnsmt.options import positive
from rnnsmt.progress import say

if TYPE_CHECKING:
    from rnnsmt.translation.system import ExplainedTranslation, PhraseUse, System

MOST_WAITING = 256
"""Lines of a pipe that are translated together."""

MOST_BYTES = 1_000_000
"""Of a line of a pipe."""


def describe_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", required=True, help="of the system, e.g. cslm_rnn")
    add("--source-lang", required=True, metavar="L", help="two letters")
    add("--target-lang", required=True, metavar="L", help="two letters")
    add("--no-normalize", action="store_true", help="punctuation is left as it is")
    add("--no-tokenize", action="store_true", help="the text comes tokenised")
    add("--no-escape", action="store_true", help="no entities for & | < > ' \" [ ]")
    add("--lowercase", action="store_true", help="everything is lower-cased")
    add("--truecaser", metavar="FILE", help="truecasing model of the source language; without it case is left alone")
    add("--rnn", nargs="+", default=[], metavar="FILE", help="network of the table: one, or one for each --output-dir")
    add("--vocabulary", nargs=2, metavar=("SOURCE", "TARGET"), help="its vocabularies")
    add("--columns", nargs="*", default=[], metavar="NAME", help="what the phrase scores after the fourth are")
    add("--filtered", action="store_true", help="the tables are for the dev and test sets alone")
    add("--pop-limit", type=positive, default=1000, metavar="N", help="hypotheses that are scored for a stack")
    add("--stack", type=positive, default=1000, metavar="N", help="hypotheses kept per stack")
    add("--cslm-cells", type=positive, default=100, metavar="N", help="hypotheses of a stack that a CSLM scores")
    add("--cslm-precision", choices=PRECISIONS, default="reduced", help="of a CSLM's sum over its vocabulary")
    add("--output-dir", nargs="+", required=True, metavar="DIR", help="folders of the runs, with their moses.ini")


def describe(args: argparse.Namespace) -> dict[str, object]:
    r"""Write into the folders of a tuned system how its text is prepared and how it searches: `system.json`.

    With it and the moses.ini beside it `rnnsmt translate` needs to be told nothing else.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt translation describe --name mine --source-lang en --target-lang fr \
            --truecaser results/corpus/truecaser.en --output-dir try/mine
    """
    from rnnsmt.translation.system import Description, relative

    if len(args.rnn) not in (0, 1, len(args.output_dir)) or bool(args.rnn) != bool(args.vocabulary):
        raise InputError("--rnn: give one network or one for each --output-dir, and --vocabulary with it")
    for number, folder in enumerate(args.output_dir):
        network = [args.rnn[number % len(args.rnn)], *args.vocabulary] if args.rnn else []
        Description(
            name=args.name,
            source=args.source_lang,
            target=args.target_lang,
            normalize=not args.no_normalize,
            tokenize=not args.no_tokenize,
            escape=not args.no_escape,
            lowercase=args.lowercase,
            truecaser=None if args.truecaser is None else relative(args.truecaser, folder),
            rnn=[relative(file, folder) for file in network],
            columns=args.columns,
            filtered=args.filtered,
            pop_limit=args.pop_limit,
            stack=args.stack,
            cslm_cells=args.cslm_cells,
            cslm_precision=args.cslm_precision,
        ).write(folder)
    return {"folders": len(args.output_dir)}


def translate_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--system", required=True, metavar="DIR", help="folder of a tuned system, or of one that was packed")
    add(
        "--input",
        default=STANDARD_STREAM,
        metavar="FILE",
        help="raw text, a segment a line, or SGM; - is standard input",
    )
    add("--output", default=STANDARD_STREAM, metavar="FILE", help="- is standard output")
    add("--nbest", type=positive, metavar="N", help="the N best: number of the line, from 0 ||| translation ||| score")
    add("--explain", action="store_true", help="the phrases used, their scores, the runners-up, and what decided")
    add("--serve", type=int, metavar="PORT", help="a page and an HTTP interface instead of --input; 0: any free port")
    add("--host", metavar="ADDRESS", help="where --serve listens (127.0.0.1); 0.0.0.0: open to the network")
    add("--rate", type=positive, metavar="N", help="requests a minute that --serve takes from one address (120)")
    add_device(parser)


def translate(args: argparse.Namespace) -> dict[str, object]:
    """Translate raw text with a tuned system: prepare it, search, and back to text as people write it.

    Text goes through the same steps as the corpora of the system. A file is read as a whole, and of the tables only
    what it needs; of a pipe every line is answered as soon as it is there; on a terminal there is a prompt, which
    Ctrl-D ends. --serve PORT keeps the system loaded behind http://127.0.0.1:PORT: a page, and POST /translate with
    {"text": "..."} as application/json.

    Examples, in the folder of a run of the embedded corpus:

        rnnsmt translate --system results/systems/cslm_rnn/run1 --input letter.en --output letter.fr
        echo "The boats are in the harbour." | rnnsmt translate --system results/systems/cslm_rnn/run1 --explain
        rnnsmt translate --system results/systems/cslm_rnn/run1 --serve 8000
    """
    if args.explain and args.nbest:
        raise InputError("--explain and --nbest: give one of them")
    plain = args.input == args.output == STANDARD_STREAM
    if args.serve is not None and (not plain or args.explain or args.nbest):
        raise InputError("--serve: takes no --input, --output, --explain and --nbest; a request says what it wants")
    if args.serve is None and (args.host or args.rate):
        raise InputError("--host and --rate belong to --serve")
    texts = None if args.input == STANDARD_STREAM else read_texts(args.input)
    if texts is None and args.serve is None and args.output != STANDARD_STREAM:
        texts = [line for lines in waiting_lines() for line in lines]

    from rnnsmt.translation.system import System

    system = System(args.system, texts, args.device, args.threads)
    if args.serve is not None:
        from rnnsmt.translation.server import serve

        return serve(system, args.host or "127.0.0.1", args.serve, args.rate or 120)
    if texts is None:
        done = _answer(system, args)
    else:
        write_lines_or_stdout(args.output, _lines(system, texts, 0, args))
        done = len(texts)
    return {"segments": done, "words": system.words, "unknown words": system.unknown}


def _answer(system: "System", args: argparse.Namespace) -> int:
    """Translate standard input as it comes; the number of segments."""
    about, done, prompt = system.description, 0, ""
    if sys.stdin.isatty():
        say(f"{about.name}, {about.source} to {about.target}: one segment a line, Ctrl-D ends")
        prompt = f"{about.source}> "
    for texts in waiting_lines(prompt):
        write_lines_or_stdout(STANDARD_STREAM, _lines(system, texts, done, args))
        done += len(texts)
    return done


def waiting_lines(prompt: str = "") -> Iterator[list[str]]:
    """The lines of standard input as they come: as many at a time as wait, ``MOST_WAITING`` at most.

    prompt: shown on stderr before waiting.

    Raises:
        InputError: a line is not UTF-8, or endless.
    """
    place, number, ended = sys.stdin.fileno(), 0, False
    lines = [b""]  # the last one may not have come as a whole
    while not ended or len(lines) > 1:
        while not ended and (len(lines) == 1 or (len(lines) <= MOST_WAITING and select([place], [], [], 0)[0])):
            if prompt and len(lines) == 1:
                print(prompt, end="", file=sys.stderr, flush=True)
            piece = os.read(place, 1 << 16)
            ended = not piece
            lines[-1:] = (lines[-1] + piece).split(b"\n")
            if len(lines[-1]) > MOST_BYTES:
                raise InputError(
                    f"standard input, line {number + len(lines)}: longer than {MOST_BYTES:,} bytes; split it"
                )
            if ended and lines[-1]:
                lines.append(b"")  # the last line has no newline
        chosen = lines[:-1][:MOST_WAITING]
        del lines[: len(chosen)]
        texts = []
        for line in chosen:
            number += 1
            texts.append(decoded(line, "standard input", number))
        if texts:
            yield texts


def _lines(system: "System", texts: Sequence[str], first: int, args: argparse.Namespace) -> Iterator[str]:
    """What is written for some segments. first: the number of the first of them."""
    if args.nbest:
        for number, text in enumerate(texts, first):
            for one in system.nbest(text, args.nbest, number + 1):
                yield f"{number} ||| {one.text} ||| {one.score:.6f}"
    elif args.explain:
        for best, phrases in system.explain_all(texts, first=first + 1):
            yield from explanation(best, phrases)
    else:
        yield from system.translate_all(texts, first + 1)


def explanation(best: "ExplainedTranslation", phrases: "list[PhraseUse]") -> Iterator[str]:
    """The translation of a segment, its phrases, and what the features contribute to its score."""
    yield best.text
    for use in phrases:
        scores = ", ".join(f"{name} {value:.3g}" for name, value in use.scores.items()) or "unknown word"
        others = f"; instead of: {' | '.join(use.runners_up)}" if use.runners_up else ""
        yield f"    {use.source} → {use.target or '–'} ({scores}{others})"
    parts = ", ".join(f"{name} {value:+.2f}" for name, value in best.contributions.items() if abs(value) >= 0.005)
    yield f"    score {best.score:.2f} = {parts}"


def pack_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--system", required=True, metavar="DIR", help="folder of a tuned system")
    parser.add_argument("--output", required=True, metavar="FILE", help="archive to write, .tar.gz or .tar")


def pack(args: argparse.Namespace) -> dict[str, object]:
    """Put a tuned system and all that it needs into one archive, for another machine.

    NAME.tar.gz has a folder NAME, which `rnnsmt translate --system NAME` takes after `tar xf NAME.tar.gz`. Real Moses
    runs on the moses.ini in it, unless there is a CSLM. A system with proposals is for its dev and test sets: of other
    text it knows few words.

    Example, in the folder of a run of the embedded corpus:

        rnnsmt pack --system results/systems/cslm_rnn/run1 --output harbour-en-fr.tar.gz
    """
    from rnnsmt.translation.packing import pack_system

    return pack_system(Path(args.system), Path(args.output))
