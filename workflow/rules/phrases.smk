# Phrase table and lexicalised reordering table, in the Moses model directory results/model. Phrases are extracted from
# the alignments of all aligners, and their counts are added.

if "training" in MOSES_PARTS:

    rule moses_train:
        input:
            source=[texts.training_text(SOURCE)] * len(ALIGNED),
            target=[texts.training_text(TARGET)] * len(ALIGNED),
            alignment=ALIGNED,
        output:
            "results/model/lex.e2f",
            "results/model/lex.f2e",
            f"results/model/{PHRASE_TABLE}",
            f"results/model/{REORDERING_TABLE}",
        log:
            "results/logs/phrases/moses.log",
            program="results/logs/phrases/moses.programs.log",
        threads: LONG_THREADS
        resources:
            mem_mb=megabytes(3000, 10),
            runtime=minutes(60, 1),
        params:
            version=version("moses", "train"),
            home=MOSES_HOME,
            max_length=settings.phrases.max_length,
            smoothing=settings.phrases.smoothing,
            directory=subpath(output[0], parent=True),
        shell:
            "rnnsmt moses train --moses-home {params.home:q} --source {input.source:q} --target {input.target:q} "
            "--alignment {input.alignment:q} --max-length {params.max_length} --smoothing {params.smoothing} "
            "--output-dir {params.directory:q} --threads {threads} --memory-mb {resources.mem_mb} "
            "--program-log {log.program:q} &> {log[0]:q}"

    rule import_table:
        input:
            phrase_table=f"results/model/{PHRASE_TABLE}",
            reordering_table=f"results/model/{REORDERING_TABLE}",
        output:
            pairs=PAIRS,
            scores=paths.TABLE_SCORES,
            reordering=paths.REORDERING_SCORES,
        log:
            "results/logs/phrases/import.log",
        resources:
            mem_mb=megabytes(300, 1),
            runtime=minutes(15, 0.02),
        params:
            version=version("phrases", "import-table"),
        shell:
            "rnnsmt phrases import-table --phrase-table {input.phrase_table:q} --reordering-table {input.reordering_table:q} "
            "--output {output.pairs:q} --output-scores {output.scores:q} --output-reordering {output.reordering:q} &> {log:q}"

else:

    rule lexical:
        input:
            source=[texts.training_text(SOURCE)] * len(ALIGNED),
            target=[texts.training_text(TARGET)] * len(ALIGNED),
            alignment=ALIGNED,
        output:
            e2f="results/model/lex.e2f",
            f2e="results/model/lex.f2e",
        log:
            "results/logs/phrases/lexical.log",
        resources:
            mem_mb=megabytes(300, 2),
            runtime=minutes(15, 0.05),
        params:
            version=version("phrases", "lexical"),
        shell:
            "rnnsmt phrases lexical --source {input.source:q} --target {input.target:q} --alignment {input.alignment:q} "
            "--output-e2f {output.e2f:q} --output-f2e {output.f2e:q} &> {log:q}"

    rule extract:
        input:
            source=[texts.training_text(SOURCE)] * len(ALIGNED),
            target=[texts.training_text(TARGET)] * len(ALIGNED),
            alignment=ALIGNED,
        output:
            extract="results/phrases/extract.parquet",
            pairs=PAIRS,
        log:
            "results/logs/phrases/extract.log",
        threads: STAGE_THREADS
        resources:
            mem_mb=megabytes(450, 150, most=16000),
            runtime=minutes(30, 0.1),
        params:
            version=version("phrases", "extract"),
            max_length=settings.phrases.max_length,
        shell:
            "rnnsmt phrases extract --source {input.source:q} --target {input.target:q} --alignment {input.alignment:q} "
            "--max-length {params.max_length} --output {output.extract:q} --output-pairs {output.pairs:q} "
            "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"

    rule phrase_scores:
        input:
            extract="results/phrases/extract.parquet",
            pairs=PAIRS,
            e2f="results/model/lex.e2f",
            f2e="results/model/lex.f2e",
        output:
            paths.TABLE_SCORES,
        log:
            "results/logs/phrases/score.log",
        threads: STAGE_THREADS
        resources:
            mem_mb=megabytes(450, 15, most=16000),
            runtime=minutes(30, 0.05),
        params:
            version=version("phrases", "score"),
            smoothing=settings.phrases.smoothing,
        shell:
            "rnnsmt phrases score --extract {input.extract:q} --pairs {input.pairs:q} --lex-e2f {input.e2f:q} "
            "--lex-f2e {input.f2e:q} --smoothing {params.smoothing} --output {output:q} "
            "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"

    rule reordering_scores:
        input:
            extract="results/phrases/extract.parquet",
            pairs=PAIRS,
        output:
            paths.REORDERING_SCORES,
        log:
            "results/logs/phrases/reordering.log",
        threads: STAGE_THREADS
        resources:
            mem_mb=megabytes(400, 15, most=16000),
            runtime=minutes(30, 0.05),
        params:
            version=version("phrases", "reordering"),
        shell:
            "rnnsmt phrases reordering --extract {input.extract:q} --pairs {input.pairs:q} --output {output:q} "
            "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"

    # The tables in Moses format, for people and for Moses; no other job waits for them.
    rule export_tables:
        input:
            pairs=PAIRS,
            scores=paths.TABLE_SCORES,
            reordering=paths.REORDERING_SCORES,
        output:
            phrase_table=f"results/model/{PHRASE_TABLE}",
            reordering_table=f"results/model/{REORDERING_TABLE}",
        log:
            "results/logs/phrases/export.log",
        threads: STAGE_THREADS
        resources:
            mem_mb=megabytes(450, 0.04),
            runtime=minutes(30, 0.02),
        params:
            version=version("phrases", "export"),
        shell:
            "rnnsmt phrases export --pairs {input.pairs:q} --scores {input.scores:q} --reordering {input.reordering:q} "
            "--output-phrase-table {output.phrase_table:q} --output-reordering-table {output.reordering_table:q} "
            "--threads {threads} &> {log:q}"


# A score of every phrase pair. A column of a network has one for each training run; others are computed once.
rule score_column:
    input:
        pairs=PAIRS,
        vocabularies=lambda w: VOCABULARY_FILES if COLUMNS[w.column].uses_vocabularies else [],
        model=lambda w: systems.column_models(w.column, w.network),
    output:
        COLUMN,
    log:
        "results/logs/columns/{column}.{network}.{scatteritem}.log",
    wildcard_constraints:
        column=any_of(systems.columns_used),
        scatteritem=r"\d+-of-\d+",
    threads: of_column(part_threads, 1)
    resources:
        **COLUMN_ON_DEVICE,
        mem_mb=of_column(network_megabytes("columns", lambda w: COLUMNS[w.column].network), megabytes(300)),
        runtime=minutes(30, 0.6, parts_of),
    params:
        version=version("phrases", "column"),
        package=lambda w: COLUMNS.package(w.column),
        files=lambda w, input: [
            *(["--vocabularies", Path(input.vocabularies[0]).parent] if input.vocabularies else []),
            *(["--model", *input.model] if input.model else []),
        ],
    shell:
        "rnnsmt phrases column --name {wildcards.column} --pairs {input.pairs:q} {params.files:q} "
        "--shard {wildcards.scatteritem} --device {resources.device} --threads {threads} --output {output:q} &> {log:q}"
