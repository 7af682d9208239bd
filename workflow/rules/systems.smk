# What a system adds to the baseline: columns of the phrase table, a neural language model in the search. Systems with
# the same columns share a table, systems with the same features the moses.ini that MERT starts from.
FEATURE_NAMES = "[a-z]+(_[a-z]+)*"
COLUMNS = {
    "rnn": lambda: gather.rnn_score("results/rnn/scores/{scatteritem}.npy"),
    "wp": lambda: ["results/rnn/shortlist.npy"],
}

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


def filtered_tables(system, name):
    """The part of a system's tables that a dev or test set can use."""
    folder = f"results/{table_folder(features(system))}/filtered/{name}"
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


rule augment:
    input:
        phrase_table=f"results/model/{PHRASE_TABLE}",
        scores=lambda w: [path for name in w.columns.split("_") for path in COLUMNS[name]()],
    output:
        f"results/augmented/{{columns}}/{PHRASE_TABLE}",
    log:
        "results/logs/augment/{columns}.log",
    wildcard_constraints:
        columns=FEATURE_NAMES,
    conda:
        BASE_ENV
    threads: beside_tuning(2)
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10, 0.02),
    params:
        version=version("phrases", "augment"),
        columns=column_options,
    shell:
        "rnnsmt phrases augment --phrase-table {input.phrase_table:q} {params.columns} "
        "--output {output:q} --threads {threads} &> {log:q}"


rule moses_ini:
    input:
        f"results/model/{PHRASE_TABLE}",
        f"results/model/{REORDERING_TABLE}",
        "results/model/lm.arpa.gz",
    output:
        "results/model/moses.ini",
    log:
        "results/logs/moses/ini.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(500),
        runtime=minutes(10),
    params:
        version=version("moses", "ini"),
        limits=f"--distortion-limit {config['search']['distortion_limit']} --table-limit {config['search']['table_limit']}",
        order=config["lm"]["order"],
        folder=subpath(input[1], parent=True),
    shell:
        f"rnnsmt moses ini --model-dir {{params.folder:q}} --phrase-table {PHRASE_TABLE} "
        f"--reordering-table {REORDERING_TABLE} --lm lm.arpa.gz --lm-order {{params.order}} {{params.limits}} "
        "--output {output:q} &> {log:q}"


rule augmented_ini:
    input:
        lambda w: f"results/{table_folder(w.features.split('_'))}/{PHRASE_TABLE}",
        f"results/model/{REORDERING_TABLE}",
        "results/model/lm.arpa.gz",
        lambda w: [CSLM_MODEL] if "cslm" in w.features.split("_") else [],
    output:
        "results/augmented/{features}/moses.ini",
    log:
        "results/logs/augment/ini.{features}.log",
    wildcard_constraints:
        features=FEATURE_NAMES,
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(500),
        runtime=minutes(10),
    params:
        version=version("moses", "ini"),
        limits=f"--distortion-limit {config['search']['distortion_limit']} --table-limit {config['search']['table_limit']}",
        order=config["lm"]["order"],
        folder=subpath(input[1], parent=True),
        model=lambda w: ini_options(w.features.split("_")),
    shell:
        f"rnnsmt moses ini --model-dir {{params.folder:q}} --reordering-table {REORDERING_TABLE} --lm lm.arpa.gz "
        "--lm-order {params.order} {params.limits} {params.model} --output {output:q} &> {log:q}"


# What a dev or test set can use of the tables, once for all systems that share them: loads in a moment, and everybody
# can look at it.
rule filter_tables:
    input:
        text=lambda w: set_text("usual", w.set, SOURCE),
        phrase_table=f"results/{{folder}}/{PHRASE_TABLE}",
        reordering_table=f"results/model/{REORDERING_TABLE}",
    output:
        f"results/{{folder}}/filtered/{{set}}/{PHRASE_TABLE}",
        f"results/{{folder}}/filtered/{{set}}/{REORDERING_TABLE}",
    log:
        "results/logs/filter/{folder}.{set}.log",
    wildcard_constraints:
        folder=f"model|augmented/{FEATURE_NAMES}",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10, 0.02),
    params:
        version=version("phrases", "filter"),
        max_length=config["phrases"]["max_length"],
        folder=subpath(output[0], parent=True),
    shell:
        "rnnsmt phrases filter --input {input.text:q} --phrase-table {input.phrase_table:q} "
        "--reordering-table {input.reordering_table:q} --max-length {params.max_length} "
        "--output-dir {params.folder:q} &> {log:q}"
