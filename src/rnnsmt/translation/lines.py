"""Lines of raw text from files, lists and standard input, and the lines that are written for them."""

import os
import sys
from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from rnnsmt.base.arguments import Text, sentences
from rnnsmt.base.errors import InputError
from rnnsmt.base.progress import say
from rnnsmt.base.reading import STANDARD_STREAM, decoded, read_lines_or_stdin
from rnnsmt.base.writing import write_lines_or_stdout
from rnnsmt.corpus.raw_text import read_texts
from rnnsmt.translation.markup import Template, html_template

if TYPE_CHECKING:
    from rnnsmt.translation.system import ExplainedTranslation, PhraseUse, System

BLOCK = 1 << 15
"""Maximum number of bytes of a pipe whose lines are translated together."""

MOST_BYTES = 1_000_000
"""Maximum length of a line of a pipe, in bytes."""


def texts_of(text: Text) -> list[str]:
    """Return the raw segments of a text: of a file, or those of a list."""
    return read_texts(text) if isinstance(text, (str, PathLike)) else list(sentences("input", text))


def html_of(text: Text) -> tuple[list[str], Template]:
    """Return the segments of an HTML document, a file or its lines, and the template that their translations fill."""
    lines = read_lines_or_stdin(STANDARD_STREAM) if text == STANDARD_STREAM else sentences("input", text)
    document = "\n".join(lines)
    segments: list[str] = []
    try:
        return segments, html_template(document, segments)
    except ValueError:  # int() has a limit
        name = text if isinstance(text, (str, PathLike)) else "input"
        raise InputError(f"{name}: a character reference has too many digits") from None


def answer_lines(system: "System", nbest: int | None, explain: bool) -> int:
    """Translate standard input line by line as it arrives, and return the number of segments."""
    description, done, prompt = system.description, 0, ""
    if sys.stdin.isatty():
        say(f"{description.name}, {description.source} to {description.target}: one segment per line, Ctrl-D to quit")
        prompt = f"{description.source}> "
    for texts in waiting_lines(prompt):
        write_lines_or_stdout(STANDARD_STREAM, output_lines(system, texts, done, nbest, explain))
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


def output_lines(system: "System", texts: Sequence[str], first: int, nbest: int | None, explain: bool) -> Iterator[str]:
    """Yield the output lines of some segments.

    Args:
        first: 0-based number of the first segment.
        nbest: size of n-best lists; None: only the best translation.
        explain: whether phrases and scores follow a translation.
    """
    if nbest:
        for number, text in enumerate(texts, first):
            for hypothesis in system.nbest(text, nbest, number + 1):
                yield f"{number} ||| {hypothesis.text} ||| {hypothesis.score:.6f}"
    elif explain:
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
