# The Moses model of every set of features: additional columns of the phrase table, moses.ini, and the tables filtered
# for the dev and test sets.
FEATURE_NAMES = "[a-z][a-z0-9]*(_[a-z][a-z0-9]*)*"


rule augment:
    input:
        phrase_table=f"results/model/{PHRASE_TABLE}",
        scores=lambda w: [path for name in w.columns.split("_") for path in score_files(name, w.network)],
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
        columns=lambda w, input: column_options(
            [len(score_files(name, w.network)) for name in w.columns.split("_")], input.scores
        ),
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


# The tables filtered for the dev set, and for all sets, which load quickly. The dev set has tables of its own, so
# that another test set does not cause tuning again.
rule filter_tables:
    input:
        text=lambda w: texts.part_texts(w.part),
        phrase_table=f"results/model/{PHRASE_TABLE}",
        reordering_table=f"results/model/{REORDERING_TABLE}",
    output:
        f"results/model/filtered/{{part}}/{PHRASE_TABLE}",
        f"results/model/filtered/{{part}}/{REORDERING_TABLE}",
        lines="results/model/filtered/{part}/lines.npy",
    log:
        "results/logs/filter/{part}.log",
    wildcard_constraints:
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
        "--output-dir {params.directory:q} --output-lines {output.lines:q} &> {log:q}"


# The filtered table with additional columns. Adding columns to the filtered table is faster than filtering the
# augmented table. The reordering table is a copy.
rule augment_filtered:
    input:
        phrase_table=f"results/model/filtered/{{part}}/{PHRASE_TABLE}",
        reordering_table=f"results/model/filtered/{{part}}/{REORDERING_TABLE}",
        lines="results/model/filtered/{part}/lines.npy",
        scores=lambda w: [path for name in w.columns.split("_") for path in score_files(name, w.network)],
    output:
        phrase_table=f"results/augmented/{{columns}}/network{{network}}/filtered/{{part}}/{PHRASE_TABLE}",
        reordering_table=f"results/augmented/{{columns}}/network{{network}}/filtered/{{part}}/{REORDERING_TABLE}",
    log:
        "results/logs/augment/{columns}.{network}.{part}.log",
    wildcard_constraints:
        columns=FEATURE_NAMES,
        part="dev|all",
    resources:
        mem_mb=megabytes(350, 0.1),
        runtime=minutes(10),
    params:
        version=version("phrases", "augment"),
        columns=lambda w, input: column_options(
            [len(score_files(name, w.network)) for name in w.columns.split("_")], input.scores
        ),
    shell:
        "rnnsmt phrases augment --phrase-table {input.phrase_table:q} --kept-lines {input.lines:q} {params.columns} "
        "--output {output.phrase_table:q} &> {log:q} "
        "&& cp {input.reordering_table:q} {output.reordering_table:q}"


# The Moses models of all systems before tuning: tables, also filtered for the dev set and all sets, and ini files.
MOSES_MODELS = [
    path
    for name in systems.compared
    for path in [
        *systems.model_files(name),
        *systems.filtered_tables(name, "dev"),
        *systems.filtered_tables(name, "all"),
    ]
] + expand(
    f"results/model/filtered/{{part}}/{{file}}",
    part=["dev", "all"] if systems.compared else [],
    file=[PHRASE_TABLE, REORDERING_TABLE, "lines.npy"],
)


rule moses_models:
    input:
        MOSES_MODELS,
    localrule: True
