# The n-gram language model, estimated by lmplz if Moses trains the tables.
LM = f"results/model/{paths.LM}"
LM_BINARY = f"results/model/{paths.LM_BINARY}"
LMPLZ = f"--lmplz {shlex.quote(str(moses.program('lmplz')))} " if "training" in MOSES_PARTS else ""
# Omitted without pruning, so that existing unpruned models are not estimated again.
LM_PRUNING = f"--prune {' '.join(map(str, settings.lm.prune))} " if settings.lm.prune else ""


rule language_model:
    input:
        texts.lm_texts(),
    output:
        LM,
    log:
        "results/logs/lm/estimate.log",
    threads: STAGE_THREADS
    resources:
        mem_mb=megabytes(400, 60, most=16000),
        runtime=minutes(30, 0.5),
    params:
        version=version("lm", "estimate"),
        texts=in_order(texts.lm_texts()),
        order=settings.lm.order,
        estimator=settings.lm.estimator,
    shell:
        "rnnsmt lm estimate --input {input:q} --order {params.order} --estimator {params.estimator} "
        + LMPLZ
        + LM_PRUNING
        + "--output {output:q} --threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


# The language model as the search maps it: all jobs on a machine share its pages.
rule binary_language_model:
    input:
        LM,
    output:
        LM_BINARY,
    log:
        "results/logs/lm/binarize.log",
    resources:
        mem_mb=megabytes(400, 10),
        runtime=minutes(15, 0.1),
    params:
        version=version("lm", "binarize"),
    shell:
        "rnnsmt lm binarize --lm {input:q} --output {output:q} &> {log:q}"


# The Moses model without features: lexical, phrase and reordering tables, n-gram language model, moses.ini.
MODEL_FILES = ("lex.e2f", "lex.f2e", PHRASE_TABLE, REORDERING_TABLE, "moses.ini")
TABLES = [
    LM,
    *([LM_BINARY] if HAS_TABLES else []),
    *(f"results/model/{name}" for name in MODEL_FILES if HAS_TABLES),
    *(["results/phrases/extract.parquet"] if HAS_TABLES and "training" not in MOSES_PARTS else []),
    *([PAIRS, paths.TABLE_SCORES, paths.REORDERING_SCORES] if HAS_TABLES else []),
]


rule tables:
    input:
        TABLES,
    localrule: True
