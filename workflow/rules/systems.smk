# What a system adds to the baseline, and which model directory it therefore uses.
COLUMNS = {"rnn": lambda: gather.rnn_score("results/rnn/scores/{scatteritem}.npy")}


def columns(system):
    """The columns that a system adds to the table, in the order of COLUMNS."""
    return [name for name in COLUMNS if name in config["systems"][system]["features"]]


def model_file(name):
    """Input function: a file of the model directory of a system, the baseline's where the system adds no column."""

    def path(wildcards):
        added = columns(wildcards.system)
        folder = f"augmented/{'_'.join(added)}" if added else "model"
        return f"results/{folder}/{name}"

    return path
