"""Operations that set up the directory of a run, run the workflow in it, and print its status."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from rnnsmt.base.arguments import InputDirectory, InputFile, Positive
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Printed, operation
from rnnsmt.base.paths import StrPath

CorpusOption = Annotated[
    Sequence[Sequence[InputFile]], Field(expected="a list that has a list of one or two files for every corpus")
]


@operation(version=1)
def init(
    directory: Annotated[StrPath, Field(metavar="DIR", positional=True, path="directory", expected="a path")],
    *,
    demo: bool = False,
    quick: bool = False,
    bitext: CorpusOption = (),
    dev: CorpusOption = (),
    test: CorpusOption = (),
    mono: Annotated[Sequence[InputFile], Field(metavar="TARGET")] = (),
    languages: Annotated[tuple[str, str], Field(metavar=("SOURCE", "TARGET"))] | None = None,
    columns: Annotated[tuple[Positive, Positive], Field(metavar=("S", "T"))] | None = None,
    members: Annotated[Sequence[tuple[str, str]], Field(metavar=("S", "T"))] = (),
    compare: Annotated[Sequence[str], Field(metavar="SYSTEM")] = (),
    profile: Literal["default", "slurm"] = "default",
) -> Printed:
    """Create a run directory with configuration and Snakemake profile.

    The configuration is the file config.yaml. Without ``demo=True`` and without files, it contains placeholders for the
    file names. Text files have one segment per line. A file with both languages is an OPUS zip archive, a TMX file, a
    TSV file, or the common prefix of two files. Existing files are not overwritten.

    Example:

        rnnsmt init demo --demo

    then, in this directory:

        rnnsmt run --cores 2

    Args:
        directory: run directory, created if it does not exist.
        demo: use the English-French demo corpus.
        quick: configure a trial in minutes: four systems, small networks, narrow search, one tuning run.
        bitext: parallel training text: source and target file, or one file with both languages; may be repeated.
        dev: parallel text for tuning: source and target file, or one file with both languages; may be repeated.
        test: parallel text for evaluation: source and target file, or one file with both languages; may be repeated.
        mono: target-language text for the language models; may be repeated.
        languages: ISO 639-1 codes (default: from the file suffixes, the zip archive or the TMX file).
        columns: 1-based column numbers of source and target in the TSV files (default: 1 2).
        members: names of the source and target files in a zip archive that contains several pairs; may be repeated,
            for further archives.
        compare: systems in the table, in row order, e.g. baseline cslm (default: all nine, or four with ``quick``).
        profile: Snakemake profile to copy to DIR/profiles/default.

    Returns:
        Lines with the files that were written, warnings, and the next steps.

    Raises:
        InputError: a file is missing or not of the form that its corpus requires, the languages cannot be determined,
            or the directory already has a configuration.
    """
    from rnnsmt.project.setup import corpora_of, set_up

    corpora = corpora_of({"bitext": bitext, "mono": [[text] for text in mono], "dev": dev, "test": test})
    return Printed(
        set_up(
            Path(directory),
            corpora,
            languages,
            columns=columns,
            members=members,
            profile=profile,
            demo=demo,
            quick=quick,
            compare=compare,
        )
    )


@operation(version=1)
def run(
    arguments: Annotated[Sequence[str], Field(metavar="SNAKEMAKE_ARGUMENT", positional=True)] = (),
) -> None:
    """Run the workflow in a run directory; accepts the options of Snakemake.

    The directory is the current one, or that of --directory. Options are passed on to Snakemake (see `snakemake
    --help`); --cores is required, except with a profile for a cluster. By default, --snakefile is the workflow of this
    package, --configfile is config.yaml in the directory, and --workflow-profile is its profiles/default. On a
    terminal, --logger is rich.

    Example, in a directory created by `rnnsmt init`:

        rnnsmt run --cores 2

    Args:
        arguments: options and targets of Snakemake.

    Raises:
        InputError: the directory has no configuration, or Snakemake is not installed.
        subprocess.CalledProcessError: Snakemake ended with an error. Only the function raises it; the command replaces
            its process by Snakemake.
    """
    from rnnsmt.project.running import run_workflow

    run_workflow(arguments)


@operation(version=1)
def settings(*, schema: bool = False) -> Printed:
    """Print all settings of the configuration.

    The output is Markdown tables of their values, defaults and meanings.

    Example:

        rnnsmt project settings

    Args:
        schema: print the JSON schema of a configuration, for editors.

    Returns:
        The lines.
    """
    import json

    from rnnsmt.project.settings_table import json_schema, table_lines

    return Printed(json.dumps(json_schema(), indent=2).splitlines() if schema else table_lines())


@operation(version=1)
def status(directory: InputDirectory = ".") -> Printed:
    """Print the progress of a run and its running jobs.

    The output shows the number of completed jobs, and the running jobs with the last lines of their logs. The command
    can be used from another terminal during the run, or afterwards.

    Example, in the directory of a run:

        rnnsmt status

    Args:
        directory: run directory, as in snakemake --directory.

    Returns:
        The lines.

    Raises:
        InputError: the workflow was not run in the directory.
    """
    from rnnsmt.project.progress import progress_of

    return Printed(progress_of(Path(directory)))
