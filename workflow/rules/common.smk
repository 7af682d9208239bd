# Shared definitions: the checked configuration, the corpora, where jobs run, and how a rule calls a command.
import os
import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import yaml
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.sourcecache import LocalSourceFile
from snakemake.utils import update_config

# Version of the package that these rules require.
VERSION = "1.0.0"

# ROOT is the directory of this workflow, None for a module that is hosted elsewhere.
ROOT = None
if isinstance(workflow.current_basedir, LocalSourceFile):
    ROOT = Path(str(workflow.current_basedir), "../..").resolve()

# With --sdm conda, the command rnnsmt and the packages that this Python lacks are in the environments of the rules.
has_environments = bool(getattr(workflow.deployment_settings, "deployment_method", ()))
if find_spec("rnnsmt") is None or not has_environments and shutil.which("rnnsmt") is None:
    raise WorkflowError(
        f"the package rnnsmt is not installed for {sys.executable}, or its command is not on PATH: activate the "
        f"environment (source {Path(sys.executable).parent}/activate), or install it (pip install rnnsmt=={VERSION})"
    )

from rnnsmt import __version__

if __version__ != VERSION:
    raise WorkflowError(f"rnnsmt {__version__} is installed, but this workflow requires {VERSION}")

from rnnsmt.base.io import InputError
from rnnsmt.moses.installation import Installation, check_path, needs_of
from rnnsmt.config import paths
from rnnsmt.config.derived import amount_kept, is_demo_corpus, parts_of_moses
from rnnsmt.config.corpora import language_warnings, missing_files
from rnnsmt.config.features import BY_NAME
from rnnsmt.config.systems import Systems, column_options, settings_options
from rnnsmt.config.paths import PAIRS, PHRASE_TABLE, REORDERING_TABLE, RUN, SENTENCES, Texts
from rnnsmt.config.validation import ConfigurationError, checked_config
from rnnsmt.project.network_settings import setting_mistakes
from rnnsmt.stages import stages

# The configuration of the run, or of a workflow that uses this one as a module, overrides config.yaml, and config.yaml the
# defaults of the settings (`rnnsmt project settings`). From here on, config has a value for every setting.
with open(workflow.source_path("../../config.yaml"), encoding="utf-8") as file:
    given = yaml.safe_load(file)
update_config(given, config)
try:
    config.update(checked_config(given))
    if mistakes := list(setting_mistakes(config)):
        raise ConfigurationError(mistakes)
except ConfigurationError as error:
    raise WorkflowError(str(error))
MOSES_PARTS = parts_of_moses(config)
if MOSES_PARTS:
    try:
        moses = Installation(config["moses_home"])
        check_path(Path.cwd())
        if workflow.is_main_process:  # not again in every job
            moses.check(needs_of(config))
    except InputError as error:
        raise WorkflowError(str(error))
    MOSES_HOME = str(moses.home)

# Whether jobs run on machines other than this one.
CLUSTER = config["cluster"]

# The files of all texts, and the components of all systems.
texts = Texts(config)
systems = Systems(config)

# A workflow that uses this one as a module may run some of the rules only, on files from its own rules.
is_module = not (ROOT and Path(str(workflow.main_snakefile)).resolve().is_relative_to(ROOT))

# Without matplotlib and scikit-learn, the report has no figures.
HAS_FIGURES = has_environments or all(map(find_spec, ("matplotlib", "sklearn")))

if workflow.is_main_process:
    warnings = list(language_warnings(list(texts.corpora.values()), config["languages"]))
    if not is_module:
        warnings += missing_files(list(texts.corpora.values()), config["data_dir"])
    if (systems.networks or systems.lstm_models) and not has_environments and not find_spec("torch"):
        warnings.append(
            f"{', '.join(systems.networks or systems.lstms)}: these networks require PyTorch, which is not installed for "
            f"{sys.executable}: pip install 'rnnsmt[networks]', or run the systems without networks: "
            "--config 'compare=[baseline]'"
        )
    if not HAS_FIGURES and not is_module:
        warnings.append("figures are omitted; they require matplotlib and scikit-learn: pip install 'rnnsmt[figures]'")
    for line in warnings:
        logger.warning(f"warning: {line}")

SOURCE, TARGET = texts.source, texts.target
SETS = texts.sets
RUNS = systems.runs
TRAININGS = systems.trainings
BASE_ENV = "../../envs/base.yaml"
TORCH_ENV = "../../envs/torch.yaml"


def version(package, stage):
    """Return the version of a stage, a param of its rule, with its name for the reason that Snakemake prints."""
    return f"{package} {stage} {stages(package)[stage].version}"


def in_order(values):
    """Return input files or settings as one string, a param of a rule: another order causes a rerun.

    Snakemake ignores the order of the input files of a job, and params that are functions of the input.
    """
    return " ".join(map(str, values))


def switch(name, on):
    """Return a command-line switch, or an empty string."""
    return f"--{name}" if on else ""


def unchecked(wildcards, input):
    """Return the option that skips the checks of the first lines of a corpus, or an empty string.

    As a function of the input, it is no reason to rerun a job: the output is the same.
    """
    return switch("no-check", not texts.corpora[wildcards.corpus].check)


def any_of(names):
    """Return a regular expression that matches these names; it matches nothing if there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


wildcard_constraints:
    lang=f"{SOURCE}|{TARGET}",
    corpus=any_of(texts.corpora),
    set=any_of(SETS),
    system=any_of(config["systems"]),
    run=r"\d+",
    network=r"\d+",
    lstm=any_of(config["seq2seq"]["networks"]),
    ensemble=r"\d+",
    aligner=any_of(config["alignment"]["aligners"]),
    kind="bitext|mono|raw|tokenized|truecased",


def of_every_run(kind):
    """Return the files of one kind for every run and set of a system, in this order."""
    return expand(f"{RUN}/{{set}}.{kind}", run=RUNS, set=SETS, allow_missing=True)


def score_files(column, network):
    """Return the score files of a column of the phrase table."""
    path = systems.score_pattern(column, network)
    return getattr(gather, f"{column}_score")(path) if "{scatteritem}" in path else [path]


def outputs_on_the_way_to(targets):
    """Return the outputs, other than temporary ones, of all jobs that create these files, directly or indirectly.

    They are the input of the rule `all`. Snakemake deletes the outputs of a job when it starts, and records its params
    even if it fails or is stopped. A missing file that is not requested is not created again as long as the files made
    from it exist: they would stay as earlier settings made them. (In a module, whose files may have a prefix, only the
    results are requested.)
    """
    ahead, outputs = list(targets), {}
    while ahead:
        path = str(ahead.pop())
        producer = next((r for r in workflow.rules if r.is_producer(path)), None)
        if producer is None or path in outputs:
            continue
        wildcards = producer.get_wildcards(path)
        outputs.update((str(file), "temp" in file.flags) for file in producer.expand_output(wildcards)[0])
        ahead += producer.expand_input(wildcards)[0]
    return [path for path, is_temporary in outputs.items() if not is_temporary]
