# Shared definitions: the checked configuration, the corpora, where jobs run, and how a rule calls a command.
import os
import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from inspect import signature
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.io import apply_wildcards, regex_from_filepattern, strip_wildcard_constraints
from snakemake.logging import logger
from snakemake.utils import update_config

# Version of the package that these rules require.
VERSION = "2.0.0"

# The repository of this workflow, if it is a directory.
REPOSITORY = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]

# A checkout can be linted without the package: what is imported here requires only what Snakemake requires.
linting = not workflow.check_envvars
if linting and find_spec("rnnsmt") is None:
    sys.path.append(str(REPOSITORY / "src"))


# One environment for Snakemake and all jobs (--sdm conda), once the package is on an index; one image for all jobs (--sdm
# apptainer): a file, or an address. In the image are the command rnnsmt and the packages that this Python lacks.
conda: "../../envs/rnnsmt.yaml"


container: os.environ.get("RNNSMT_IMAGE", f"rnnsmt-{VERSION}.sif")


has_image = "apptainer" in map(str, getattr(workflow.deployment_settings, "deployment_method", ()))
if find_spec("rnnsmt") is None or not (has_image or linting) and shutil.which("rnnsmt") is None:
    raise WorkflowError(
        f"the package rnnsmt is not installed for {sys.executable}, or its command is not on PATH: activate the "
        f"environment (source {Path(sys.executable).parent}/activate), or install rnnsmt {VERSION} there (docs/install.md)"
    )

from rnnsmt import __version__, base

base.has_docstrings = False  # takes a third of a second

if __version__ != VERSION:
    raise WorkflowError(f"rnnsmt {__version__} is installed, but this workflow requires {VERSION}")

from rnnsmt import registries
from rnnsmt.base.errors import InputError
from rnnsmt.moses.installation import Installation, check_path, needs_of
from rnnsmt.plan import paths
from rnnsmt.plan.derived import amount_kept, is_demo_corpus, parts_of_moses
from rnnsmt.plan.corpora import is_address, language_warnings, missing_files
from rnnsmt.plan.systems import COLUMN, Systems, column_options, settings_options
from rnnsmt.plan.paths import PAIRS, PHRASE_TABLE, REORDERING_TABLE, RUN, SENTENCES, VOCABULARIES, Texts
from rnnsmt.plan.validation import ConfigurationError, checked_config, plain_config, repeated_keys
from rnnsmt.project.network_settings import setting_mistakes
from rnnsmt.registries import COLUMNS, FEATURES, NETWORKS
from rnnsmt.stages import operations

# The configuration of the run, or of a workflow that uses this one as a module, overrides config.yaml, and config.yaml the
# defaults of the settings (`rnnsmt project settings`). Rules read settings; config has the same values, for the provenance.
with open(workflow.source_path("../../config.yaml"), encoding="utf-8") as file:
    configured = yaml.safe_load(file) or {}
own, deployed = REPOSITORY / "config.yaml", REPOSITORY / "config/config.yaml"
if own.is_file() and deployed.is_file() and deployed.read_bytes() != own.read_bytes():
    raise WorkflowError(
        f"{deployed} differs from {own}, and only the latter is read: move your settings there, or use --configfile"
    )
update_config(configured, config)
try:
    settings = checked_config(configured)
    mistakes = list(setting_mistakes(settings))
    if workflow.is_main_process:
        files = [workflow.source_path("../../config.yaml"), *workflow.overwrite_configfiles]
        mistakes += [line for path in files for line in repeated_keys(path)]
    if mistakes:
        raise ConfigurationError(mistakes)
except ConfigurationError as error:
    raise WorkflowError(str(error))
config.update(plain_config(settings))
MOSES_PARTS = parts_of_moses(settings)
if MOSES_PARTS:
    try:
        moses = Installation(settings.moses_home)
        check_path(Path.cwd())
        if workflow.is_main_process:  # not again in every job
            moses.check(needs_of(settings))
    except InputError as error:
        raise WorkflowError(str(error))
    MOSES_HOME = str(moses.home)

# Whether jobs run on machines other than this one.
CLUSTER = settings.cluster

# The files of all texts, and the components of all systems.
texts = Texts(settings)
systems = Systems(settings)

# Whether a system of the table, or a network, uses the phrase table.
HAS_TABLES = bool(systems.tuned or systems.networks)

if workflow.is_main_process:
    warnings = list(language_warnings(list(texts.corpora.values()), settings.languages))
    if not workflow.storage_settings.default_storage_provider:  # where the files would be
        warnings += missing_files(list(texts.corpora.values()), settings.data_dir)
    if (systems.networks or systems.lstm_models) and not has_image and not find_spec("torch"):
        warnings.append(
            f"{', '.join(systems.networks or systems.lstms)}: these networks require PyTorch, which is not installed for "
            f"{sys.executable}: install rnnsmt with the extra networks, or run the systems without networks: "
            "--config 'compare=[baseline]'"
        )
    if settings.evaluation.figures and not has_image and not all(map(find_spec, ("matplotlib", "sklearn"))):
        warnings.append(
            "figures require matplotlib and scikit-learn, which are not installed: install rnnsmt with the extra figures, or "
            "omit them: --config 'evaluation={figures: false}'"
        )
    for line in warnings:
        logger.warning(f"warning: {line}")

SOURCE, TARGET = texts.source, texts.target
SETS = texts.sets
RUNS = systems.runs
TRAININGS = systems.trainings
VOCABULARY_FILES = [f"{VOCABULARIES}/vocab.{side}.txt" for side in ("source", "target")]


def version(package, stage, other=""):
    """Return the version of a stage, a param of its rule, with its name for the reason that Snakemake prints.

    other: package that the stage calls, with its version (Registry.package); empty: none.
    """
    return f"{package} {stage} {operations(package)[stage].version} {other}".rstrip()


def network_version(stage, kind):
    """Return the version of a stage of a network, with that of its package, a param of its rule."""
    return f"{version('networks', stage)} {kind} {NETWORKS[kind].version} {NETWORKS.package(kind)}".rstrip()


def in_order(values):
    """Return input files or settings as one string, a param of a rule: another order causes a rerun.

    Snakemake ignores the order of the input files of a job, and params that are functions of the input.
    """
    return " ".join(map(str, values))


def given(paths):
    """Return files that the configuration names as inputs: addresses (s3://bucket/file) are files of a storage."""
    if not isinstance(paths, str):
        return [given(path) for path in paths]
    return storage(paths) if is_address(paths) else paths


def switch(name, on):
    """Return a command-line switch, or an empty string."""
    return f"--{name}" if on else ""


def unchecked(wildcards, input):
    """Return the option that skips the checks of the first lines of a corpus, or an empty string.

    As a function of the input, it is no reason to rerun a job: the output is the same.
    """
    return switch("no-check", not texts.corpora[wildcards.corpus].check)


def format_package(corpus):
    """Return the package of the format of a corpus, with its version; empty for the formats of this package."""
    name = texts.corpora[corpus].separated.format
    return registries.CORPUS_FORMATS.package(name) if name else ""


def any_of(names):
    """Return a regular expression that matches these names; it matches nothing if there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    lang=f"{SOURCE}|{TARGET}",
    corpus=any_of(texts.corpora),
    set=any_of(SETS),
    system=any_of(settings.systems),
    run=r"\d+",
    network=r"\d+",
    ensemble=r"\d+",
    aligner=any_of(settings.alignment.aligners),
    kind="bitext|mono|raw|tokenized|truecased",


# Number of shards of the columns of networks that are computed in parallel: --set-scatter column=16 on a cluster. It
# stands before the rules, as it constrains wildcards: for the rules above, Snakemake would drop all constraints on files of an S3 storage.
scattergather:
    column=2,


def of_every_run(kind):
    """Return the files of one kind for every run and set of a system, in this order."""
    return expand(f"{RUN}/{{set}}.{kind}", run=RUNS, set=SETS, allow_missing=True)


def of_every_system(kinds, names):
    """Return the files of some kinds for every run and set of some systems."""
    return expand(f"{RUN}/{{set}}.{{kind}}", system=names, run=RUNS, set=SETS, kind=kinds)


def score_files(column, network):
    """Return the score files of a column of the phrase table."""
    path = systems.score_pattern(column, network)
    return gather.column(path) if "{scatteritem}" in path else [path]


def column_files(table):
    """Return the score files of the columns of a table, in order."""
    names, network = systems.columns_of_table(table)
    return [path for name in names for path in score_files(name, network)]


def table_column_options(table, files):
    """Return the options for the columns of a table."""
    names, network = systems.columns_of_table(table)
    return column_options([len(score_files(name, network)) for name in names], files)


def of_job(wildcards, values):
    """Return the values of the tuning runs that are one job, from one value for every run, or one for all."""
    return [values[int(wildcards.run) - 1]] if CLUSTER and len(values) > 1 else values


def files_of_job(pattern):
    """Return the files of a pattern for the tuning runs that are one job."""
    return expand(pattern, run=["{run}"] if CLUSTER else RUNS, allow_missing=True)


def names_of_logs(files):
    """Return the names of the logs of the jobs that make these files, below results/logs, in order.

    Patterns of rules are compared from results/ on: before it is the prefix of a module, or the address of a storage.
    """

    def below(pattern):
        return pattern[pattern.rindex("results/") :]

    patterns = [
        (re.compile(regex_from_filepattern(below(output))), strip_wildcard_constraints(below(rule.log[0])))
        for rule in workflow.rules
        if rule.log and "results/" in rule.log[0]
        for output in rule.output
        if "results/" in output
    ]
    names = set()
    for path in files:
        found = ((pattern.match(path), log) for pattern, log in patterns)
        made = next((apply_wildcards(log, match.groupdict()) for match, log in found if match), None)
        if made is not None:
            names.add(made.removeprefix("results/logs/").removesuffix(".log"))
    return sorted(names)
