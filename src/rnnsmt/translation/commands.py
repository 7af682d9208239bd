"""The commands that use a tuned system: describe, translate, pack."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.fields import add_fields
from rnnsmt.base.io import STANDARD_STREAM, InputError, decoded, read_json, write_lines_or_stdout
from rnnsmt.base.options import positive
from rnnsmt.base.progress import say
from rnnsmt.config.sections import Search
from rnnsmt.corpus.raw_text import read_segments, read_texts
from rnnsmt.networks.options import add_device

if TYPE_CHECKING:
    from rnnsmt.translation.system import ExplainedTranslation, PhraseUse, System

EXAMPLES, MAX_EXAMPLE = 4, 150
"""Number of examples of a system, and their maximum length in characters."""

BLOCK = 1 << 15
"""Maximum number of bytes of a pipe whose lines are translated together."""

MOST_BYTES = 1_000_000
"""Maximum length of a line of a pipe, in bytes."""


def describe_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", required=True, metavar="NAME", help="name of the system, e.g. cslm_rnn")
    add("--source-lang", required=True, metavar="L", help="source language, two-letter code")
    add("--target-lang", required=True, metavar="L", help="target language, two-letter code")
    add("--no-normalize", action="store_true", help="do not normalise punctuation")
    add("--no-tokenize", action="store_true", help="do not tokenise (the input is already tokenised)")
    add("--no-escape", action="store_true", help="do not escape & | < > ' \" [ ] as Moses entities")
    add("--lowercase", action="store_true", help="lowercase the input")
    add("--prepared", metavar="FILE",
        help="report of `corpus prepare` for the training text (JSON), which contains the version of the tokeniser "
        "(default: the present one, with a warning)")  # fmt: skip
    add("--truecaser", metavar="FILE", help="truecasing model of the source language (default: keep the case)")
    add("--rnn", nargs="+", default=[], metavar="FILE",
        help="model file of the RNN Encoder-Decoder that scored the phrase table; one, or one for each "
        "--output-dir")  # fmt: skip
    add("--vocabulary", nargs=2, metavar=("SOURCE", "TARGET"), help="vocabulary files of the RNN Encoder-Decoder")
    add("--columns", nargs="*", default=[], metavar="NAME",
        help="names of the additional phrase table scores, from the fifth on")  # fmt: skip
    add("--filtered", action="store_true",
        help="mark the phrase tables as filtered for the dev and test sets; `translate` and `pack` log a "
        "warning")  # fmt: skip
    add_fields(parser, Search, "pop_limit", "stack", "cslm_cells")
    add("--examples", metavar="FILE",
        help=f"raw source text; {EXAMPLES} of its segments are the examples on the page of `rnnsmt translate "
        "--serve`")  # fmt: skip
    add("--output-dir", nargs="+", required=True, metavar="DIR",
        help="directories of the tuned runs, each containing a moses.ini")  # fmt: skip


def describe(args: argparse.Namespace) -> dict[str, object]:
    r"""Write system.json, the preprocessing and decoder settings of a tuned system, to the directories of its runs.

    `rnnsmt translate` needs only system.json and the moses.ini in the same directory.

    Example, in the directory of a run of the demo corpus:

        rnnsmt translation describe --name mine --source-lang en --target-lang fr \
            --truecaser results/corpus/truecaser.en --prepared results/corpus/tokenized/general.report.json \
            --output-dir try/mine
    """
    from rnnsmt.translation.description import FILE, Description

    if len(args.rnn) not in (0, 1, len(args.output_dir)) or bool(args.rnn) != bool(args.vocabulary):
        raise InputError("--rnn: specify one network, or one for each --output-dir, together with --vocabulary")
    examples = [] if args.examples is None else choose_examples(_valid_segments(args.examples))
    tokenizer = None if args.no_tokenize else _tokenizer(args.source_lang, args.prepared)
    for number, directory in enumerate(args.output_dir):
        network = [args.rnn[number % len(args.rnn)], *args.vocabulary] if args.rnn else []
        content = {
            "name": args.name,
            "source": args.source_lang,
            "target": args.target_lang,
            "normalize": not args.no_normalize,
            "tokenize": not args.no_tokenize,
            "escape": not args.no_escape,
            "lowercase": args.lowercase,
            "tokenizer": tokenizer,
            "truecaser": None if args.truecaser is None else os.path.relpath(args.truecaser, directory),
            "rnn": [os.path.relpath(file, directory) for file in network],
            "columns": args.columns,
            "filtered": args.filtered,
            "pop_limit": args.pop_limit,
            "stack": args.stack,
            "cslm_cells": args.cslm_cells,
            "examples": examples,
        }
        Description.valid(Path(directory) / FILE, content).write(directory)
    return {"directories": len(args.output_dir)}


def _tokenizer(lang: str, report: str | None) -> str:
    """Return the version of the tokeniser in a report of `corpus prepare`; without a report, the present one.

    Raises:
        InputError: the report has no version of the tokeniser of the language.
    """
    from rnnsmt.corpus.tokenizer import tokenizer_version

    if report is None:
        version = tokenizer_version(lang)
        say(
            f"warning: the training text must be tokenised by version {version} of the tokeniser; specify its "
            "report of `corpus prepare` with --prepared, or, for text tokenised by other programs, --no-tokenize"
        )
        return version
    content = read_json(report)
    versions = content.get("tokenizer") if isinstance(content, dict) else None
    if not isinstance(versions, dict) or not isinstance(versions.get(lang), str):
        raise InputError(f"{report}: contains no version of the tokeniser of {lang}; prepare the corpus again")
    return str(versions[lang])


def _valid_segments(path: str) -> Iterator[str]:
    """Yield the segments of a raw text that are valid UTF-8; corpus preparation reports the others."""
    for segment in read_segments(path, None):
        with suppress(UnicodeDecodeError):
            yield (segment or b"").decode("utf-8").strip()


def choose_examples(texts: Iterable[str]) -> list[str]:
    """Return ``EXAMPLES`` segments of usual length, or fewer, evenly spread over a text."""
    usual = [text for text in dict.fromkeys(texts) if 5 <= text.count(" ") + 1 <= 15 and len(text) <= MAX_EXAMPLE]
    return [usual[index * len(usual) // EXAMPLES] for index in range(min(EXAMPLES, len(usual)))]


def translate_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--system", required=True, metavar="DIR",
        help="directory or archive of a tuned system, or the URL of an archive with its SHA-256, "
        "https://HOST/FILE#sha256=DIGEST")  # fmt: skip
    add("--input", default=STANDARD_STREAM, metavar="FILE",
        help="input file: raw text, one segment per line, or SGM; - is standard input")  # fmt: skip
    add("--output", default=STANDARD_STREAM, metavar="FILE", help="output file; - is standard output")
    add("--nbest", type=positive, metavar="N",
        help="write n-best lists of this size: 0-based line number ||| translation ||| score")  # fmt: skip
    add("--explain", action="store_true",
        help="also write the phrases used, their scores, alternative targets, and feature contributions")  # fmt: skip
    add("--serve", type=int, metavar="PORT",
        help="serve a web page and an HTTP API on this port instead of reading --input; 0: any free port")  # fmt: skip
    add("--host", metavar="ADDRESS",
        help="address that --serve listens on; 0.0.0.0: all interfaces (default: 127.0.0.1)")  # fmt: skip
    add("--public-name", nargs="+", default=[], metavar="NAME",
        help="host names that clients use to reach --serve, for example those of a reverse proxy, and IDs of browser "
        "extensions (default: local names if --host is 127.0.0.1, otherwise all names)")  # fmt: skip
    add_device(parser)


def translate(args: argparse.Namespace) -> dict[str, object]:
    """Translate raw text with a tuned system: preprocess, decode and postprocess.

    The preprocessing (normalisation, tokenisation, truecasing) is the same as for the system's corpora; translations
    are detruecased and detokenised. A file is read completely before translation, and only the table entries for its
    phrases are loaded. Lines from a pipe are translated as soon as they arrive. On a terminal, the program shows a
    prompt; Ctrl-D exits.

    --serve PORT keeps the system loaded and serves a web page at http://127.0.0.1:PORT and an HTTP API: POST /translate
    with {"text": "..."} as application/json, or requests from LibreTranslate clients. SIGTERM and Ctrl-C stop the
    server after the requests in progress, at most 30 seconds later; a second Ctrl-C stops it immediately.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt translate --system results/systems/cslm_rnn/run1 --input letter.en --output letter.fr
        echo "The boats are in the harbour." | rnnsmt translate --system results/systems/cslm_rnn/run1 --explain
        rnnsmt translate --system results/systems/cslm_rnn/run1 --serve 8000
    """
    if args.explain and args.nbest:
        raise InputError("--explain and --nbest cannot be combined")
    plain = args.input == args.output == STANDARD_STREAM
    if args.serve is not None and (not plain or args.explain or args.nbest):
        raise InputError(
            "--serve cannot be combined with --input, --output, --explain or --nbest; they are part of each request"
        )
    if args.serve is None and (args.host or args.public_name):
        raise InputError("--host and --public-name require --serve")
    texts = None if args.input == STANDARD_STREAM else read_texts(args.input)
    if texts is None and args.serve is None and args.output != STANDARD_STREAM:
        texts = [line for lines in waiting_lines() for line in lines]

    from rnnsmt.translation.system import System

    if args.serve is not None:
        from rnnsmt.translation.serve import MOST_WORDS, serve

        system = System(args.system, None, args.device, args.threads, MOST_WORDS)
        return serve(system, args.host or "127.0.0.1", args.serve, args.public_name)
    system = System(args.system, texts, args.device, args.threads)
    if texts is None:
        done = _answer(system, args)
    else:
        write_lines_or_stdout(args.output, _lines(system, texts, 0, args))
        done = len(texts)
    return {"segments": done, "words": system.words, "unknown words": system.unknown}


def _answer(system: "System", args: argparse.Namespace) -> int:
    """Translate standard input line by line as it arrives, and return the number of segments."""
    description, done, prompt = system.description, 0, ""
    if sys.stdin.isatty():
        say(f"{description.name}, {description.source} to {description.target}: one segment per line, Ctrl-D to quit")
        prompt = f"{description.source}> "
    for texts in waiting_lines(prompt):
        write_lines_or_stdout(STANDARD_STREAM, _lines(system, texts, done, args))
        done += len(texts)
    return done


def waiting_lines(prompt: str = "") -> Iterator[list[str]]:
    """Yield the lines of standard input as they arrive: those that are available, ``BLOCK`` bytes of them at most.

    prompt: printed to stderr before waiting for input.
    """
    number, rest, ended = 0, b"", False
    while not ended:
        print(prompt, end="", file=sys.stderr, flush=True)
        block = os.read(sys.stdin.fileno(), BLOCK)
        ended = not block
        *lines, rest = (rest + block).split(b"\n")
        if ended and rest:  # the last line has no newline
            lines.append(rest)
        if len(rest) > MOST_BYTES:
            raise InputError(
                f"standard input, line {number + len(lines) + 1}: longer than {MOST_BYTES:,} bytes; split it"
            )
        texts = [decoded(line, "standard input", number + k) for k, line in enumerate(lines, 1)]
        number += len(lines)
        if texts:
            yield texts


def _lines(system: "System", texts: Sequence[str], first: int, args: argparse.Namespace) -> Iterator[str]:
    """Yield the output lines of some segments. first: 0-based number of the first segment."""
    if args.nbest:
        for number, text in enumerate(texts, first):
            for hypothesis in system.nbest(text, args.nbest, number + 1):
                yield f"{number} ||| {hypothesis.text} ||| {hypothesis.score:.6f}"
    elif args.explain:
        for best, phrases in system.explain_all(texts, first=first + 1):
            yield from explanation(best, phrases)
    else:
        yield from system.translate_all(texts, first + 1)


def explanation(best: "ExplainedTranslation", phrases: "list[PhraseUse]") -> Iterator[str]:
    """Yield the translation of a segment, its phrases, and the contributions of the features to its score."""
    yield best.text
    for use in phrases:
        scores = ", ".join(f"{name} {value:.3g}" for name, value in use.scores.items()) or "unknown word"
        others = f"; alternatives: {' | '.join(use.runners_up)}" if use.runners_up else ""
        yield f"    {use.source} → {use.target or '–'} ({scores}{others})"
        for entry in use.evidence:
            sources = ", ".join(f"{word} {decrease:.1f}" for word, _, decrease in entry.sources)
            yield f"        joint model: {entry.word} {entry.log_p:.2f}" + (f" by {sources}" if sources else "")
    parts = ", ".join(f"{name} {value:+.2f}" for name, value in best.contributions.items() if abs(value) >= 0.005)
    yield f"    score {best.score:.2f} = {parts}"


def pack_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--system", required=True, metavar="DIR", help="directory of a tuned system")
    add("--results", metavar="DIR",
        help="`results` directory of the system's run; MODEL_CARD.md in the archive is written from its table1.json "
        "and provenance.json (default: pack MODEL_CARD.md in --system if it exists)")  # fmt: skip
    add("--licence", metavar="TEXT", help="licence of the system, for MODEL_CARD.md; required with --results")
    add("--output", required=True, metavar="FILE", help="output file: archive (.tar.gz, .tgz or .tar)")


def pack(args: argparse.Namespace) -> dict[str, object]:
    r"""Pack a tuned system with all its files into one archive, for use on another machine.

    NAME.tar.gz contains a directory NAME. `rnnsmt translate --system` accepts the archive, or the directory after `tar
    xf NAME.tar.gz`. With --results, the archive contains a model card (data, licence, scores, limits). Moses itself can
    use the moses.ini in it, unless the system has a CSLM or a joint model. A system
    whose tables are filtered (`translation describe --filtered`) translates few words of other text.

    Example, in the directory of a run of the demo corpus:

        rnnsmt pack --system results/systems/cslm_rnn/run1 --results results --licence MIT \
            --output harbour-en-fr.tar.gz
    """
    from rnnsmt.translation.model_card import model_card
    from rnnsmt.translation.packing import pack_system

    if (args.results is None) != (not args.licence):
        raise InputError("--results and --licence must be used together; a model card states the licence of the system")
    directory = Path(args.system)
    card = None if args.results is None else model_card(directory, Path(args.results), args.licence)
    return pack_system(directory, Path(args.output), card)
