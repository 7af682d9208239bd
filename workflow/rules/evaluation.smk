import os

# Translate every set with every tuned system and score the output.
KEEP_CASE = switch("no-detruecase", config["text"]["lowercase"] or not config["text"]["truecase"])


RUN = "results/systems/{system}/run{run}"


# All sets in one process, with one model.
rule decode:
    input:
        ini=f"{RUN}/moses.ini",
        lm="results/model/lm.arpa.gz",
        network=neural_model,
        tables=lambda w: filtered_tables(w.system, "all"),
        source=[set_text("usual", name, SOURCE) for name in SETS],
    output:
        text=[f"{RUN}/{name}.output" for name in SETS],
        report=[f"{RUN}/{name}.decode.json" for name in SETS],
    log:
        "results/logs/evaluation/decode.{system}.run{run}.log",
    conda:
        search_env
    threads: tuning_threads()
    resources:
        mem_mb=search_memory,
        runtime=minutes(240 * len(SETS)),
        gpu=search_gpu,
        device=DEVICE,
    params:
        version=version("search", "decode"),
        limits=search_limits,
        tables=lambda w: filtered_folder(w.system, "all"),
    shell:
        "rnnsmt search decode --ini {input.ini:q} --model-dir {params.tables} "
        "--input {input.source:q} --output {output.text:q} --report {output.report:q} "
        "{params.limits} --device {resources.device} --threads {threads} &> {log:q}"


# The reference of a corpus that comes tokenised is detokenised like the output.
rule detokenize_reference:
    input:
        lambda w: set_text("tokenized", w.set, TARGET),
    output:
        f"results/corpus/detokenized/{{set}}.{TARGET}.gz",
    log:
        "results/logs/evaluation/detokenize_reference.{set}.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(30),
    params:
        version=version("corpus", "detokenize"),
    shell:
        f"rnnsmt corpus detokenize --lang {TARGET} --no-detruecase --input {{input:q}} --output {{output:q}} &> {{log:q}}"


# Tokens in the case of running text, for tokenised BLEU; text as people write it, for sacreBLEU; and both scores.
rule score:
    input:
        text=[f"{RUN}/{name}.output" for name in SETS],
        decode=[f"{RUN}/{name}.decode.json" for name in SETS],
        reference=[set_text("tokenized", name, TARGET) for name in SETS],
        plain_reference=[plain_reference(name) for name in SETS],
    output:
        [f"{RUN}/{name}.{kind}" for name in SETS for kind in ("tokens", "detokenized", "bleu.json")],
    log:
        "results/logs/evaluation/score.{system}.run{run}.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(30),
    params:
        version=(version("corpus", "detokenize"), version("evaluation", "bleu")),
        sets=lambda w, input: " ".join("=".join(parts) for parts in zip(SETS, input.reference, input.plain_reference)),
        case=f"{KEEP_CASE} {switch('lowercase', config['text']['lowercase'])}",
        folder=lambda w, output: os.path.dirname(output[0]),
    shell:
        "rnnsmt evaluation score-run --run-dir {params.folder} --set {params.sets} --lang "
        f"{TARGET} {{params.case}} "
        "--system {wildcards.system} --run {wildcards.run} &> {log:q}"
