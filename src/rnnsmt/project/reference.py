"""The page of all operations, made from their signatures and the examples in their docstrings.

Write it with ``python -m rnnsmt.project.reference > docs/operations.md``.
"""

import re
from collections.abc import Iterator
from textwrap import dedent

from rnnsmt.stages import PACKAGES, operations

_EXAMPLE = re.compile(r"^Examples?\b.*:\n\n", re.M)

_INPUTS = {
    "corpus fetch": "tar czf try/texts.tar.gz try/demo",
    "corpus separate": "paste <(zcat try/demo/general.en.gz) <(zcat try/demo/general.fr.gz) > try/pairs.tsv",
    "networks rescore": (
        "rnnsmt search decode --ini results/systems/rnn/run1/moses.ini \\\n"
        "    --input results/corpus/joined/truecased/dev.en.gz --output try/dev.first --nbest 100 \\\n"
        "    --nbest-file try/dev.nbest"
    ),
    "rnn translate": 'echo "the old harbour" > try/phrases',
    "analysis sentence-vectors": (
        "printf '%s\\n' 'The old boat lies in the harbour .' 'The old harbour lies in the boat .' \\\n"
        "    'In the harbour lies the old boat .' 'The captain sells the boat .' 'The boat sells the captain .' \\\n"
        "    > try/sentences.en"
    ),
}
"""Commands that create inputs of an example, if no earlier example creates them."""

_STATUSES = {
    "0": "success",
    "1": "internal error, with a traceback. For `rnnsmt run` and `snakemake`: a job failed, the run was stopped, the "
    "directory is locked, or the configuration is invalid",
    "2": "invalid input or options, with a message of one line on stderr",
    "3": "`rnnsmt corpus check` found problems",
    "75": "the command stopped early after saving a checkpoint",
    "128 + N": "the command was ended by signal N, for example 130 after Ctrl-C",
}


def reference_lines() -> Iterator[str]:
    """Yield a Markdown page: all operations (command, Python call, meaning), the exit statuses, and examples."""
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
        yield f"| **[{package}](#{package})** | | *{title}* |"
        for name, one in operations(package).items():
            required = [argument for argument, setting in one.settings.items() if setting.required]
            call = f"rnnsmt.{package}.{one.function.__name__}({', '.join(required)})"
            yield f"| `rnnsmt {package} {name}` | `{call}` | {one.summary} |"
    yield from (
        "",
        "## Exit status",
        "",
        "| exit status | meaning |",
        "|---|---|",
        *(f"| {status} | {meaning} |" for status, meaning in _STATUSES.items()),
        "",
        "## Examples",
        "",
        "These are the examples of `--help`, and a few commands that make their inputs. They run in the directory of",
        "a finished run of the demo corpus, in this order, because some read what earlier ones wrote to `try/`. The",
        "texts can be any others that are tokenised in the same way. `MOSES_HOME` is the directory of Moses.",
    )
    for package in PACKAGES:
        yield from ("", f"### {package}", "", "```bash")
        for name, one in operations(package).items():
            if f"{package} {name}" in _INPUTS:
                yield _INPUTS[f"{package} {name}"]
            yield example(one.help())
        yield "```"


def example(text: str) -> str:
    """Return the commands of the example in the help of a command, one or several."""
    lines = _EXAMPLE.split(text)[-1].splitlines()
    return dedent("\n".join(line for line in lines if line.startswith("    ")))


if __name__ == "__main__":
    print("\n".join(reference_lines()))
