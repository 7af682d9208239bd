"""Table 1, and the comparison of two systems, as Markdown that is also readable as plain text.

Columns are padded; lines have about 100 characters at most.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from rnnsmt.base.io import atomic_text, write_lines
from rnnsmt.evaluation.cells import (
    DASH,
    Table,
    contrasts,
    interval,
    notes,
    output,
    overview,
    scores,
    signatures,
    size,
    test_sets,
    verdict,
)
from rnnsmt.evaluation.table import Row

WIDTH = 100
"""Line width of running text."""


def write_markdown(path: str | Path, table: Sequence[Row], paper: bool, title: str) -> None:
    """Write the overview and the tables of every test set.

    Args:
        path: output file.
        table: rows of all systems and test sets.
        paper: include the published results.
        title: title of the document.
    """
    parts = [f"# {title}", "", *_lines(overview(table, paper)), ""]
    for name, rows in test_sets(table).items():
        parts += [f"## {name}: {size(rows)}", "", *_lines(scores(rows)), ""]
        if (added := contrasts(rows)) is not None:
            parts += [f"### What each feature adds on {name}", "", *_lines(added), ""]
        if said := verdict(rows):
            parts += [*wrap(said, WIDTH, break_long_words=False, break_on_hyphens=False), ""]
        parts += [f"### Output on {name}", "", *_lines(output(rows)), ""]
    for note in [*notes(table, paper), *(f"sacreBLEU signature: `{signature}`" for signature in signatures(table))]:
        parts += [*wrap(note, WIDTH, break_long_words=False, break_on_hyphens=False), ""]
    with atomic_text(path) as out:
        out.write("\n".join(parts).rstrip("\n") + "\n")


def _lines(table: Table) -> list[str]:
    """Return the lines of a table with padded cells, first column left-aligned, others right-aligned."""
    headings, *rows = ([cell.replace("|", r"\|") for cell in row] for row in (table.headings, *table.rows))
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    rule = [f":{'-' * (widths[0] + 1)}", *(f"{'-' * (width + 1)}:" for width in widths[1:])]
    return [
        _line(headings, widths),
        f"|{'|'.join(rule)}|",
        *(_line(row, widths) for row in rows),
    ]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one row of a table."""
    first, *others = zip(cells, widths, strict=True)
    return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"


def write_comparison(path: str | Path, found: Mapping[str, Any]) -> None:
    """Write the result of `evaluation compare`, given as the content of its JSON file."""
    write_lines(path, _comparison(found))


def _comparison(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a comparison."""
    names = found["baseline"], found["system"]
    yield from (f"# {names[1]} against {names[0]}", "")
    runs = f"means of {found['runs']} runs" if found["runs"] > 1 else "one run"
    p = "" if found["p_strict"] is None else f", p strict {found['p_strict']:.4f}, 95 % {interval(*found['interval'])}"
    yield (
        f"{found['sentences']} sentences, {runs}: BLEU {found['bleu'][0]:.2f} and {found['bleu'][1]:.2f}, "
        f"{found['difference']:+.2f} (p {found['p_value']:.4f}{p})."
    )
    one = found["first run"]
    yield (
        f"In the first run {one['changed']} translations differ; {one['better']} are better, {one['worse']} worse by "
        "smoothed sentence BLEU."
    )
    for kind, rows in found["groups"].items():
        cells = [
            [row["group"], str(row["sentences"]), *(f"{bleu:.2f}" for bleu in row["bleu"]), f"{row['difference']:+.2f}"]
            for row in rows
        ]
        yield from ("", f"## BLEU by {kind}", "")
        yield from _lines(Table([kind, "sentences", *names, "difference"], cells))
    for kind, rows in found.get("exchanged pairs", {}).items():
        cells = [
            [
                row["group"],
                *map(str, row["pairs"]),
                str(row["sentences"]),
                DASH if row["mean gain"] is None else f"{row['mean gain']:+.2f}",
            ]
            for row in rows
        ]
        yield from ("", f"## Phrase pairs that only one uses, by {kind}", "")
        yield from _lines(Table([kind, *names, f"sentences of {names[1]}", "their mean gain"], cells))
    if "decided" in found:
        yield from ("", f"## What decides for other translations under the weights of {names[1]}", "")
        if left := found["not of the system's model"]:
            yield from (f"Without {left} sentences whose other translation {names[1]} could not have made.", "")
        yield from _lines(
            Table(
                ["feature", "mean contribution"], [[name, f"{value:+.3f}"] for name, value in found["decided"].items()]
            )
        )
    for title, examples in found["examples"].items():
        yield from ("", f"## {title}", "")
        for example in examples:
            yield from _example(example, names)


def _example(example: Mapping[str, Any], names: tuple[str, str]) -> Iterator[str]:
    """Yield the lines for one sentence: its texts, differing phrase pairs, and contributions of the features."""
    yield f"* sentence {example['sentence']}, {example['gain']:+.1f}"
    texts = [
        ("source", example.get("source")),
        ("reference", example["reference"][0]),
        *zip(names, example["texts"], strict=True),
    ]
    width = max(len(name) for name, _ in texts)
    yield from (f"  * `{name.ljust(width)}` {text}" for name, text in texts if text is not None)
    for name, pairs in zip(names, example.get("pairs", ((), ())), strict=True):
        if pairs:
            said = [
                f"{source} → {target or DASH} ({DASH if count is None else f'{count:g}'})"
                for source, target, count in pairs
            ]
            yield f"  * only {name}: {'; '.join(said)}"
    if example.get("decided"):
        said = [f"{name} {value:+.2f}" for name, value in example["decided"].items() if abs(value) >= 0.005]
        yield f"  * decided: {', '.join(said)}"
