# What a system adds to the baseline: columns of the phrase table, a neural language model in the search. Systems with
# the same columns share a table, systems with the same features the moses.ini that MERT starts from.
FEATURE_NAMES = "[a-z]+(_[a-z]+)*"
COLUMNS = {
    "rnn": lambda: gather.rnn_score("results/rnn/scores/{scatteritem}.npy"),
    "wp": lambda: ["results/rnn/shortlist.npy"],
}

# The folder of a tuned system.
RUN = "results/systems/{system}/run{run}"

# Weights before tuning: Moses' for a phrase score; neither reward nor penalty for words outside the shortlist.
START = {"rnn": 0.2, "wp": 0}


def features(system):
    """What a system adds, in the order that names folders: cslm, then the columns."""
    return [name for name in ("cslm", *COLUMNS) if name in config["systems"][system]["features"]]


NETWORKS = [name for name in ("rnn", "cslm") if any(name in features(system) for system in config["compare"])]


def columns(added):
    """Those of the features that are columns of the phrase table."""
    return [name for name in added if name in COLUMNS]


def table_folder(added):
    """The folder of the phrase table with these features, under results."""
    return f"augmented/{'_'.join(columns(added))}" if columns(added) else "model"


def filtered_tables(system, part):
    """The part of a system's tables that the dev set (dev) or all sets (all) can use."""
    folder = f"results/{table_folder(features(system))}/filtered/{part}"
    return [f"{folder}/{table}" for table in (PHRASE_TABLE, REORDERING_TABLE)]


def untuned_ini(wildcards):
    """Input function: the moses.ini of a system before tuning."""
    added = features(wildcards.system)
    return f"results/augmented/{'_'.join(added)}/moses.ini" if added else "results/model/moses.ini"


def neural_model(wildcards):
    """Input function: the network that the search asks, for systems that have one."""
    return [CSLM_MODEL] if "cslm" in features(wildcards.system) else []


def search_limits(wildcards):
    """How far the decoder looks; what concerns the CSLM for systems that have one."""
    search = config["search"]
    limits = f"--pop-limit {search['pop_limit']} --stack {search['stack']}"
    if not neural_model(wildcards):
        return limits
    return f"{limits} --cslm-cells {search['cslm_cells']} --cslm-precision {search['cslm_precision']}"


def search_env(wildcards):
    """The environment of the decoder: with PyTorch where it asks a network."""
    return TORCH_ENV if neural_model(wildcards) else BASE_ENV


def search_gpu(wildcards):
    """Whether the decoder takes the GPU."""
    return GPU if neural_model(wildcards) else 0


def column_options(wildcards, input):
    """The options of `phrases augment`: one column for every feature, whose scores may come in several files."""
    scores = iter(input.scores)
    return " ".join(
        f"--column {' '.join(shlex.quote(next(scores)) for _ in COLUMNS[name]())}"
        for name in wildcards.columns.split("_")
    )


def ini_options(added):
    """The options of `moses ini` that say what a set of features adds to the baseline; paths from results/model."""
    options = [f"--phrase-table ../{table_folder(added)}/{PHRASE_TABLE} --num-features {4 + len(columns(added))}"]
    if columns(added):
        options.append(f"--further-weights {' '.join(str(START[name]) for name in columns(added))}")
    if "cslm" in added:
        options.append(f"--cslm ../{CSLM_MODEL.removeprefix('results/')}")
    return " ".join(options)


def of_every_run(kind):
    """A file of every set, of every run of a system: of the first run first."""
    return expand(f"{RUN}/{{set}}.{kind}", run=RUNS, set=SETS, allow_missing=True)
