# The phrase-based baseline, a Moses model directory in results/model: alignment, phrase table, reordering table, LM.
# Phrases are extracted from the links of every aligner, and counted together.
ALIGNED = (
    ["results/align/external/aligned.gz"]
    if config["alignment"]["external"]
    else [
        f"results/align/{aligner}/aligned.{config['alignment']['symmetrization']}.gz"
        for aligner in config["alignment"]["aligners"]
    ]
)
PHRASE_TABLE = "phrase-table.gz"
REORDERING_TABLE = "reordering-table.wbe-msd-bidirectional-fe.gz"


rule align_words:
    input:
        source=training_text(SOURCE),
        target=training_text(TARGET),
    output:
        forward="results/align/{aligner}/forward.gz",
        backward="results/align/{aligner}/reverse.gz",
    log:
        "results/logs/align/words.{aligner}.log",
    conda:
        BASE_ENV
    threads: 2
    resources:
        mem_mb=memory(1000, 40),
        runtime=minutes(30, 0.5),
    params:
        version=version("align", "words"),
    shell:
        "rnnsmt align words --source {input.source:q} --target {input.target:q} --aligner {wildcards.aligner} "
        "--output-forward {output.forward:q} --output-reverse {output.backward:q} --threads {threads} &> {log:q}"


rule symmetrize:
    input:
        forward="results/align/{aligner}/forward.gz",
        backward="results/align/{aligner}/reverse.gz",
    output:
        "results/align/{aligner}/aligned.{heuristic}.gz",
    log:
        "results/logs/align/symmetrize.{aligner}.{heuristic}.log",
    wildcard_constraints:
        heuristic="grow-diag-final-and|grow-diag-final|grow-diag|intersection|union",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000, 20),
        runtime=minutes(15, 0.05),
    params:
        version=version("align", "symmetrize"),
    shell:
        "rnnsmt align symmetrize --forward {input.forward:q} --reverse {input.backward:q} "
        "--heuristic {wildcards.heuristic} --output {output:q} &> {log:q}"


rule check_alignment:
    input:
        source=training_text(SOURCE),
        target=training_text(TARGET),
        alignment=config["alignment"]["external"] or [],
    output:
        "results/align/external/aligned.gz",
    log:
        "results/logs/align/check.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000, 20),
        runtime=minutes(15, 0.05),
    params:
        version=version("align", "check"),
    shell:
        "rnnsmt align check --source {input.source:q} --target {input.target:q} "
        "--alignment {input.alignment:q} --output {output:q} &> {log:q}"


rule lexical:
    input:
        source=[training_text(SOURCE)] * len(ALIGNED),
        target=[training_text(TARGET)] * len(ALIGNED),
        alignment=ALIGNED,
    output:
        e2f="results/model/lex.e2f",
        f2e="results/model/lex.f2e",
    log:
        "results/logs/phrases/lexical.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000, 15),
        runtime=minutes(15, 0.05),
    params:
        version=version("phrases", "lexical"),
    shell:
        "rnnsmt phrases lexical --source {input.source:q} --target {input.target:q} --alignment {input.alignment:q} "
        "--output-e2f {output.e2f:q} --output-f2e {output.f2e:q} &> {log:q}"


rule extract:
    input:
        source=[training_text(SOURCE)] * len(ALIGNED),
        target=[training_text(TARGET)] * len(ALIGNED),
        alignment=ALIGNED,
    output:
        "results/phrases/extract.parquet",
    log:
        "results/logs/phrases/extract.log",
    conda:
        BASE_ENV
    threads: 2
    resources:
        mem_mb=memory(3000, 10),
        runtime=minutes(30, 0.1),
    params:
        version=version("phrases", "extract"),
        max_length=config["phrases"]["max_length"],
    shell:
        "rnnsmt phrases extract --source {input.source:q} --target {input.target:q} --alignment {input.alignment:q} "
        "--max-length {params.max_length} --output {output:q} --threads {threads} "
        "--memory-mb {resources.mem_mb} &> {log:q}"


rule phrase_table:
    input:
        extract="results/phrases/extract.parquet",
        e2f="results/model/lex.e2f",
        f2e="results/model/lex.f2e",
    output:
        f"results/model/{PHRASE_TABLE}",
    log:
        "results/logs/phrases/score.log",
    conda:
        BASE_ENV
    threads: 2
    resources:
        mem_mb=memory(3000, 2),
        runtime=minutes(30, 0.05),
    params:
        version=version("phrases", "score"),
        smoothing=config["phrases"]["smoothing"],
    shell:
        "rnnsmt phrases score --extract {input.extract:q} --lex-e2f {input.e2f:q} --lex-f2e {input.f2e:q} "
        "--smoothing {params.smoothing} --output {output:q} "
        "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


rule reordering_table:
    input:
        extract="results/phrases/extract.parquet",
    output:
        f"results/model/{REORDERING_TABLE}",
    log:
        "results/logs/phrases/reordering.log",
    conda:
        BASE_ENV
    threads: 2
    resources:
        mem_mb=memory(3000, 2),
        runtime=minutes(30, 0.05),
    params:
        version=version("phrases", "reordering"),
    shell:
        "rnnsmt phrases reordering --extract {input.extract:q} --output {output:q} "
        "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


rule language_model:
    input:
        lm_texts(),
    output:
        "results/model/lm.arpa.gz",
    log:
        "results/logs/lm/estimate.log",
    conda:
        BASE_ENV
    threads: 2
    resources:
        mem_mb=memory(3000, 10),
        runtime=minutes(30, 0.5),
    params:
        version=version("lm", "estimate"),
        order=config["lm"]["order"],
        estimator=config["lm"]["estimator"],
    shell:
        "rnnsmt lm estimate --input {input:q} --order {params.order} --estimator {params.estimator} "
        "--output {output:q} --threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


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
    shell:
        f"rnnsmt moses ini --model-dir results/model --phrase-table {PHRASE_TABLE} "
        f"--reordering-table {REORDERING_TABLE} --lm lm.arpa.gz --lm-order {{params.order}} {{params.limits}} "
        "--output {output:q} &> {log:q}"
