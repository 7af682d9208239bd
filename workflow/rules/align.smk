# Word alignment in both directions and its symmetrisation, once for every aligner of the configuration.
HEURISTICS = "grow-diag-final-and|grow-diag-final|grow-diag|intersection|union"
ALIGNED = (
    ["results/align/external/aligned.gz"]
    if config["alignment"]["external"]
    else [
        f"results/align/{aligner}/aligned.{config['alignment']['symmetrization']}.gz"
        for aligner in config["alignment"]["aligners"]
    ]
)


if "alignment" in MOSES_PARTS:

    rule moses_align:
        input:
            source=training_text(SOURCE),
            target=training_text(TARGET),
        output:
            "results/align/{aligner}/aligned.{heuristic}.gz",
        log:
            "results/logs/align/moses.{aligner}.{heuristic}.log",
            program="results/logs/align/moses.{aligner}.{heuristic}.programs.log",
        wildcard_constraints:
            heuristic=HEURISTICS,
        conda:
            BASE_ENV
        threads: cores()
        resources:
            mem_mb=memory(2000, 300),
            runtime=minutes(60, 10),
        params:
            version=version("moses", "align"),
            home=MOSES_HOME,
        shell:
            "rnnsmt moses align --moses-home {params.home:q} --source {input.source:q} --target {input.target:q} "
            "--aligner {wildcards.aligner} --heuristic {wildcards.heuristic} --output {output:q} --threads {threads} "
            "--program-log {log.program:q} &> {log[0]:q}"

else:

    # What is killed, or stops before its time is up, goes on after its last saved pass over the corpus.
    rule align_words:
        input:
            source=training_text(SOURCE),
            target=training_text(TARGET),
        output:
            "results/align/{aligner}/{direction}.gz",
        log:
            "results/logs/align/{aligner}.{direction}.log",
        wildcard_constraints:
            direction="forward|reverse",
        conda:
            BASE_ENV
        threads: 1 if is_embedded(config) else max(1, cores() // 2)
        resources:
            mem_mb=memory(400, 40),
            runtime=LONG,
        params:
            version=version("align", "words"),
            folder=subpath(output[0], parent=True),
        shell:
            "rnnsmt align words --source {input.source:q} --target {input.target:q} --aligner {wildcards.aligner} "
            "--direction {wildcards.direction} --output {output:q} --threads {threads} "
            "--state-dir {params.folder:q}/state.{wildcards.direction} --time-limit $(({resources.runtime} * 60)) &> {log:q}"

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
            mem_mb=memory(350),
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
        mem_mb=memory(350),
        runtime=minutes(15, 0.05),
    params:
        version=version("align", "check"),
    shell:
        "rnnsmt align check --source {input.source:q} --target {input.target:q} "
        "--alignment {input.alignment:q} --output {output:q} &> {log:q}"
