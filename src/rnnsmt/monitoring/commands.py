"""The command that inspects a run of the workflow."""

import argparse
from pathlib import Path

from rnnsmt.base.io import STANDARD_STREAM, write_lines_or_stdout


def status_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directory", default=".", metavar="DIR", help="run directory, as in snakemake --directory")


def status(args: argparse.Namespace) -> None:
    """Print the progress of a workflow run: jobs done, estimated time left, running jobs, and failed jobs with reasons.

    The command can be used during the run, from another terminal, or afterwards. To resume a run that was killed, run
    the same snakemake command again.

    Example, in the directory of a run:

        rnnsmt status
    """
    from rnnsmt.monitoring.runs import status as lines_of

    write_lines_or_stdout(STANDARD_STREAM, lines_of(Path(args.directory)))
