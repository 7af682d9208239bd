# Word alignment in both directions and symmetrisation, for every aligner of the configuration. An alignment made elsewhere
# is checked by the commands that read it.
ALIGNED = given(paths.alignments(settings))
HEURISTICS = any_of([*registries.SYMMETRIZATIONS, settings.alignment.symmetrization])


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
        threads: LONG_THREADS
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

else:

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
        threads: LONG_THREADS
        resources:
            mem_mb=megabytes(500, 25),
            runtime=longest,
        params:
            version=lambda w: version("align", "words", registries.ALIGNERS.package(w.aligner)),
            directory=subpath(output[0], parent=True),
        shell:
            "rnnsmt align words --source {input.source:q} --target {input.target:q} --aligner {wildcards.aligner} "
            "--direction {wildcards.direction} --output {output:q} --threads {threads} "
            "--checkpoint-dir {params.directory:q}/checkpoint.{wildcards.direction} --time-limit $(({resources.runtime} * 60)) &> {log:q}"

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
        resources:
            mem_mb=megabytes(450, 0.5),
            runtime=minutes(15, 0.05),
        params:
            version=lambda w: version("align", "symmetrize", registries.SYMMETRIZATIONS.package(w.heuristic)),
        shell:
            "rnnsmt align symmetrize --forward {input.forward:q} --reverse {input.backward:q} "
            "--heuristic {wildcards.heuristic} --output {output:q} &> {log:q}"


# The links of both directions, and symmetrised.
ALIGNMENTS = [
    *(ALIGNED if HAS_TABLES else []),
    *(
        f"results/align/{aligner}/{direction}.gz"
        for aligner in settings.alignment.aligners
        for direction in ("forward", "reverse")
        if HAS_TABLES and not settings.alignment.external and "alignment" not in MOSES_PARTS
    ),
]


rule alignments:
    input:
        ALIGNMENTS,
    localrule: True
