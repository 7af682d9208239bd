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

# Version of the package whose stages these rules call.
VERSION = "1.0.0"

# Rules call the stages as `rnnsmt`, which lies beside the Python that runs Snakemake; with --sdm conda the environment of
# the rule comes before it on PATH. ROOT is the directory of this workflow, None for a module that is hosted elsewhere.
os.environ.update(PATH=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))
ROOT = None
if isinstance(workflow.current_basedir, LocalSourceFile):
    ROOT = Path(str(workflow.current_basedir), "../..").resolve()
try:
    from rnnsmt.base.io import InputError
    from rnnsmt.plan.pipeline import check_package, checkout
except ImportError:
    raise WorkflowError(
        f"{sys.executable} has no package rnnsmt, or an older one; this workflow needs {VERSION}: "
        + (f"pip install -e {ROOT}" if ROOT and (ROOT / "src").is_dir() else f"pip install rnnsmt=={VERSION}")
    )

try:
    check_package(ROOT, VERSION)
except InputError as error:
    raise WorkflowError(f"{sys.executable}: {error}")

# What envs/*.post-deploy.sh installs: a checkout, or else the package of this version.
if source := ROOT if ROOT and (ROOT / "src").is_dir() else checkout():
    os.environ.update(RNNSMT_CHECKOUT=str(source))

from rnnsmt.align import PASSES_OF
from rnnsmt.corpus.check import first_warnings
from rnnsmt.monitoring.estimate import setting_mistakes
from rnnsmt.monitoring.runs import enter, executes
from rnnsmt.moses.ini import MosesIni
from rnnsmt.moses.installation import Installation, check_path, needs_of
from rnnsmt.plan import paths
from rnnsmt.plan.config import amount_kept, check, is_demo_corpus, parts_of_moses, settle
from rnnsmt.plan.corpora import language_warnings, missing_files
from rnnsmt.plan.features import NNJM_DIRECTIONS
from rnnsmt.plan.models import Systems, column_options, settings_options
from rnnsmt.plan.paths import FULL_TABLE, PAIRS, REORDERING_TABLE, RUN, SENTENCES, Texts
from rnnsmt.stages import STAGES

# The configuration of a run, or of another workflow that uses this one as a module, goes over that of config.yaml.
with open(workflow.source_path("../../config.yaml"), encoding="utf-8") as file:
    settings = yaml.safe_load(file)
update_config(settings, config)
config.update(settings)
if mistakes := check(config, workflow.source_path("../schemas/config.schema.json"), workflow.configfiles):
    raise WorkflowError("The configuration has mistakes:\n" + "\n".join(f"  {line}" for line in mistakes))
MOSES_PARTS = parts_of_moses(config)
if MOSES_PARTS:
    try:
        moses = Installation(config["moses_home"])
        check_path(Path.cwd())
        if workflow.is_main_process:  # jobs do not look again
            moses.check(needs_of(config))
    except InputError as error:
        raise WorkflowError(str(error))
    MOSES_HOME = str(moses.home)
settled = settle(config)

# Whether jobs run on other machines than this process. What a killed run left locked is freed, see monitoring/runs.py.
CLUSTER = config["cluster"]
try:
    if enter(Path(".snakemake"), CLUSTER, sys.argv):
        logger.info("Removed the lock that a run which was killed had left in this directory.")
except InputError as error:
    raise WorkflowError(str(error))

# Which file contains which text, and what the systems are made of.
texts = Texts(config)
systems = Systems(config)
if mistakes := list(setting_mistakes(systems)):
    raise WorkflowError("The configuration has mistakes:\n" + "\n".join(f"  {line}" for line in mistakes))

# A module of another workflow may run some rules only, on files that other rules make.
is_module = not (ROOT and Path(str(workflow.main_snakefile)).resolve().is_relative_to(ROOT))

# With --sdm conda, the environments of the rules have what this Python may lack.
has_environments = bool(getattr(workflow.deployment_settings, "deployment_method", ()))
if (
    (systems.networks or systems.lstm_models)
    and find_spec("torch") is None
    and not has_environments
    and not is_module
    and workflow.is_main_process
    and executes(sys.argv)
):
    raise WorkflowError(
        f"{', '.join(systems.networks or systems.lstms)}: these networks need PyTorch, which {sys.executable} does not "
        "have: pip install 'rnnsmt[networks]', or run the systems without networks: --config 'compare=[baseline]'"
    )

# Without matplotlib and scikit-learn, the report has no pictures.
HAS_FIGURES = has_environments or all(map(find_spec, ("matplotlib", "sklearn")))

if workflow.is_main_process:
    warnings = list(language_warnings(list(texts.corpora.values()), config["languages"]))
    if not is_module:
        warnings += missing_files(list(texts.corpora.values()), config["data_dir"])
    try:
        warnings += list(first_warnings(list(texts.corpora.values()), (texts.source, texts.target)))
    except InputError as error:
        if executes(sys.argv):
            raise WorkflowError(str(error))
        warnings += str(error).splitlines()
    if not HAS_FIGURES and not is_module:
        warnings.append("pictures are left out; they need matplotlib and scikit-learn: pip install 'rnnsmt[figures]'")
    if settled:  # here, since an error above stands alone
        logger.info(settled)
    for line in warnings:
        logger.warning(f"warning: {line}")

SOURCE, TARGET = texts.source, texts.target
SETS = texts.sets
RUNS = systems.runs
TRAININGS = systems.trainings
BASE_ENV = "../../envs/base.yaml"
TORCH_ENV = "../../envs/torch.yaml"


wildcard_constraints:
    lang=f"{SOURCE}|{TARGET}",
    corpus="|".join(texts.corpora),
    set="|".join(SETS),
    system="|".join(map(re.escape, config["systems"])),
    run=r"\d+",
    network=r"\d+",
    left_out=r"(\.without-\d+-of-\d+)?",
    scorer="|".join(systems.scorers),
    lstm="|".join(config["seq2seq"]["networks"]),
    ensemble=r"\d+",
    nnjm="|".join(NNJM_DIRECTIONS),
    aligner="|".join(config["alignment"]["aligners"]),
    kind="bitext|mono|raw|tokenized|truecased",


def version(package, stage):
    """Return the version of a stage; among the params of its rule, it causes a rerun of stale results."""
    return STAGES[package][stage].version


def in_order(values):
    """Return input files or settings as one text; among the params of a rule, another order of them causes a rerun.

    Snakemake compares the input files of a job without their order, and no params that are functions of the input.
    """
    return " ".join(map(str, values))


def switch(name, on):
    """Return a command-line switch, or an empty string."""
    return f"--{name}" if on else ""


def any_of(names):
    """Return a regular expression that matches these names; nothing, if there are none."""
    return "|".join(map(re.escape, names)) or "(?!)"


def of_every_run(kind):
    """Return a file of every set for every run of a system, those of the first run first."""
    return expand(f"{RUN}/{{set}}.{kind}", run=RUNS, set=SETS, allow_missing=True)


def score_files(column, network, part=None):
    """Return the files of the scores of a column of the phrase table, or of the part of it for dev or all sets."""
    path = systems.filtered_score_pattern(column, network, part) if part else systems.score_pattern(column, network)
    scatter = systems.known[column].scatter
    return getattr(gather, scatter)(path) if scatter else [path]


def known_scores(wildcards):
    """Return the lines of dev's table and their scores, which are part of those for all sets."""
    if wildcards.part == "dev":
        return []
    return ["results/model/filtered/dev/lines.npy", *score_files(wildcards.scorer, wildcards.network, "dev")]


def ini_tables(wildcards):
    """Return the tables of an ini: as ancient, since a changed table is no reason to write the ini again.

    If a job before this one runs, Snakemake does not compare the params of this one, and does not run it for ancient files.
    Therefore, the tables are not ancient if an existing ini has other tables, language models or settings.
    """
    tables = [f"results/{path}" for path in systems.tables(wildcards.features.split("_"), wildcards.network)]
    ini = f"results/augmented/{wildcards.features}/network{wildcards.network}/moses.ini"
    unknown = {kind.upper(): config[kind]["unknown"] for kind in ("cslm", "nnjm")}
    limits = config["search"]["distortion_limit"], config["search"]["table_limit"]
    try:
        if Path(ini).is_file() and not MosesIni.read(ini).has_settings(tables, LMS, *limits, unknown):
            return tables
    except InputError:
        return tables
    return [ancient(table) for table in tables]
