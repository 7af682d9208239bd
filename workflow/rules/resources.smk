# Memory (MB), time (minutes) and threads of the jobs. They ask a cluster for them. On one machine nobody looks at the time,
# and the jobs share the memory (profiles/default); since some stages take what they ask for as what they may use, none asks
# for more than leaves room for two such jobs.
#
# Memory and time grow with the size of the input in MB, compressed as it lies there, and with every attempt, because Slurm
# ends what takes more. Trainings and MERT ask for a day and go on from their checkpoint after it. The factors are those of
# Multi30k and mini-wmt (`rnnsmt usage`), at most twice what was taken. What grows with the vocabulary grows slower
# than the text, so large corpora get more than they need; --set-resources and the profile change it.
import os

from rnnsmt.search.memory import MOST_NEURAL_MEGABYTES
from rnnsmt.monitoring.estimate import BUDGET_MB as BUDGET
from rnnsmt.monitoring.estimate import lines as estimate

if workflow.is_main_process:
    for line in estimate(config):
        logger.info(line)

MOST_MEMORY = int(0.4 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6)

# Networks are computed on DEVICE: a resource, so that another device is no reason to compute everything again. The machine
# that submits to a cluster cannot know of its GPUs, and what is not planned is not used.
DEVICE = config["rnn"]["device"]
GPU = int(DEVICE == "cuda" or (DEVICE == "auto" and not CLUSTER and shutil.which("nvidia-smi") is not None))
DEVICE = DEVICE if GPU else "cpu"

# Minutes of a training, or of the MERT runs of a system, which stop before they are over, save, and go on with the next
# attempt: a day on a cluster; on one machine ten years, so that it takes as long as it takes.
LONG = 1440 if CLUSTER else 10 * 365 * 1440


# Threads of the stages from text to tables: they read two sides, or hand their work to two processes. Of the embedded
# corpus they take a second or two each, and more is gained by two of them side by side.
STAGE_THREADS = 1 if is_embedded(config) else 2


def asked(base, per_mb, input):
    """What input files of this size need."""
    return base + per_mb * input.size_mb if per_mb else base


# What Snakemake takes beside the stage in a job of a cluster.
SNAKEMAKE_MEMORY = 300 if CLUSTER else 0


def memory(base, per_mb=0.0, most=float("inf")):
    """mem_mb of a rule."""

    def mem_mb(wildcards, input, attempt):
        needed = int(min(asked(base, per_mb, input), most) * attempt) + SNAKEMAKE_MEMORY
        return needed if CLUSTER else min(needed, MOST_MEMORY)

    return mem_mb


def search_memory(wildcards, input, attempt):
    """mem_mb of MERT and decoding: the tables and the LM; with a CSLM its first layer and the n-grams it has scored."""
    sources = {input.source} if isinstance(input.source, str) else set(input.source)
    size = sum(mb for path, mb in zip(input, input.size_files_mb) if path in sources)
    neural = min(300 + 37000 * size, MOST_NEURAL_MEGABYTES) if input.network else 0
    return memory(450 + neural, 18)(wildcards, input, attempt)


def of_preset(chapter, demo, small, paper):
    """mem_mb of what a network's preset decides, not the size of its text."""
    return memory({"demo": demo, "small": small, "paper": paper}[config[chapter]["preset"]])


def minutes(base, per_mb=0.0, parts=lambda wildcards: 1):
    """runtime of a rule. parts: how many jobs share the work. A training has a number: its next attempt goes on."""
    return lambda wildcards, input, attempt: int(asked(base, per_mb / parts(wildcards), input) * attempt)


def cores():
    """The cores of this machine; 1 on a cluster, where the profile says how many threads a job gets."""
    try:
        return 1 if CLUSTER else workflow.cores
    except WorkflowError:  # nobody said how many, as when nothing is to be executed
        return 1


def beside_tuning(most):
    """Half of the cores, so that the tuning of other systems goes on beside; a job that wants them all waits for it."""
    return max(1, min(cores() // 2, most))


def search_threads(wildcards):
    """A share of the cores for each system, so that all are tuned together; those with a CSLM share the GPU."""
    return max(1, cores() // len(config["compare"]))


def parts_of(wildcards):
    """How many jobs share the work of this one."""
    return int(wildcards.scatteritem.split("-of-")[1])


def part_threads(wildcards):
    """A share of the cores for each part."""
    return max(1, cores() // parts_of(wildcards))
