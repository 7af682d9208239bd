# Word alignment in both directions and symmetrisation, for every aligner of the configuration.
HEURISTICS = "grow-diag-final-and|grow-diag-final|grow-diag|intersection|union"


# Number of shards of the corpus that are aligned in parallel, on machines that share its files: --set-scatter
# align_words=4.
scattergather:
    align_words=1,


ALIGN_SHARDS = len(gather.align_words("{scatteritem}"))

if "alignment" in MOSES_PARTS:

    rule moses_align:
        input:
            source=texts.training_text(SOURCE),
            target=texts.training_text(TARGET),
        output:
            "results/align/{aligner}/aligned.{heuristic}.gz",
        log:
            "results/logs/align/moses.{aligner}.{heuristic}.log",
            program="results/logs/align/moses.{aligner}.{heuristic}.programs.log",
        wildcard_constraints:
            heuristic=HEURISTICS,
        conda:
            BASE_ENV
        threads: HALF
        resources:
            mem_mb=megabytes(2000, 300),
            runtime=minutes(60, 10),
        params:
            version=version("moses", "align"),
            home=MOSES_HOME,
        shell:
            "rnnsmt moses align --moses-home {params.home:q} --source {input.source:q} --target {input.target:q} "
            "--aligner {wildcards.aligner} --heuristic {wildcards.heuristic} --output {output:q} --threads {threads} "
            "--program-log {log.program:q} &> {log[0]:q}"

elif ALIGN_SHARDS == 1:

    # A job that was killed, or stopped before its time limit, resumes after its last complete pass over the corpus.
    rule align_words:
        input:
            source=texts.training_text(SOURCE),
            target=texts.training_text(TARGET),
        output:
            "results/align/{aligner}/{direction}.gz",
        log:
            "results/logs/align/{aligner}.{direction}.log",
        wildcard_constraints:
            direction="forward|reverse",
        conda:
            BASE_ENV
        threads: 1 if is_demo_corpus(config) else HALF
        resources:
            mem_mb=megabytes(430, 25),
            runtime=LONG,
        params:
            version=version("align", "words"),
            directory=subpath(output[0], parent=True),
        shell:
            "rnnsmt align words --source {input.source:q} --target {input.target:q} --aligner {wildcards.aligner} "
            "--direction {wildcards.direction} --output {output:q} --threads {threads} "
            "--checkpoint-dir {params.directory:q}/checkpoint.{wildcards.direction} --time-limit $(({resources.runtime} * 60)) &> {log:q}"

else:

    # The corpus is divided into shards. Every pass computes the counts of each shard, then the parameters from all
    # counts. After a kill, a job repeats its shard of the current pass. {done}: number of completed passes.
    rule align_cut:
        input:
            source=texts.training_text(SOURCE),
            target=texts.training_text(TARGET),
        output:
            temp("results/align/{aligner}/{direction}.passes/corpus.npz"),
            temp("results/align/{aligner}/{direction}.passes/parameters.0.npz"),
            temp(scatter.align_words("results/align/{{aligner}}/{{direction}}.passes/shard.{scatteritem}.npz")),
        log:
            "results/logs/align/cut.{aligner}.{direction}.log",
        wildcard_constraints:
            direction="forward|reverse",
        conda:
            BASE_ENV
        threads: HALF
        resources:
            mem_mb=megabytes(400, 40),
            runtime=minutes(60, 1),
        params:
            version=version("align", "cut"),
            shards=ALIGN_SHARDS,
            directory=subpath(output[0], parent=True),
        shell:
            "rnnsmt align cut --source {input.source:q} --target {input.target:q} --aligner {wildcards.aligner} "
            "--direction {wildcards.direction} --shards {params.shards} --output-dir {params.directory:q} --threads {threads} "
            "&> {log:q}"

    rule align_count:
        input:
            shard="results/align/{aligner}/{direction}.passes/shard.{scatteritem}.npz",
            parameters="results/align/{aligner}/{direction}.passes/parameters.{done}.npz",
        output:
            temp("results/align/{aligner}/{direction}.passes/counts.{done}.{scatteritem}.npz"),
        log:
            "results/logs/align/count.{aligner}.{direction}.{done}.{scatteritem}.log",
        wildcard_constraints:
            direction="forward|reverse",
            done=r"\d+",
        conda:
            BASE_ENV
        threads: part_threads
        resources:
            mem_mb=megabytes(400, 3),
            runtime=minutes(30, 0.1),
        params:
            version=version("align", "count"),
        shell:
            "rnnsmt align count --shard {input.shard:q} --parameters {input.parameters:q} --output {output:q} "
            "--threads {threads} &> {log:q}"

    rule align_estimate:
        input:
            corpus="results/align/{aligner}/{direction}.passes/corpus.npz",
            parameters=lambda w: f"results/align/{w.aligner}/{w.direction}.passes/parameters.{int(w.done) - 1}.npz",
            counts=lambda w: gather.align_words(
                f"results/align/{w.aligner}/{w.direction}.passes/counts.{int(w.done) - 1}.{{scatteritem}}.npz"
            ),
        output:
            temp("results/align/{aligner}/{direction}.passes/parameters.{done}.npz"),
        log:
            "results/logs/align/estimate.{aligner}.{direction}.{done}.log",
        wildcard_constraints:
            direction="forward|reverse",
            done=r"[1-9]\d*",
        conda:
            BASE_ENV
        resources:
            mem_mb=megabytes(400, 3),
            runtime=minutes(30, 0.1),
        params:
            version=version("align", "estimate"),
        shell:
            "rnnsmt align estimate --corpus {input.corpus:q} --parameters {input.parameters:q} --counts {input.counts:q} "
            "--output {output:q} &> {log:q}"

    rule align_links:
        input:
            corpus="results/align/{aligner}/{direction}.passes/corpus.npz",
            counts=lambda w: gather.align_words(
                f"results/align/{w.aligner}/{w.direction}.passes/counts.{PASSES_OF[w.aligner] - 1}.{{scatteritem}}.npz"
            ),
        output:
            "results/align/{aligner}/{direction}.gz",
        log:
            "results/logs/align/{aligner}.{direction}.log",
        wildcard_constraints:
            direction="forward|reverse",
        conda:
            BASE_ENV
        resources:
            mem_mb=megabytes(350, 5),
            runtime=minutes(30, 0.1),
        params:
            version=version("align", "links"),
        shell:
            "rnnsmt align links --corpus {input.corpus:q} --counts {input.counts:q} --output {output:q} &> {log:q}"


if "alignment" not in MOSES_PARTS:

    rule symmetrize:
        input:
            forward="results/align/{aligner}/forward.gz",
            backward="results/align/{aligner}/reverse.gz",
        output:
            "results/align/{aligner}/aligned.{heuristic}.gz",
        log:
            "results/logs/align/symmetrize.{aligner}.{heuristic}.log",
        wildcard_constraints:
            heuristic=HEURISTICS,
        conda:
            BASE_ENV
        resources:
            mem_mb=megabytes(450),
            runtime=minutes(15, 0.05),
        params:
            version=version("align", "symmetrize"),
        shell:
            "rnnsmt align symmetrize --forward {input.forward:q} --reverse {input.backward:q} "
            "--heuristic {wildcards.heuristic} --output {output:q} &> {log:q}"


rule check_alignment:
    input:
        source=texts.training_text(SOURCE),
        target=texts.training_text(TARGET),
        alignment=config["alignment"]["external"] or [],
    output:
        "results/align/external/aligned.gz",
    log:
        "results/logs/align/check.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=megabytes(350),
        runtime=minutes(15, 0.05),
    params:
        version=version("align", "check"),
    shell:
        "rnnsmt align check --source {input.source:q} --target {input.target:q} "
        "--alignment {input.alignment:q} --output {output:q} &> {log:q}"
