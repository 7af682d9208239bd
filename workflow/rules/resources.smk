# Memory (MB), time (minutes) and threads of the jobs. They ask a cluster for them; on one machine nobody looks at the time,
# and some stages take the memory for what they may use, so it is never more than leaves room for two such jobs.
#
# Memory and time grow with the size of the input in MB, compressed as it lies there, and with every attempt, because Slurm
# ends what takes more. The factors are those of Multi30k and mini-wmt (the last line of every log has `peak` and seconds)
# and half as much again. What grows with the vocabulary grows slower than the text, so large corpora get more than they
# need; --set-resources and the profile change it.
import os

# What the CSLM of a search holds at most while its store of n-grams grows, see rnnsmt.search.neural.
MOST_NEURAL_MEMORY = 6500
MOST_MEMORY = int(0.4 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6)


def megabytes(files):
    """The size of files; of one that is yet to be made: FileNotFoundError, which Snakemake takes for "not known yet"."""
    return sum(Path(file).stat().st_size for file in files) / 1e6


def asked(base, per_mb, input):
    """What input files of this size need."""
    return base + per_mb * megabytes(input) if per_mb else base


def memory(base, per_mb=0.0, grows=True):
    """mem_mb of a rule. grows=False: a further attempt goes on with a checkpoint, it did not lack memory."""

    def mem_mb(wildcards, input, attempt):
        needed = int(asked(base, per_mb, input) * (attempt if grows else 1))
        return needed if on_a_cluster() else min(needed, MOST_MEMORY)

    return mem_mb


def search_memory(grows):
    """mem_mb of MERT and decoding: the tables and the LM; with a CSLM its first layer and the n-grams it has scored."""

    def mem_mb(wildcards, input, attempt):
        neural = min(1000 + 20000 * megabytes([input.source]), MOST_NEURAL_MEMORY) if input.network else 0
        return memory(2000 + neural, 12, grows)(wildcards, input, attempt)

    return mem_mb


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
