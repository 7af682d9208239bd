"""The commands that look at a run of the workflow."""

import argparse
from pathlib import Path

from rnnsmt.io import STANDARD_STREAM, write_lines_or_stdout


def status_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directory", default=".", metavar="DIR", help="folder of the run, as snakemake's --directory")


def status(args: argparse.Namespace) -> None:
    """Say how far the run of the workflow in a folder is: what is done, what runs and how long it may take, what failed
    and why.

    It looks at the run from beside it, while it runs or later. A run that was killed goes on with the same command.

    Example, in the folder of a run:

        rnnsmt status
    """
    from rnnsmt.workflow.status import status as lines_of

    write_lines_or_stdout(STANDARD_STREAM, lines_of(Path(args.directory)))


def usage_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directory", default=".", metavar="DIR", help="folder of the run, as snakemake's --directory")


def usage(args: argparse.Namespace) -> None:
    """Say what the jobs of a run of the workflow took, rule by rule: seconds, memory beside what was asked for, disk.

    Memory is that of the largest process of a job: those that share work among processes took more together.

    Example, in the folder of a run:

        rnnsmt workflow usage
    """
    from rnnsmt.workflow.usage import usage as lines_of

    write_lines_or_stdout(STANDARD_STREAM, lines_of(Path(args.directory)))
