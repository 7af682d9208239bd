# Data selection: the method of Axelrod et al. (2011) for bitext, of Moore and Lewis (2010) for language model text.


rule selection_models:
    input:
        in_domain=lambda w: texts.in_domain_texts(w.lang),
        pool=lambda w: [texts.text("preprocessed", name, w.lang) for name in texts.scored(w.kind)],
    output:
        expand(
            "results/selection/{{kind}}/models.{{lang}}/{file}",
            file=paths.SELECTION_MODELS,
        ),
    log:
        "results/logs/selection/models.{kind}.{lang}.log",
    resources:
        mem_mb=megabytes(400, 20),
        runtime=minutes(15, 0.05),
    params:
        version=version("selection", "models"),
        corpora=lambda w: in_order([*texts.in_domain_texts(w.lang), *texts.scored(w.kind)]),
        seed=settings.seed,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt selection models --in-domain {input.in_domain:q} --pool {input.pool:q} "
        "--output-dir {params.directory:q} "
        "--seed {params.seed} --memory-mb {resources.mem_mb} &> {log:q}"


rule selection_score_bitext:
    input:
        source=lambda w: texts.text("preprocessed", w.corpus, SOURCE),
        target=lambda w: texts.text("preprocessed", w.corpus, TARGET),
        source_models=f"results/selection/bitext/models.{SOURCE}/models.json",
        target_models=f"results/selection/bitext/models.{TARGET}/models.json",
    output:
        "results/selection/bitext/scores/{corpus}.tsv.gz",
    log:
        "results/logs/selection/score.bitext.{corpus}.log",
    threads: STAGE_THREADS
    resources:
        mem_mb=per_process(150, 150),
        runtime=minutes(15, 0.05),
    params:
        version=version("selection", "score"),
        source_models=subpath(input.source_models, parent=True),
        target_models=subpath(input.target_models, parent=True),
    shell:
        "rnnsmt selection score --text {input.source:q} --models {params.source_models:q} "
        "--text2 {input.target:q} --models2 {params.target_models:q} "
        "--output {output:q} --threads {threads} &> {log:q}"


rule selection_score_mono:
    input:
        target=lambda w: texts.text("preprocessed", w.corpus, TARGET),
        models=f"results/selection/mono/models.{TARGET}/models.json",
    output:
        "results/selection/mono/scores/{corpus}.tsv.gz",
    log:
        "results/logs/selection/score.mono.{corpus}.log",
    threads: STAGE_THREADS
    resources:
        mem_mb=per_process(150, 150),
        runtime=minutes(15, 0.05),
    params:
        version=version("selection", "score"),
        models=subpath(input.models, parent=True),
    shell:
        "rnnsmt selection score --text {input.target:q} --models {params.models:q} "
        "--output {output:q} --threads {threads} &> {log:q}"


rule select_bitext:
    input:
        texts=[texts.text("preprocessed", name, lang) for name in texts.bitext for lang in [SOURCE, TARGET]],
        scores=expand("results/selection/bitext/scores/{name}.tsv.gz", name=texts.scored("bitext")),
        held_out=f"results/selection/bitext/models.{TARGET}/held-out.gz",
    output:
        texts=expand("results/selection/bitext/{name}.{lang}.gz", name=texts.bitext, lang=[SOURCE, TARGET]),
        selected="results/selection/bitext/selected.json",
        curve="results/selection/bitext/curve.tsv",
    log:
        "results/logs/selection/select.bitext.log",
    threads: STAGE_THREADS
    resources:
        mem_mb=megabytes(400, 10, most=16000),
        runtime=minutes(30, 0.1),
    params:
        version=version("selection", "select"),
        corpora=lambda w, input: texts.selection_options("bitext", input.scores, input.texts),
        keep=in_order(f"{name}={texts.corpora[name].keep}" for name in texts.pools["bitext"]),
        amount=amount_kept(settings.selection.bitext),
        langs=[SOURCE, TARGET],
        directory=subpath(output.selected, parent=True),
        random=f"--random {settings.seed}" if settings.selection.random else "",
    shell:
        "rnnsmt selection select {params.corpora} {params.amount} --held-out {input.held_out:q} "
        "{params.random} --lang {params.langs} --output-dir {params.directory:q} --curve {output.curve:q} "
        "--threads {threads} --memory-mb {resources.mem_mb} &> {log:q}"


use rule select_bitext as select_mono with:
    input:
        texts=[texts.text("preprocessed", name, TARGET) for name in texts.pools["mono"]],
        scores=expand("results/selection/mono/scores/{name}.tsv.gz", name=texts.scored("mono")),
        held_out=f"results/selection/mono/models.{TARGET}/held-out.gz",
    output:
        texts=expand("results/selection/mono/{name}.{lang}.gz", name=texts.pools["mono"], lang=TARGET),
        selected="results/selection/mono/selected.json",
        curve="results/selection/mono/curve.tsv",
    log:
        "results/logs/selection/select.mono.log",
    params:
        corpora=lambda w, input: texts.selection_options("mono", input.scores, input.texts),
        keep=in_order(f"{name}={texts.corpora[name].keep}" for name in texts.pools["mono"]),
        amount=amount_kept(settings.selection.mono),
        langs=TARGET,


rule join_training:
    input:
        lambda w: [texts.selected_text("bitext", name, w.lang) for name in texts.bitext],
    output:
        "results/corpus/joined/train.{lang}.gz",
    log:
        "results/logs/selection/join_training.{lang}.log",
    resources:
        mem_mb=megabytes(100),
        runtime=minutes(15, 0.02),
    params:
        version=version("corpus", "join"),
        corpora=in_order(texts.bitext),
    shell:
        "rnnsmt corpus join --input {input:q} --output {output:q} &> {log:q}"


# The training text, and what data selection wrote about it.
SELECTED = texts.selected()


rule selected:
    input:
        SELECTED,
    localrule: True
