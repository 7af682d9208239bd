# Preprocessing: cleaning, tokenisation and truecasing of the raw files.
TEXT_STEPS = " ".join(
    [
        *(switch(f"no-{step}", not getattr(settings.text, step)) for step in ("normalize", "tokenize", "escape")),
        switch("lowercase", settings.text.lowercase),
    ]
)
KEPT_WHOLE = {"dev": "--keep-all --min-lines 2", "test": "--keep-all"}
CLEANING = f"--max-length {settings.text.max_length} --max-ratio {settings.text.max_ratio} {TEXT_STEPS}"


# A partial download is kept (file.KEY.part); the next attempt, or the next run, resumes it.
rule fetch:
    output:
        "results/downloads/{key}/{file}",
    log:
        "results/logs/corpus/fetch.{key}.{file}.log",
    wildcard_constraints:
        key="[^/]+",
        file="[^/]+",
    resources:
        mem_mb=megabytes(100),
        runtime=minutes(720),
    params:
        version=version("corpus", "fetch"),
        url=lambda w: texts.download(w.key, w.file).url,
        sha256=lambda w: texts.download(w.key, w.file).sha256 or "none",
        mirrors=lambda w: " ".join(f"--mirror {shlex.quote(url)}" for url in texts.download(w.key, w.file).mirrors),
    shell:
        "rnnsmt corpus fetch --url {params.url:q} {params.mirrors} --sha256 {params.sha256} "
        "--output {output:q} &> {log:q}"


rule unpack:
    input:
        lambda w: texts.member(w.key, w.file)[0],
    output:
        "results/unpacked/{key}/{file}",
    log:
        "results/logs/corpus/unpack.{key}.{file}.log",
    wildcard_constraints:
        key="[^/]+",
        file="[^/]+",
    resources:
        mem_mb=megabytes(100),
        runtime=minutes(15, 0.05),
    params:
        version=version("corpus", "unpack"),
        member=lambda w: texts.member(w.key, w.file)[1],
    shell:
        "rnnsmt corpus unpack --archive {input:q} --member {params.member:q} --output {output:q} &> {log:q}"


rule separate:
    input:
        lambda w: given(texts.corpora[w.corpus].separated.paths),
    output:
        source=f"results/corpus/separated/{{corpus}}.{SOURCE}.gz",
        target=f"results/corpus/separated/{{corpus}}.{TARGET}.gz",
    log:
        "results/logs/corpus/separate.{corpus}.log",
    priority: 10
    resources:
        mem_mb=megabytes(150),
        runtime=minutes(15, 0.05),
    params:
        version=lambda w: version("corpus", "separate", format_package(w.corpus)),
        parts=lambda w: texts.corpora[w.corpus].separated.options(),
    shell:
        "rnnsmt corpus separate --bitext {input:q} {params.parts} "
        f"--source-lang {SOURCE} --target-lang {TARGET} "
        "--output-source {output.source:q} --output-target {output.target:q} &> {log:q}"


# High priority: errors in a text are reported before any long job starts.
rule prepare_bitext:
    input:
        source=lambda w: given(texts.corpora[w.corpus].source),
        target=lambda w: given(texts.corpora[w.corpus].target),
    output:
        source=f"results/corpus/tokenized/{{corpus}}.{SOURCE}.gz",
        target=f"results/corpus/tokenized/{{corpus}}.{TARGET}.gz",
        report="results/corpus/tokenized/{corpus}.report.json",
    log:
        "results/logs/corpus/prepare.{corpus}.log",
    wildcard_constraints:
        corpus=any_of(name for name in texts.corpora if name not in texts.mono),
    priority: 10
    threads: STAGE_THREADS
    resources:
        mem_mb=per_process(150, 200),
        runtime=minutes(15, 0.1),
    params:
        version=version("corpus", "prepare"),
        sides=lambda w: in_order([texts.corpora[w.corpus].source, texts.corpora[w.corpus].target]),
        cleaning=CLEANING,
        keep_all=lambda w: KEPT_WHOLE.get(texts.corpora[w.corpus].role, ""),
        check=unchecked,
    shell:
        "rnnsmt corpus prepare --source {input.source:q} --target {input.target:q} "
        f"--source-lang {SOURCE} --target-lang {TARGET} "
        "--output-source {output.source:q} --output-target {output.target:q} --report {output.report:q} "
        "{params.cleaning} {params.check} {params.keep_all} --threads {threads} &> {log:q}"


rule prepare_mono:
    input:
        target=lambda w: given(texts.corpora[w.corpus].target),
    output:
        target=f"results/corpus/tokenized/{{corpus}}.{TARGET}.gz",
        report="results/corpus/tokenized/{corpus}.report.json",
    log:
        "results/logs/corpus/prepare.{corpus}.log",
    wildcard_constraints:
        corpus=any_of(texts.mono),
    priority: 10
    threads: STAGE_THREADS
    resources:
        mem_mb=per_process(150, 200),
        runtime=minutes(15, 0.1),
    params:
        version=version("corpus", "prepare"),
        cleaning=CLEANING,
        check=unchecked,
    shell:
        f"rnnsmt corpus prepare --target {{input.target:q}} --target-lang {TARGET} "
        "--output-target {output.target:q} --report {output.report:q} "
        "{params.cleaning} {params.check} --threads {threads} &> {log:q}"


# Raw references for sacreBLEU: control characters are removed, and the text is lowercased if text.lowercase is true.
# prepare_bitext checks the text of the target side.
rule raw_reference:
    input:
        target=lambda w: given(texts.corpora[w.corpus].reference or texts.corpora[w.corpus].target),
    output:
        target=f"results/corpus/raw/{{corpus}}.{TARGET}.gz",
        report="results/corpus/raw/{corpus}.report.json",
    log:
        "results/logs/corpus/raw_reference.{corpus}.log",
    resources:
        mem_mb=megabytes(200),
        runtime=minutes(30),
    params:
        version=version("corpus", "prepare"),
        case=switch("lowercase", settings.text.lowercase),
        check=lambda w, input: unchecked(w, input) if texts.corpora[w.corpus].reference else "--no-check",
    shell:
        f"rnnsmt corpus prepare --target {{input.target:q}} --target-lang {TARGET} "
        "--output-target {output.target:q} --report {output.report:q} "
        "--no-normalize --no-tokenize {params.check} --no-escape {params.case} --keep-all &> {log:q}"


# Sentences of the dev and test sets that also occur in the training text; the report names sets with many.
rule overlap:
    input:
        training=[texts.text("tokenized", name, SOURCE) for name in texts.bitext],
        sets=[texts.text("tokenized", name, SOURCE) for name in [*texts.dev, *texts.test]],
    output:
        "results/corpus/overlap.json",
    log:
        "results/logs/corpus/overlap.log",
    priority: 10
    resources:
        mem_mb=megabytes(150),
        runtime=minutes(15, 0.02),
    params:
        version=version("corpus", "overlap"),
        names=in_order([*texts.dev, *texts.test]),
        sets=lambda w, input: [
            f"{name}={path}" for name, path in zip([*texts.dev, *texts.test], input.sets, strict=True)
        ],
    shell:
        "rnnsmt corpus overlap --training {input.training:q} --set {params.sets:q} --output {output:q} &> {log:q}"


# The truecaser is trained on the bitext only, so that additional language model text does not change all other models.
rule train_truecaser:
    input:
        lambda w: [texts.text("tokenized", name, w.lang) for name in texts.bitext],
    output:
        "results/corpus/truecaser.{lang}",
    log:
        "results/logs/corpus/train_truecaser.{lang}.log",
    resources:
        mem_mb=megabytes(150, 2),
        runtime=minutes(10, 0.02),
    params:
        version=version("corpus", "train-truecaser"),
    shell:
        "rnnsmt corpus train-truecaser --input {input:q} --output-model {output:q} &> {log:q}"


rule truecase:
    input:
        text="results/corpus/tokenized/{corpus}.{lang}.gz",
        model="results/corpus/truecaser.{lang}",
    output:
        "results/corpus/truecased/{corpus}.{lang}.gz",
    log:
        "results/logs/corpus/truecase.{corpus}.{lang}.log",
    threads: STAGE_THREADS
    resources:
        mem_mb=per_process(150, 150),
        runtime=minutes(15, 0.1),
    params:
        version=version("corpus", "truecase"),
    shell:
        "rnnsmt corpus truecase --model {input.model:q} --input {input.text:q} --output {output:q} "
        "--threads {threads} &> {log:q}"


rule join_dev:
    input:
        lambda w: [texts.text(w.kind, name, w.lang) for name in texts.dev],
    output:
        "results/corpus/joined/{kind}/dev.{lang}.gz",
    log:
        "results/logs/corpus/join_dev.{kind}.{lang}.log",
    wildcard_constraints:
        kind="raw|tokenized|truecased",
    resources:
        mem_mb=megabytes(100),
        runtime=minutes(10),
    params:
        version=version("corpus", "join"),
        corpora=in_order(texts.dev),
    shell:
        "rnnsmt corpus join --input {input:q} --output {output:q} &> {log:q}"


# Prepared text and reports of all corpora; with the demo corpus, also its files.
CORPORA = [*texts.prepared(), *(DEMO if set(DEMO) & set(texts.raw_files()) else [])]


rule corpora:
    input:
        CORPORA,
    localrule: True
