# The Moses model of every set of features: additional columns of the phrase table, moses.ini, and the tables filtered
# for the dev and test sets.
FEATURE_NAMES = "[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*"
TABLE = rf"model|augmented/{FEATURE_NAMES}/network\d+"


rule augment:
    input:
        phrase_table=f"results/model/{PHRASE_TABLE}",
        scores=lambda w: column_files(f"augmented/{w.columns}/network{w.network}"),
    output:
        f"results/augmented/{{columns}}/network{{network}}/{PHRASE_TABLE}",
    log:
        "results/logs/augment/{columns}.{network}.log",
    wildcard_constraints:
        columns=FEATURE_NAMES,
    threads: STAGE_THREADS
    resources:
        mem_mb=megabytes(350),
        runtime=minutes(10, 0.02),
    params:
        version=version("phrases", "augment"),
        columns=lambda w, input: table_column_options(f"augmented/{w.columns}/network{w.network}", input.scores),
    shell:
        "rnnsmt phrases augment --phrase-table {input.phrase_table:q} {params.columns} "
        "--output {output:q} --threads {threads} &> {log:q}"


# An ini is made from the configuration alone: it names files, so that changed tables are no reason to write it again.
LIMITS = f"--distortion-limit {settings.search.distortion_limit} --table-limit {settings.search.table_limit}"


rule moses_ini:
    output:
        "results/model/moses.ini",
    log:
        "results/logs/moses/ini.log",
    localrule: True
    resources:
        mem_mb=megabytes(100),
        runtime=minutes(10),
    params:
        version=version("moses", "write-ini"),
        limits=LIMITS,
        order=settings.lm.order,
        directory=subpath(output[0], parent=True),
    shell:
        f"rnnsmt moses write-ini --model-dir {{params.directory:q}} --phrase-table {PHRASE_TABLE} "
        f"--reordering-table {REORDERING_TABLE} --lm {paths.LM} --lm-order {{params.order}} {{params.limits}} "
        "--output {output:q} &> {log:q}"


rule augmented_ini:
    output:
        "results/augmented/{features}/network{network}/moses.ini",
    log:
        "results/logs/augment/ini.{features}.{network}.log",
    wildcard_constraints:
        features=FEATURE_NAMES,
    localrule: True
    resources:
        mem_mb=megabytes(100),
        runtime=minutes(10),
    params:
        version=version("moses", "write-ini"),
        limits=LIMITS,
        order=settings.lm.order,
        model=lambda w: systems.ini_options(w.features.split("_"), w.network),
        directory=lambda w, output: Path(output[0]).parents[3] / "model",
    shell:
        f"rnnsmt moses write-ini --model-dir {{params.directory:q}} --lm {paths.LM} "
        "--lm-order {params.order} {params.limits} {params.model} --output {output:q} &> {log:q}"


# The table of the search, with the phrase pairs of the dev set or of all sets: adding a test set does not cause tuning again.
rule select_pairs:
    input:
        text=lambda w: texts.part_texts(w.part),
        pairs=PAIRS,
        scores=paths.TABLE_SCORES,
        reordering=paths.REORDERING_SCORES,
        columns=lambda w: column_files(w.table),
    output:
        f"results/{{table}}/selected/{{part}}/{paths.TABLE_BINARY}",
    log:
        "results/logs/select/{table}.{part}.log",
    wildcard_constraints:
        table=TABLE,
        part="dev|all",
    resources:
        mem_mb=megabytes(400, 1, most=16000),
        runtime=minutes(10, 0.02),
    params:
        version=version("phrases", "select"),
        columns=lambda w, input: table_column_options(w.table, input.columns),
    shell:
        "rnnsmt phrases select --input {input.text:q} --pairs {input.pairs:q} --scores {input.scores:q} "
        "--reordering {input.reordering:q} {params.columns} --output {output:q} &> {log:q}"


# The same in Moses format, for Moses' decoder.
rule filter_tables:
    input:
        text=lambda w: texts.part_texts(w.part),
        phrase_table=f"results/{{table}}/{PHRASE_TABLE}",
        reordering_table=f"results/model/{REORDERING_TABLE}",
    output:
        f"results/{{table}}/selected/{{part}}/{PHRASE_TABLE}",
        f"results/{{table}}/selected/{{part}}/{REORDERING_TABLE}",
    log:
        "results/logs/filter/{table}.{part}.log",
    wildcard_constraints:
        table=TABLE,
        part="dev|all",
    resources:
        mem_mb=megabytes(400),
        runtime=minutes(10, 0.02),
    params:
        version=version("phrases", "filter"),
        max_length=settings.phrases.max_length,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt phrases filter --input {input.text:q} --phrase-table {input.phrase_table:q} "
        "--reordering-table {input.reordering_table:q} --max-length {params.max_length} "
        "--output-dir {params.directory:q} &> {log:q}"


# The Moses models of all systems before tuning: tables, also filtered for the dev set and all sets, and ini files.
MOSES_MODELS = [
    path
    for name in systems.compared
    for path in [*systems.model_files(name), *systems.table_files(name, "dev"), *systems.table_files(name, "all")]
]


rule moses_models:
    input:
        MOSES_MODELS,
    localrule: True
