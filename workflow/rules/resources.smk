# Memory (MB) and time (minutes) that the jobs ask a cluster for; on one machine nobody looks at them.
#
# Both grow with the size of the input in MB, compressed as it lies there; memory grows with every attempt too, because
# Slurm kills what takes more. The factors are those of Multi30k and mini-wmt (the last line of every log has `peak` and
# seconds) and half as much again. What grows with the vocabulary grows slower than the text, so large corpora get more
# than they need; --set-resources and the profile change it.


def megabytes(files):
    """The size of files; of one that is yet to be made: FileNotFoundError, which Snakemake takes for "not known yet"."""
    return sum(Path(file).stat().st_size for file in files) / 1e6


def memory(base, per_mb=0.0, grows=True):
    """mem_mb of a rule. grows=False: a further attempt goes on with a checkpoint, it did not lack memory."""
    return lambda wildcards, input, attempt: int((base + per_mb * megabytes(input)) * (attempt if grows else 1))


def minutes(base, per_mb=0.0):
    """runtime of a rule."""
    return lambda wildcards, input: int(base + per_mb * megabytes(input))
