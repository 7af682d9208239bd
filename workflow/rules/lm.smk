# The n-gram language models: one of all text, and one for each of lm.models; with lm.interpolate, a linear
# interpolation of these. They are estimated by lmplz if Moses trains the tables.
LM_MODELS = config["lm"]["models"]
LM_NAMES = paths.lm_names(config)
LMS = [f"results/model/{name}" for name in LM_NAMES]
LMPLZ = f"--lmplz {shlex.quote(str(moses.program('lmplz')))} " if "training" in MOSES_PARTS else ""
# Omitted without pruning, so that existing unpruned models are not estimated again.
LM_PRUNING = f"--prune {' '.join(map(str, config['lm']['prune']))} " if config["lm"]["prune"] else ""


rule language_model:
    input:
        texts.lm_texts(),
    output:
        "results/model/lm.arpa.gz",
    log:
        "results/logs/lm/estimate.log",
    conda:
        BASE_ENV
    threads: STAGE_THREADS
    resources:
        mem_mb=megabytes(400, 60, most=16000),
        runtime=minutes(30, 0.5),
    params:
        version=version("lm", "estimate"),
        texts=in_order(texts.lm_texts()),
        order=config["lm"]["order"],
        estimator=config["lm"]["estimator"],
    shell:
        "rnnsmt lm estimate --input {input:q} --order {params.order} --estimator {params.estimator} "
        + LMPLZ
        + LM_PRUNING
        + "--output {output:q} --threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


if LM_MODELS:

    use rule language_model as further_language_model with:
        input:
            lambda w: [texts.selected_text("mono", name, TARGET) for name in LM_MODELS[w.model]],
        output:
            "results/model/lm.{model}.arpa.gz",
        log:
            "results/logs/lm/estimate.{model}.log",
        wildcard_constraints:
            model="|".join(LM_MODELS),
        params:
            version=version("lm", "estimate"),
            texts=lambda w: in_order(LM_MODELS[w.model]),
            order=config["lm"]["order"],
            estimator=config["lm"]["estimator"],


rule interpolated_language_model:
    input:
        models=[f"results/model/{name}" for name in paths.estimated_lms(config)],
        tune=texts.set_text("preprocessed", "dev", TARGET),
    output:
        "results/model/lm-interpolated.arpa.gz",
    log:
        "results/logs/lm/interpolate.log",
    conda:
        BASE_ENV
    threads: STAGE_THREADS
    resources:
        mem_mb=megabytes(300, 18),
        runtime=minutes(30, 0.1),
    params:
        version=version("lm", "interpolate"),
        models=in_order(LM_MODELS),
    shell:
        "rnnsmt lm interpolate --models {input.models:q} --tune {input.tune:q} --output {output:q} "
        "--threads {threads} &> {log:q}"
