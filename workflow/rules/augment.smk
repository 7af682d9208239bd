# Features that are columns of the phrase table, and the moses.ini of every set of features.
FEATURE_NAMES = "[a-z]+(_[a-z]+)*"


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
        columns=lambda w: " ".join(f"--column {' '.join(COLUMNS[name]())}" for name in w.columns.split("_")),
    shell:
        "rnnsmt phrases augment --phrase-table {input.phrase_table:q} {params.columns} "
        "--output {output:q} --threads {threads} &> {log:q}"


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
        model=lambda w: ini_options(w.features.split("_")),
    shell:
        f"rnnsmt moses ini --model-dir results/model --reordering-table {REORDERING_TABLE} --lm lm.arpa.gz "
        "--lm-order {params.order} {params.limits} {params.model} --output {output:q} &> {log:q}"
