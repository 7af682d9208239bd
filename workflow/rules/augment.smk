# Features that are columns of the phrase table. Systems with the same columns share the table in results/augmented.
rule augment:
    input:
        phrase_table=f"results/model/{PHRASE_TABLE}",
        scores=lambda w: [path for name in w.columns.split("_") for path in COLUMNS[name]()],
    output:
        f"results/augmented/{{columns}}/{PHRASE_TABLE}",
    log:
        "results/logs/augment/{columns}.log",
    wildcard_constraints:
        columns="[a-z]+(_[a-z]+)*",
    conda:
        BASE_ENV
    threads: 2
    params:
        version=version("phrases", "augment"),
        columns=lambda w: " ".join(f"--column {' '.join(COLUMNS[name]())}" for name in w.columns.split("_")),
    shell:
        "rnnsmt phrases augment --phrase-table {input.phrase_table:q} {params.columns} "
        "--output {output:q} --threads {threads} &> {log:q}"


rule augmented_ini:
    input:
        f"results/augmented/{{columns}}/{PHRASE_TABLE}",
        f"results/model/{REORDERING_TABLE}",
        "results/model/lm.arpa.gz",
    output:
        "results/augmented/{columns}/moses.ini",
    log:
        "results/logs/augment/ini.{columns}.log",
    wildcard_constraints:
        columns="[a-z]+(_[a-z]+)*",
    conda:
        BASE_ENV
    params:
        version=version("moses", "ini"),
        limits=f"--distortion-limit {config['search']['distortion_limit']} --table-limit {config['search']['table_limit']}",
        order=config["lm"]["order"],
        features=lambda w: 4 + len(w.columns.split("_")),
    shell:
        f"rnnsmt moses ini --model-dir results/model --phrase-table ../augmented/{{wildcards.columns}}/{PHRASE_TABLE} "
        f"--reordering-table {REORDERING_TABLE} --lm lm.arpa.gz --lm-order {{params.order}} {{params.limits}} "
        "--num-features {params.features} --output {output:q} &> {log:q}"
