# Memory (MB), time (minutes) and threads of the jobs. They ask a cluster for them. On one machine nobody looks at the time;
# the jobs share the memory, and since some stages take what they ask for as what they may use, none asks for more than
# leaves room for two such jobs.
#
# Memory and time grow with the size of the input in MB, compressed as it lies there, and with every attempt, because Slurm
# ends what takes more. Trainings and MERT ask for a day and go on from their checkpoint after it. The factors are those of
# Multi30k and mini-wmt (the last line of every log has `peak` and seconds) and half as much again. What grows with the
# vocabulary grows slower than the text, so large corpora get more than they need; --set-resources and the profile change it.
import os

# What the CSLM of a search holds at most while its store of n-grams grows, see rnnsmt.search.neural.
MOST_NEURAL_MEMORY = 4500
MACHINE_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6
MOST_MEMORY = int(0.4 * MACHINE_MEMORY)
if not on_a_cluster():
    workflow.global_resources.setdefault("mem_mb", int(0.85 * MACHINE_MEMORY))


def megabytes(files):
    """The size of files; of one that is yet to be made: FileNotFoundError, which Snakemake takes for "not known yet"."""
    return sum(Path(file).stat().st_size for file in files) / 1e6


def asked(base, per_mb, input):
    """What input files of this size need."""
    return base + per_mb * megabytes(input) if per_mb else base


def memory(base, per_mb=0.0):
    """mem_mb of a rule."""

    def mem_mb(wildcards, input, attempt):
        needed = int(asked(base, per_mb, input) * attempt)
        return needed if on_a_cluster() else min(needed, MOST_MEMORY)

    return mem_mb


def search_memory(wildcards, input, attempt):
    """mem_mb of MERT and decoding: the tables and the LM; with a CSLM its first layer and the n-grams it has scored."""
    sources = [input.source] if isinstance(input.source, str) else input.source
    neural = min(1000 + 20000 * megabytes(sources), MOST_NEURAL_MEMORY) if input.network else 0
    return memory(600 + neural, 18)(wildcards, input, attempt)


def minutes(base, per_mb=0.0, parts=lambda wildcards: 1):
    """runtime of a rule. parts: how many jobs share the work. A training has a number: its next attempt goes on."""
    return lambda wildcards, input, attempt: int(asked(base, per_mb / parts(wildcards), input) * attempt)


def cores():
    """The cores of this machine; 1 on a cluster, where the profile says how many threads a job gets."""
    return 1 if on_a_cluster() else workflow.cores


def beside_tuning(most):
    """Half of the cores, so that the tuning of other systems goes on beside; a job that wants them all waits for it."""
    return max(1, min(cores() // 2, most))


def tuning_threads():
    """A share of the cores for each run, so that all runs of a system go on together."""
    return max(1, cores() // len(RUNS))


def scoring_parts(wildcards):
    """How many jobs share the scoring of phrase pairs."""
    return int(wildcards.scatteritem.split("-of-")[1])


def scoring_threads(wildcards):
    """A share of the cores for each part."""
    return max(1, cores() // scoring_parts(wildcards))
