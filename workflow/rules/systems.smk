# What a system adds to the baseline: columns of the phrase table, a neural language model in the search. Systems with
# the same columns share a table, systems with the same features the moses.ini that MERT starts from; one of each for
# every training of the networks.
from rnnsmt.base.io import InputError
from rnnsmt.networks.options import preset_with
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS
from rnnsmt.seq2seq.settings import PRESETS as SEQ2SEQ_PRESETS
from rnnsmt.plan.systems import has_network

FEATURE_NAMES = "[a-z]+(_[a-z]+)*"
SCORERS = ["rnn", *config["scorers"]]
COLUMN_NAMES = [*SCORERS, "wp", "proposals"]

# The folder of a tuned system.
RUN = "results/systems/{system}/run{run}"

# Weights before tuning: Moses' for a phrase score; neither reward nor penalty for words outside the shortlist and for
# proposed pairs.
START = dict.fromkeys(SCORERS, 0.2) | {"wp": 0, "proposals": 0}


def column(name, network):
    """The files with the numbers of a column."""
    if name == "wp":
        return ["results/rnn/shortlist.npy"]
    return gather.rnn_score(f"results/{name}/network{network}/scores/{{scatteritem}}.npy")


def features(system):
    """What a system, or the one that its LSTMs rescore, adds to the baseline, in the order that names folders: cslm, then
    the columns."""
    return [name for name in ("cslm", *COLUMN_NAMES) if name in features_of(config, system)]


# The systems that have a table and a search, and those of LSTMs: alone, and with the n-best lists of one of the first.
PHRASE_BASED = [name for name, about in config["systems"].items() if "features" in about]
RESCORED = [name for name, about in config["systems"].items() if "rescores" in about]
LSTMS_ALONE = [name for name in config["systems"] if name not in (*PHRASE_BASED, *RESCORED)]
COMPARED = [name for name in config["compare"] if name in PHRASE_BASED]


def any_of(systems):
    """The regular expression of these systems' names, which matches nothing where there are none."""
    return "|".join(map(re.escape, systems)) or "(?!)"


NETWORKS = [name for name in (*SCORERS, "cslm") if any(name in features(system) for system in config["compare"])]


# What the networks of a scorer's training leave out, as their files are named: "" where there is one, which does not.
LEAVE_OUT = config["rnn"]["leave_out"]
LEFT_OUT = [f".without-{k}-of-{LEAVE_OUT}" for k in range(1, LEAVE_OUT + 1)] or [""]


def of_every_training(pattern, names=NETWORKS):
    """The pattern with name, n and left_out of every network of these scorers and the CSLM, training by training."""
    return [
        path
        for name in names
        for path in expand(pattern, name=name, n=TRAININGS, left_out=LEFT_OUT if name in SCORERS else [""])
    ]


def columns(added):
    """Those of the features that are columns of the phrase table."""
    return [name for name in added if name in COLUMN_NAMES]


def trainings(system):
    """The numbers of the networks of a system's runs, in their order; 1 for systems without networks."""
    return [network_of(run) if has_network(features(system)) else 1 for run in RUNS]


def of_every_network(system, path):
    """A path for every run of a system, by the number of its network; one path where it is the same for all."""
    paths = [path(network) for network in trainings(system)]
    return paths if len(set(paths)) > 1 else paths[:1]


def table_folder(added, network):
    """The folder of the phrase table with these features, under results."""
    return (
        f"augmented/{'_'.join(columns(added))}/network{network if set(SCORERS) & set(added) else 1}"
        if columns(added)
        else "model"
    )


def moses_tables(added, network):
    """Phrase table and reordering table of a moses.ini, under results; proposals are made for given texts only."""
    folder = table_folder(added, network)
    if "proposals" in added:
        return f"{folder}/filtered/all/{PHRASE_TABLE}", f"{folder}/filtered/all/{REORDERING_TABLE}"
    return f"{folder}/{PHRASE_TABLE}", f"model/{REORDERING_TABLE}"


def nested_systems(system):
    """The systems of the table that have some of a system's features and no others: the largest of them."""
    own = set(features(system))
    smaller = [name for name in COMPARED if set(features(name)) < own]
    return [name for name in smaller if not any(set(features(name)) < set(features(other)) for other in smaller)]


def start_systems(system):
    """The nested systems whose tuned weights `tuning mert` also tries for a system; none without tuning.nested."""
    return nested_systems(system) if config["tuning"]["nested"] else []


def nested_options(system, inis):
    """The options of `tuning mert` for the tuned inis of the nested systems, run by run, whose tables lack some columns."""
    own = columns(features(system))
    options = []
    for name, paths in zip(start_systems(system), (inis[i : i + len(RUNS)] for i in range(0, len(inis), len(RUNS)))):
        places = [0, 1, 2, 3, *(4 + own.index(column) for column in columns(features(name)))]
        files = " ".join(shlex.quote(path) for path in paths)
        options.append(f"--nested-ini {files} --nested-columns {' '.join(map(str, places))}")
    return " ".join(options)


def table_folders(wildcards, input):
    """The folders of a system's filtered tables for `tuning mert` and `search decode`: one, or one for every run."""
    folders = [str(Path(table).parent) for table in input.tables[::2]]
    numbers = list(dict.fromkeys(trainings(wildcards.system)))
    return [folders[numbers.index(n)] for n in trainings(wildcards.system)] if len(folders) > 1 else folders


def filtered_tables(system, part):
    """The part of a system's tables that the dev set (dev) or all sets (all) can use: of every network."""
    folders = dict.fromkeys(table_folder(features(system), network) for network in trainings(system))
    return [
        f"results/{folder}/filtered/{part}/{table}" for folder in folders for table in (PHRASE_TABLE, REORDERING_TABLE)
    ]


def untuned_ini(wildcards):
    """Input function: the moses.ini of a system before tuning."""
    added = features(wildcards.system)
    folder = f"augmented/{'_'.join(added)}" if added else None
    return of_every_network(
        wildcards.system, lambda n: f"results/{folder}/network{n}/moses.ini" if folder else "results/model/moses.ini"
    )


def neural_model(wildcards):
    """Input function: the networks that the search asks, for systems that have one."""
    has_cslm = "cslm" in features(wildcards.system)
    return [CSLM_MODEL.format(network=n) for n in dict.fromkeys(trainings(wildcards.system))] if has_cslm else []


def rnn_models(wildcards):
    """Input function: the RNN Encoder-Decoder of every run of a system that has it, or the one of all runs."""
    if "rnn" not in features(wildcards.system) or LEAVE_OUT:
        return []
    return of_every_network(wildcards.system, lambda n: f"results/rnn/network{n}/model.pt")


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
    """Whether the decoder takes a GPU for itself: on a cluster, which gives GPUs as a whole."""
    return GPU if CLUSTER and neural_model(wildcards) else 0


def search_gpu_share(wildcards):
    """Whether the decoder works on a GPU beside other jobs of this machine: it leaves it idle for most of the time."""
    return GPU if not CLUSTER and neural_model(wildcards) else 0


def column_options(wildcards, input):
    """The options of `phrases augment`: one column for every feature, whose scores may come in several files."""
    scores = iter(input.scores)
    return " ".join(
        f"--column {' '.join(shlex.quote(next(scores)) for _ in column(name, wildcards.network))}"
        for name in wildcards.columns.split("_")
    )


def ini_options(added, network):
    """The options of `moses ini` that say what a set of features adds to the baseline; paths from results/model."""
    table, reordering = (
        path.removeprefix("model/") if path.startswith("model/") else f"../{path}"
        for path in moses_tables(added, network)
    )
    options = [f"--phrase-table {table} --reordering-table {reordering} --num-features {4 + len(columns(added))}"]
    if columns(added):
        options.append(f"--further-weights {' '.join(str(START[name]) for name in columns(added))}")
    if "cslm" in added:
        model = CSLM_MODEL.format(network=network).removeprefix("results/")
        options.append(f"--cslm ../{model} --cslm-unknown {config['cslm']['unknown']}")
    return " ".join(options)


def of_every_run(kind):
    """A file of every set, of every run of a system: of the first run first."""
    return expand(f"{RUN}/{{set}}.{kind}", run=RUNS, set=SETS, allow_missing=True)


def settings_of(scorer):
    """What the training of a scorer is told beside the preset."""
    return config["rnn"]["settings"] | config["scorers"].get(scorer, {})


def scorer_settings(wildcards):
    """The same as options."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in settings_of(wildcards.scorer).items())


def models_of(lstm, ensemble, run):
    """The files of the networks that a run takes, as many as the ensemble has."""
    number = int(ensemble)
    first = (network_of(run) - 1) * number + 1
    return [f"results/{lstm}/network{n}/model.pt" for n in range(first, first + number)]


def lstm_models(system, run):
    """The files of the networks of a run of a system with LSTMs."""
    about = config["systems"][system]
    return models_of(about["network"], about.get("ensemble", 1), run)


def lstms_of(system):
    """The name of the networks of a system with LSTMs, and how many they are, as lists are called."""
    about = config["systems"][system]
    return f"{about['network']}.{about.get('ensemble', 1)}"


def rescored_by(system):
    """The system whose lists the LSTMs of a system score."""
    return config["systems"][system]["rescores"]


TUNED_ON_LISTS = [name for name in RESCORED if config["systems"][name].get("weight") == "tuned"]


def added_by_lstms(system):
    """What the LSTMs of a system are called where it rescores another one."""
    return [system.partition("+")[2]] if system in RESCORED else []


def lstm_settings(name):
    """What the training of a network is told beside the preset."""
    return config["seq2seq"]["settings"] | config["seq2seq"]["networks"][name]


# The networks of the systems that are compared: their files, as the provenance names them.
LSTM_MODELS = list(
    dict.fromkeys(
        path
        for name in config["compare"]
        if name not in PHRASE_BASED
        for run in RUNS
        for path in lstm_models(name, run)
    )
)
LSTM_HISTORIES = [str(Path(path).with_name("history.json")) for path in LSTM_MODELS]
LSTM_NAMES = ["".join(Path(path).parts[1:3]).replace("network", "") for path in LSTM_MODELS]
LSTMS = list(dict.fromkeys(Path(path).parts[1] for path in LSTM_MODELS))


def table_features(systems):
    """What a table is told that its systems add to the baseline; of LSTMs alone nothing."""
    return " ".join(
        f"{name}={'+'.join([*features(name), *added_by_lstms(name)])}" for name in systems if name not in LSTMS_ALONE
    )


# Settings that do not go together are told now, not when the network is to be trained.
for lstm in config["seq2seq"]["networks"]:
    try:
        preset_with(SEQ2SEQ_PRESETS[config["seq2seq"]["preset"]], lstm_settings(lstm))
    except InputError as error:
        raise WorkflowError(f"The configuration has mistakes:\n  seq2seq.networks.{lstm}: {error}")
for scorer in ["rnn", *config["scorers"]]:
    try:
        told = preset_with(RNN_PRESETS[config["rnn"]["preset"]], settings_of(scorer))
    except InputError as error:
        raise WorkflowError(f"The configuration has mistakes:\n  {scorer}: {error}")
    longest = config["phrases"]["max_length"]
    if scorer in NETWORKS and told.variant == "feed-forward" and told.max_length < longest:
        raise WorkflowError(
            f"The configuration has mistakes:\n  {scorer}: takes phrases of {told.max_length} words, "
            f"phrases.max_length is {longest}; give it max_length: {longest}"
        )
