"""The page of all operations, made from their signatures.

Write it with ``python -m rnnsmt.project.reference > docs/operations.md``.
"""

from collections.abc import Iterator

from rnnsmt.stages import PACKAGES, operations


def reference_lines() -> Iterator[str]:
    """Yield a Markdown page with a table of all operations: command, Python call, meaning."""
    yield from (
        "# Operations",
        "",
        "An operation is a command and a Python function with the same arguments: `--max-length 7` on the command line",
        "is `max_length=7` in Python. The table shows the required arguments. `rnnsmt PACKAGE COMMAND --help` and",
        "`help(rnnsmt.PACKAGE.FUNCTION)` describe all of them. [Python API](api.md) shows the results.",
        "",
        "| command | Python | what it does |",
        "|---|---|---|",
    )
    for package, title in PACKAGES.items():
        yield f"| **{package}** | | *{title}* |"
        for name, one in operations(package).items():
            required = [argument for argument, setting in one.settings.items() if setting.required]
            call = f"rnnsmt.{package}.{one.function.__name__}({', '.join(required)})"
            yield f"| `rnnsmt {package} {name}` | `{call}` | {one.summary} |"


if __name__ == "__main__":
    print("\n".join(reference_lines()))
