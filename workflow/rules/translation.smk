# Description of a tuned system for `rnnsmt translate`: preprocessing, networks, and example sentences for the web page.
rule describe_system:
    input:
        prepared=[f"results/corpus/tokenized/{texts.bitext[0]}.report.json"] if settings.text.tokenize else [],
        truecaser=[f"results/corpus/truecaser.{SOURCE}"] if settings.text.truecase else [],
        rnn=lambda w: systems.rnn_models(w.system),
        vocabularies=lambda w: VOCABULARY_FILES if systems.rnn_models(w.system) else [],
        examples=given(texts.corpora[texts.dev[0]].source),
    output:
        expand(f"{RUN}/system.json", run=RUNS, allow_missing=True),
    log:
        "results/logs/translation/describe.{system}.log",
    wildcard_constraints:
        system=any_of(systems.phrase_based),
    resources:
        mem_mb=megabytes(250),
        runtime=minutes(10),
    params:
        version=version("translation", "describe"),
        text=TEXT_STEPS,
        prepared=lambda w, input: ["--prepared", *input.prepared] if input.prepared else [],
        truecaser=lambda w, input: ["--truecaser", *input.truecaser] if input.truecaser else [],
        rnn=lambda w, input: ["--rnn", *input.rnn, "--vocabulary", *input.vocabularies] if input.rnn else [],
        columns=lambda w: systems.columns(systems.features(w.system)),
        limits=lambda w: systems.search_options(w.system),
        directories=lambda w, output: [Path(path).parent for path in output],
    shell:
        "rnnsmt translation describe --name {wildcards.system} "
        f"--source-lang {SOURCE} --target-lang {TARGET} "
        "{params.text} {params.prepared:q} {params.truecaser:q} {params.rnn:q} "
        "--columns {params.columns} {params.limits} "
        "--examples {input.examples:q} --output-dir {params.directories:q} &> {log:q}"


# The translations of the dev and test sets by all systems, as tokens and as text, and what `rnnsmt translate` reads.
TRANSLATIONS = [
    *of_every_system(("output", "decode.json", "tokens", "detokenized"), settings.compare),
    *of_every_system(("details",), systems.compared),
    *expand(f"{RUN}/system.json", system=systems.compared, run=RUNS),
]


rule translations:
    input:
        TRANSLATIONS,
    localrule: True
