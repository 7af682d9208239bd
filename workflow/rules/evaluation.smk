# Decoding of every set with every tuned system, scores, Table 1 and its provenance.
import json

SCORES = expand(f"{RUN}/{{set}}.bleu.json", system=settings.compare, run=RUNS, set=SETS)
NETWORK_NAMES = systems.of_every_training("{name}{n}") + systems.lstm_names
JOINT = " ".join(f"--joint {name}={'+'.join(parts)}" for name, parts in settings.evaluation.joint.items())
METRICS = " ".join(settings.evaluation.metrics)
KEEP_CASE = switch("no-detruecase", settings.text.lowercase or not settings.text.truecase)


if "decoding" in MOSES_PARTS:

    rule moses_decode:
        input:
            ini=expand(f"{RUN}/moses.ini", run=RUNS, allow_missing=True),
            lm=LM,
            network=lambda w: systems.networks_in_search(w.system),
            tables=lambda w: systems.table_files(w.system, "all"),
            source=[texts.set_text("preprocessed", name, SOURCE) for name in SETS],
        output:
            text=of_every_run("output"),
            report=of_every_run("decode.json"),
            details=of_every_run("details"),
        log:
            "results/logs/evaluation/moses.{system}.log",
            program="results/logs/evaluation/moses.{system}.programs.log",
        wildcard_constraints:
            system=any_of(systems.phrase_based),
        threads: SEARCH_THREADS
        resources:
            mem_mb=megabytes(1500, 60),
            runtime=minutes(240 * len(SETS) * len(RUNS)),
        params:
            version=version("moses", "decode"),
            home=MOSES_HOME,
            limits=systems.moses_limits(),
            tables=lambda w, input: systems.table_directories(w.system, input.tables),
        shell:
            "rnnsmt moses decode --moses-home {params.home:q} --ini {input.ini:q} --model-dir {params.tables:q} "
            "--input {input.source:q} --output {output.text:q} --report {output.report:q} "
            "--output-details {output.details:q} {params.limits} --threads {threads} "
            "--program-log {log.program:q} &> {log[0]:q}"

else:

    # One process decodes all runs and sets, and loads each model once. details: segmentation of the translations into
    # phrases.
    rule decode:
        input:
            ini=expand(f"{RUN}/moses.ini", run=RUNS, allow_missing=True),
            lm=LM_BINARY,
            network=lambda w: systems.networks_in_search(w.system),
            tables=lambda w: systems.table_files(w.system, "all"),
            source=[texts.set_text("preprocessed", name, SOURCE) for name in SETS],
        output:
            text=of_every_run("output"),
            report=of_every_run("decode.json"),
            details=of_every_run("details"),
        log:
            "results/logs/evaluation/decode.{system}.log",
        wildcard_constraints:
            system=any_of(systems.phrase_based),
        threads: SEARCH_THREADS
        resources:
            **SEARCH_ON_DEVICE,
            mem_mb=DECODING_MB,
            runtime=minutes(240 * len(SETS) * len(RUNS)),
        params:
            version=version("search", "decode"),
            limits=lambda w: systems.search_options(w.system),
            tables=lambda w, input: systems.table_directories(w.system, input.tables),
        shell:
            "rnnsmt search decode --ini {input.ini:q} --model-dir {params.tables:q} "
            "--input {input.source:q} --output {output.text:q} --report {output.report:q} --output-details {output.details:q} "
            "{params.limits} --device {resources.device} --threads {threads} &> {log:q}"


# The reference of a tokenised corpus is detokenised like the output.
rule detokenize_reference:
    input:
        lambda w: texts.set_text("tokenized", w.set, TARGET),
    output:
        f"results/corpus/detokenized/{{set}}.{TARGET}.gz",
    log:
        "results/logs/evaluation/detokenize_reference.{set}.log",
    resources:
        mem_mb=megabytes(200),
        runtime=minutes(30),
    params:
        version=version("corpus", "detokenize"),
    shell:
        f"rnnsmt corpus detokenize --lang {TARGET} --no-detruecase --input {{input:q}} --output {{output:q}} &> {{log:q}}"


# Detruecased tokens for tokenised BLEU, detokenised text for sacreBLEU, and both scores.
rule score:
    input:
        text=of_every_run("output"),
        decode=of_every_run("decode.json"),
        reference=[texts.set_text("tokenized", name, TARGET) for name in SETS],
        plain_reference=[texts.plain_reference(name) for name in SETS],
    output:
        tokens=of_every_run("tokens"),
        detokenized=of_every_run("detokenized"),
        scores=of_every_run("bleu.json"),
    log:
        "results/logs/evaluation/score.{system}.log",
    resources:
        mem_mb=megabytes(350),
        runtime=minutes(30),
    params:
        version=version("evaluation", "score"),
        metrics=METRICS,
        packages=registries.METRICS.packages(settings.evaluation.metrics),
        detokenize=version("corpus", "detokenize"),
        sets=lambda w, input: SETS,  # another order is no reason to score again
        case=f"{KEEP_CASE} {switch('lowercase', settings.text.lowercase)}",
    shell:
        "rnnsmt evaluation score --hypothesis {input.text:q} --reference {input.reference:q} "
        "--detok-reference {input.plain_reference:q} --decode-report {input.decode:q} --test-set {params.sets} "
        f"--detokenize --lang {TARGET} {{params.case}} --metrics {{params.metrics}} --system {{wildcards.system}} "
        "--output-tokens {output.tokens:q} --output-detokenized {output.detokenized:q} --output {output.scores:q} "
        "&> {log:q}"


rule table1:
    input:
        scores=SCORES,
        histories=expand(f"{RUN}/history.json", system=systems.compared, run=RUNS),
    output:
        tsv="results/table1.tsv",
        json="results/table1.json",
        contrasts="results/table1.contrasts.tsv",
        md="results/table1.md",
        html=report(
            "results/table1.html",
            caption="../report/table1.rst",
            category="Table 1",
        ),
    log:
        "results/logs/report/table1.log",
    resources:
        mem_mb=megabytes(450),
        runtime=minutes(120),
    params:
        version=version("evaluation", "table"),
        metrics=METRICS,
        sets=in_order(SETS),
        joint=JOINT,
        paper=switch("paper", settings.evaluation.paper),
        features=systems.table_features(settings.compare),
        trainings=len(TRAININGS),
        title="Table 1: BLEU",
        tuning=systems.tuning_text(),
        provenance="--provenance provenance.json",
    shell:
        "rnnsmt evaluation table --scores {input.scores:q} --history {input.histories:q} {params.joint} --features {params.features} "
        "--trainings {params.trainings} --dev-set dev --title {params.title:q} --tuning {params.tuning:q} "
        "--metrics {params.metrics} {params.paper} {params.provenance} --output-tsv {output.tsv:q} --output-json {output.json:q} "
        "--output-contrasts {output.contrasts:q} --output-md {output.md:q} --output-html {output.html:q} &> {log:q}"


# Table 2: the systems of Sutskever et al. (2014), and phrase-based systems rescored by their LSTMs; not part of the
# default target. configs/seq2seq.yaml defines them.
if settings.seq2seq.compare:

    use rule table1 as table2 with:
        input:
            scores=expand(f"{RUN}/{{set}}.bleu.json", system=settings.seq2seq.compare, run=RUNS, set=SETS),
            histories=[],
        output:
            tsv="results/table2.tsv",
            json="results/table2.json",
            contrasts="results/table2.contrasts.tsv",
            md="results/table2.md",
            html="results/table2.html",
        log:
            "results/logs/report/table2.log",
        params:
            features=systems.table_features(settings.seq2seq.compare),
            title="Table 2: BLEU with LSTMs",
            provenance="",


rule provenance:
    input:
        scores=SCORES,
        ini=expand(f"{RUN}/moses.ini", system=systems.tuned, run=RUNS),
        tables=[LM, *(path for name in systems.compared for path in systems.model_files(name))],
        models=systems.of_every_training("results/{name}/network{n}/model.safetensors") + systems.lstm_models,
        histories=systems.of_every_training("results/{name}/network{n}/history.json") + systems.lstm_histories,
        corpora=given(texts.raw_files()),
        prepared=[f"results/corpus/tokenized/{name}.report.json" for name in texts.corpora],
        alignment=given(settings.alignment.external or []),
        references=[
            path for name in SETS for path in (texts.set_text("tokenized", name, TARGET), texts.plain_reference(name))
        ],
    output:
        report(
            "results/provenance.json",
            caption="../report/provenance.rst",
            category="Table 1",
        ),
    log:
        "results/logs/report/provenance.log",
    resources:
        mem_mb=megabytes(250),
        runtime=minutes(60),
    params:
        version=version("evaluation", "provenance"),
        joint=JOINT,
        networks=lambda w, input: " ".join(
            f"--network {shlex.quote('='.join([name, model, history]))}"
            for name, model, history in zip(NETWORK_NAMES, input.models, input.histories)
        ),
        config=json.dumps(config, sort_keys=True),
    shell:
        "rnnsmt evaluation provenance --scores {input.scores:q} {params.joint} {params.networks} "
        "--ini {input.ini:q} --inputs {input.corpora:q} {input.alignment:q} {input.references:q} "
        "--prepared {input.prepared:q} --config {params.config:q} --output {output:q} "
        + (f"--moses-home {shlex.quote(MOSES_HOME)} " if MOSES_PARTS else "")
        + "&> {log:q}"
