# What `rnnsmt translate` has to know of a tuned system beside its moses.ini.
SYSTEM_FILES = expand(f"{RUN}/system.json", system=COMPARED, run=RUNS)


rule describe_system:
    input:
        truecaser=[f"results/corpus/truecaser.{SOURCE}"] if config["text"]["truecase"] else [],
        rnn=rnn_models,
        vocabularies=lambda w: ([f"{PAIRS}/vocab.{side}.txt" for side in ("source", "target")] if rnn_models(w) else []),
    output:
        expand(f"{RUN}/system.json", run=RUNS, allow_missing=True),
    log:
        "results/logs/translation/describe.{system}.log",
    wildcard_constraints:
        system=any_of(PHRASE_BASED),
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(250),
        runtime=minutes(10),
    params:
        version=version("translation", "describe"),
        text=TEXT_STEPS,
        truecaser=lambda w, input: ["--truecaser", *input.truecaser] if input.truecaser else [],
        rnn=lambda w, input: ["--rnn", *input.rnn, "--vocabulary", *input.vocabularies] if input.rnn else [],
        columns=lambda w: columns(features(w.system)),
        limits=search_limits,
        filtered=lambda w: switch("filtered", "proposals" in features(w.system)),
        folders=lambda w, output: [Path(path).parent for path in output],
    shell:
        "rnnsmt translation describe --name {wildcards.system} "
        f"--source-lang {SOURCE} --target-lang {TARGET} "
        "{params.text} {params.truecaser:q} {params.rnn:q} --columns {params.columns} {params.limits} {params.filtered} "
        "--output-dir {params.folders:q} &> {log:q}"
