# Phrase table and lexicalised reordering table, in the Moses model directory results/model. Phrases are extracted from
# the alignments of all aligners, and their counts are added. If the table is pruned, all later stages use the pruned
# table.
PHRASE_TABLE = paths.phrase_table(config)
PRUNING = PHRASE_TABLE != FULL_TABLE
ALIGNED = paths.alignments(config)


if "training" in MOSES_PARTS:

    rule moses_train:
        input:
            source=[texts.training_text(SOURCE)] * len(ALIGNED),
            target=[texts.training_text(TARGET)] * len(ALIGNED),
            alignment=ALIGNED,
        output:
            "results/model/lex.e2f",
            "results/model/lex.f2e",
            f"results/model/{FULL_TABLE}",
            f"results/model/{REORDERING_TABLE}",
        log:
            "results/logs/phrases/moses.log",
            program="results/logs/phrases/moses.programs.log",
        conda:
            BASE_ENV
        threads: machine.half
        resources:
            mem_mb=memory("moses_train"),
            runtime=minutes("moses_train"),
        params:
            version=version("moses", "train"),
            home=MOSES_HOME,
            max_length=config["phrases"]["max_length"],
            smoothing=config["phrases"]["smoothing"],
            directory=subpath(output[0], parent=True),
        shell:
            "rnnsmt moses train --moses-home {params.home:q} --source {input.source:q} --target {input.target:q} "
            "--alignment {input.alignment:q} --max-length {params.max_length} --smoothing {params.smoothing} "
            "--output-dir {params.directory:q} --threads {threads} --memory-mb {resources.mem_mb} "
            "--program-log {log.program:q} &> {log[0]:q}"

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
        conda:
            BASE_ENV
        resources:
            mem_mb=memory("lexical"),
            runtime=minutes("lexical"),
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
            "results/phrases/extract.parquet",
        log:
            "results/logs/phrases/extract.log",
        conda:
            BASE_ENV
        threads: machine.stage_threads
        resources:
            mem_mb=memory("extract"),
            runtime=minutes("extract"),
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
            f"results/model/{FULL_TABLE}",
        log:
            "results/logs/phrases/score.log",
        conda:
            BASE_ENV
        threads: machine.stage_threads
        resources:
            mem_mb=memory("phrase_table"),
            runtime=minutes("phrase_table"),
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
        threads: machine.stage_threads
        resources:
            mem_mb=memory("reordering_table"),
            runtime=minutes("reordering_table"),
        params:
            version=version("phrases", "reordering"),
        shell:
            "rnnsmt phrases reordering --extract {input.extract:q} --output {output:q} "
            "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


if PRUNING:

    rule prune_table:
        input:
            phrase_table=f"results/model/{FULL_TABLE}",
            source=texts.training_text(SOURCE),
            target=texts.training_text(TARGET),
        output:
            table=f"results/model/{PHRASE_TABLE}",
        log:
            "results/logs/phrases/prune.log",
        conda:
            BASE_ENV
        threads: machine.stage_threads
        resources:
            mem_mb=memory("prune_table"),
            runtime=minutes("prune_table"),
        params:
            version=version("phrases", "prune"),
            threshold=config["phrases"]["prune"],
        shell:
            "rnnsmt phrases prune --phrase-table {input.phrase_table:q} --source {input.source:q} --target {input.target:q} "
            "--threshold {params.threshold} --output {output.table:q} "
            "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"
