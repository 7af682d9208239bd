"""Compare the tokeniser and detokeniser with those of Moses, on text of many languages.

Both read the same lines, in Unicode's form NFC and after ``normalize-punctuation``. For every language, the script
prints the share of lines with equal tokens, the share of lines that detokenisation restores, and the number of lines
with places at which only one of the tokenisers separates two characters, by cause: the characters beside the place,
after ``-`` if only Moses separates them. A line is restored as it was before or after normalisation, which removes the
spaces before French punctuation. With ``--examples``, the script prints lines, too::

    python benchmarks/tokenizers.py --moses mosesdecoder/scripts --text fi=text.fi ca=text.ca

The tokenisers of a language that Moses does not know have the abbreviations of English.
"""

import argparse
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import regex

from rnnsmt.corpus.detokenizer import Detokenizer
from rnnsmt.corpus.tokenizer import Normalizer, Tokenizer
from rnnsmt.corpus.words import is_protected

CONTROL = regex.compile(r"[\p{Cc}\p{Zl}\p{Zp}]|THISISPROTECTED|DOTMULTI")


def perl(script: Path, lang: str, lines: list[str], *options: str) -> list[str]:
    """Return the output of one of Moses' scripts."""
    command = ["perl", str(script), "-q", "-l", lang, *options]
    run = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, encoding="utf-8", check=True)
    return [line.strip(" ") for line in run.stdout.split("\n")[:-1]]


def boundaries(tokens: str) -> set[int]:
    """Return the ends of the tokens, as numbers of characters that precede them without spaces."""
    ends, end = set(), 0
    for token in tokens.split(" "):
        end += len(token)
        ends.add(end)
    return ends


def causes(ours: str, theirs: str) -> Iterator[str]:
    """Yield the cause of every place where only one of two tokenisations has a boundary.

    ``-`` before a cause means that only Moses separates the characters, ``+`` that only this tokeniser does.
    """
    text = ours.replace(" ", "")
    if text != theirs.replace(" ", ""):
        yield "?characters"
        return
    inside, end = set(), 0
    for token in ours.split(" "):
        if is_protected(token):
            inside |= set(range(end + 1, end + len(token)))
        end += len(token)
    mine, other = boundaries(ours), boundaries(theirs)
    for at in sorted(mine ^ other):
        sign = "+" if at in mine else "-"
        pair = text[at - 1 : at + 1]
        if at in inside:
            yield f"{sign}address"
        elif regex.search(r"[\p{M}\p{Cf}]", pair):
            yield f"{sign}mark"
        elif not (signs := regex.findall(r"[^\p{L}\p{N}]", pair)):
            yield f"{sign}letters"
        else:
            yield f"{sign}{''.join(signs)}"


def compare(moses: Path, lang: str, lines: list[str], examples: int) -> None:
    """Print the comparison for one language."""
    normalize, tokenize, detokenize = Normalizer(lang), Tokenizer(lang, escape=False), Detokenizer(lang, False)
    raw = [" ".join(unicodedata.normalize("NFC", line).split()) for line in lines]
    raw = [line for line in raw if line and not CONTROL.search(line)]
    lines = [" ".join(normalize(line).split()) for line in raw]
    ours = [tokenize(line) for line in lines]
    theirs = perl(moses / "tokenizer" / "tokenizer.perl", lang, lines, "-no-escape")
    again = [detokenize(Tokenizer(lang)(line)) for line in lines]
    again_moses = perl(moses / "tokenizer" / "detokenizer.perl", lang, theirs)
    found: Counter[str] = Counter()
    shown: Counter[str] = Counter()
    for line, mine, other in zip(lines, ours, theirs, strict=True):
        different = set(causes(mine, other))
        found.update(different)
        if new := {kind for kind in different if shown[kind] < examples}:
            shown.update(new)
            print(f"  {' '.join(sorted(new))}\n    text   {line}\n    ours   {mine}\n    Moses  {other}")
    count = len(lines)
    equal = sum(mine == other for mine, other in zip(ours, theirs, strict=True))
    restored = sum(text in pair for *pair, text in zip(raw, lines, again, strict=True))
    restored_moses = sum(text in pair for *pair, text in zip(raw, lines, again_moses, strict=True))
    most = " ".join(f"{kind}:{number}" for kind, number in found.most_common(12))
    print(
        f"{lang}\t{count}\t{equal / count:.1%}\t{restored / count:.1%}\t{restored_moses / count:.1%}\t{most}",
        flush=True,
    )
    if examples:
        lost = [
            (line, text) for before, line, text in zip(raw, lines, again, strict=True) if text not in (before, line)
        ]
        for line, text in lost[: 5 * examples]:
            print(f"  not restored\n    text   {line}\n    again  {text}")


def main() -> None:
    """Compare the tokenisers for the files of the command line."""
    parser = argparse.ArgumentParser(description="Compare the tokeniser and detokeniser with those of Moses.")
    parser.add_argument("--moses", required=True, type=Path, metavar="DIR", help="directory `scripts` of Moses")
    parser.add_argument("--text", required=True, nargs="+", metavar="LANG=FILE", help="raw text, one sentence a line")
    parser.add_argument("--lines", type=int, default=1000, help="number of lines of each file (default: %(default)s)")
    parser.add_argument("--examples", type=int, default=0, help="lines to show for each cause (default: %(default)s)")
    args = parser.parse_args()
    print("language\tlines\tequal tokens\trestored\trestored by Moses\tlines with a cause")
    for entry in args.text:
        lang, _, path = entry.partition("=")
        if not path:
            sys.exit(f"--text {entry}: specify LANG=FILE")
        compare(args.moses, lang, Path(path).read_text(encoding="utf-8").split("\n")[: args.lines], args.examples)


if __name__ == "__main__":
    main()
