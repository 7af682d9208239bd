# What all chapters share: the checked configuration, the corpora, and how a rule calls a stage.
import shlex
import shutil
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod

sys.path.insert(0, f"{workflow.basedir}/src")
from rnnsmt.config import check, corpora, kept_whole, settle
from rnnsmt.stages import STAGES

if mistakes := check(config, f"{workflow.basedir}/workflow/schemas/config.schema.json", workflow.configfiles):
    raise WorkflowError("The configuration has mistakes:\n" + "\n".join(f"  {line}" for line in mistakes))
if settled := settle(config):
    logger.info(settled)


def on_a_cluster():
    """Whether jobs run elsewhere than the first call: so it is in that call and inside a job. Not in a plan (-n)."""
    try:
        return workflow.remote_exec or not workflow.local_exec or not workflow.cores
    except WorkflowError:  # nobody said how many cores there are
        return True


# The rules call this checkout's stages, with the Python that runs Snakemake or, with --sdm conda, that of their environment,
# which is active already when this prefix is executed. What a stage says when it refuses its input is in its log; file 3
# brings it to the terminal as well. A cluster ends a job when its time is up; on one machine a training may take as long
# as it takes.
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
shell.prefix(
    "set -euo pipefail; exec 3>&2; export RNNSMT_TERMINAL=3; "
    f"{'' if CONDA else f'PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; '}"
    f"rnnsmt() ( PYTHONPATH='{workflow.basedir}/src' exec python -m rnnsmt \"$@\" ); "
    f"time_limit() ( {'echo --time-limit $(($1 * 60))' if on_a_cluster() else ':'} ); "
)

SOURCE, TARGET = config["languages"]["source"], config["languages"]["target"]
CORPORA = corpora(config)
BITEXT = [name for name, corpus in CORPORA.items() if corpus.role == "bitext"]
MONO = [name for name, corpus in CORPORA.items() if corpus.role == "mono"]
DEV = [name for name, corpus in CORPORA.items() if corpus.role == "dev"]
TEST = [name for name, corpus in CORPORA.items() if corpus.role == "test"]
SETS = ["dev", *TEST]
RUNS = range(1, config["tuning"]["runs"] + 1)
BASE_ENV = f"{workflow.basedir}/envs/base.yaml"
TORCH_ENV = f"{workflow.basedir}/envs/torch.yaml"

# Networks are computed on DEVICE. The machine that submits to a cluster cannot know of its GPUs, and what is not planned
# is not used. Without a cap all jobs that take a GPU would start at once: --resources gpu=N.
DEVICE = config["rnn"]["device"]
GPU = int(DEVICE == "cuda" or (DEVICE == "auto" and not on_a_cluster() and shutil.which("nvidia-smi") is not None))
DEVICE = DEVICE if GPU else "cpu"
workflow.global_resources.setdefault("gpu", 1)


wildcard_constraints:
    lang=f"{SOURCE}|{TARGET}",
    corpus="|".join(CORPORA),
    set="|".join(SETS),
    system="|".join(config["systems"]),
    run=r"\d+",
    aligner="|".join(config["alignment"]["aligners"]),
    kind="bitext|mono|raw|tokenized|truecased",


def version(chapter, stage):
    """The version of a stage's meaning: as a param of its rule it makes stale results run again."""
    return STAGES[chapter][stage].version


def switch(name, on):
    """A command-line switch, or nothing."""
    return f"--{name}" if on else ""
