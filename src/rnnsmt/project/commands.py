"""The commands that set up the directory of a run, run the workflow in it, and print its status."""

import argparse
from pathlib import Path

from rnnsmt.base.io import STANDARD_STREAM, write_lines_or_stdout
from rnnsmt.base.options import positive


def init_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="run directory, created if it does not exist")
    parser.add_argument("--demo", action="store_true", help="use the English-French demo corpus")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="configure a trial in minutes: four systems, small networks, narrow search, one tuning run",
    )
    for name, text in (("bitext", "training text"), ("dev", "text for tuning"), ("test", "text for evaluation")):
        parser.add_argument(
            f"--{name}",
            nargs="+",
            metavar="FILE",
            action="append",
            help=f"parallel {text}: source and target file, or one file with both languages; may be repeated",
        )
    parser.add_argument(
        "--mono",
        nargs=1,
        metavar="TARGET",
        action="append",
        help="target-language text for the language models; may be repeated",
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="ISO 639-1 codes (default: from the file suffixes, the zip archive or the TMX file)",
    )
    parser.add_argument(
        "--columns",
        nargs=2,
        type=positive,
        metavar=("S", "T"),
        help="1-based column numbers of source and target in the TSV files (default: 1 2)",
    )
    parser.add_argument(
        "--members",
        nargs=2,
        action="append",
        metavar=("S", "T"),
        help="names of the source and target files in a zip archive that contains several pairs; may be repeated, for "
        "further archives",
    )
    parser.add_argument(
        "--profile",
        choices=["default", "slurm"],
        default="default",
        help="Snakemake profile to copy to DIR/profiles/default",
    )


def init(args: argparse.Namespace) -> None:
    """Create a run directory with config.yaml and a Snakemake profile.

    Without --demo and without files, config.yaml contains placeholders for the file names. Text files have one segment
    per line. A file with both languages is an OPUS zip archive, a TMX file, a TSV file, or the common prefix of two
    files. Existing files are not overwritten.

    Example:

        rnnsmt init demo --demo

    then, in this directory:

        rnnsmt run --cores 2
    """
    from rnnsmt.project.setup import set_up

    print("\n".join(set_up(args)))


def run_options(parser: argparse.ArgumentParser) -> None:
    parser.usage = "rnnsmt run [SNAKEMAKE OPTION ...]"


def run(args: argparse.Namespace) -> None:
    """Run the workflow in the current directory, or in that of --directory.

    Options are passed on to Snakemake (see `snakemake --help`); --cores is required, except with a profile for a
    cluster. By default, --snakefile is the workflow of this package, --configfile is config.yaml in the directory,
    and --workflow-profile is its profiles/default. On a terminal, --logger is rich.

    Example, in a directory created by `rnnsmt init`:

        rnnsmt run --cores 2
    """
    from rnnsmt.project.running import run_workflow

    run_workflow(args.passed)


def status_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--directory", default=".", metavar="DIR", help="run directory, as in snakemake --directory")


def status(args: argparse.Namespace) -> None:
    """Print the progress of a run: jobs done, and the running jobs with the last lines of their logs.

    The command can be used from another terminal during the run, or afterwards.

    Example, in the directory of a run:

        rnnsmt status
    """
    from rnnsmt.project.status import status as lines_of

    write_lines_or_stdout(STANDARD_STREAM, lines_of(Path(args.directory)))


def settings_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of a configuration, for editors")


def settings(args: argparse.Namespace) -> None:
    """Print all settings of the configuration with their values, defaults and meaning, as Markdown tables.

    Example:

        rnnsmt project settings
    """
    import json

    from rnnsmt.project.settings_table import json_schema, table_lines

    lines = [json.dumps(json_schema(), indent=2)] if args.schema else list(table_lines())
    write_lines_or_stdout(STANDARD_STREAM, lines)
