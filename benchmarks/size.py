"""Count lines of code per package, without docstrings, comments and blank lines, beside those of version 1.0.0.

python benchmarks/size.py
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

VERSION_1 = {
    "align": 1877,
    "analysis": 1047,
    "base": 1812,
    "bleu": 225,
    "corpus": 2449,
    "cslm": 801,
    "demo": 1488,
    "evaluation": 2282,
    "lm": 1479,
    "monitoring": 470,
    "moses": 1982,
    "networks": 1869,
    "nnjm": 957,
    "phrases": 2100,
    "plan": 1604,
    "project": 509,
    "rnn": 1935,
    "rnnsmt": 736,
    "search": 3986,
    "selection": 596,
    "seq2seq": 1402,
    "translation": 1706,
    "tuning": 1146,
}
"""Lines of code of version 1.0.0 (commit a544fc7), by package."""

OTHER = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(source: str) -> int:
    """Return the number of lines of a Python source with code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in OTHER:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        for part in getattr(node, "body", []) if not isinstance(node, (ast.Lambda, ast.IfExp)) else []:
            if (
                isinstance(part, ast.Expr)
                and isinstance(part.value, ast.Constant)
                and isinstance(part.value.value, str)
            ):
                lines.difference_update(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return len(lines)


def lines_of_packages(package: Path) -> Counter[str]:
    """Return the lines of code of every package in a directory; modules of the directory itself are ``rnnsmt``."""
    counts: Counter[str] = Counter()
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).parts
        counts[parts[0] if len(parts) > 1 else package.name] += code_lines(path.read_text(encoding="utf-8"))
    return counts


def main() -> None:
    """Print the table."""
    counts = lines_of_packages(Path(__file__).resolve().parents[1] / "src/rnnsmt")
    print(f"{'lines of code':20} {'1.0.0':>7} {'now':>7}")
    for name in sorted({*counts, *VERSION_1}):
        print(f"{name:20} {VERSION_1.get(name, 0):7,} {counts[name]:7,}")
    print(f"{'all':20} {sum(VERSION_1.values()):7,} {sum(counts.values()):7,}")


if __name__ == "__main__":
    main()
