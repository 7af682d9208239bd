# The n-gram language model: by Moses' lmplz where Moses trains.
LMPLZ = f"--lmplz {shlex.quote(str(moses.program('lmplz')))} " if "training" in MOSES_PARTS else ""
# Only where something is pruned, so that a model that is not pruned stays what it is.
LM_PRUNING = f"--prune {' '.join(map(str, config['lm']['prune']))} " if config["lm"]["prune"] else ""


rule language_model:
    input:
        lm_texts(),
    output:
        "results/model/lm.arpa.gz",
    log:
        "results/logs/lm/estimate.log",
    conda:
        BASE_ENV
    threads: STAGE_THREADS
    resources:
        mem_mb=memory(400, 60, BUDGET),
        runtime=minutes(30, 0.5),
    params:
        version=version("lm", "estimate"),
        order=config["lm"]["order"],
        estimator=config["lm"]["estimator"],
    shell:
        "rnnsmt lm estimate --input {input:q} --order {params.order} --estimator {params.estimator} "
        + LMPLZ
        + LM_PRUNING
        + "--output {output:q} --threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"
