# Table 1, and where its figures come from.
import json

SCORES = expand(
    "results/systems/{system}/run{run}/{set}.bleu.json",
    system=config["compare"],
    run=RUNS,
    set=SETS,
)
JOINT = " ".join(f"--joint {name}={'+'.join(parts)}" for name, parts in config["evaluation"]["joint"].items())


rule table1:
    input:
        SCORES,
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
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(2000),
        runtime=minutes(120),
    params:
        version=version("evaluation", "table"),
        joint=JOINT,
        paper=switch("paper", [SOURCE, TARGET] == ["en", "fr"]),
        features=" ".join(f"{name}={'+'.join(features(name))}" for name in config["compare"]),
    shell:
        "rnnsmt evaluation table --scores {input:q} {params.joint} --features {params.features} --dev-set dev "
        "{params.paper} --provenance provenance.json "
        "--output-tsv {output.tsv:q} --output-json {output.json:q} --output-contrasts {output.contrasts:q} --output-md {output.md:q} "
        "--output-html {output.html:q} &> {log:q}"


rule provenance:
    input:
        scores=SCORES,
        ini=expand("results/systems/{system}/run{run}/moses.ini", system=config["compare"], run=RUNS),
        networks=[f"results/{name}/{file}" for name in NETWORKS for file in ("model.pt", "history.json")],
        corpora=[side for corpus in CORPORA.values() for side in (corpus.source, corpus.target) if side],
        alignment=config["alignment"]["external"] or [],
        references=[path for name in SETS for path in (set_text("tokenized", name, TARGET), plain_reference(name))],
    output:
        report(
            "results/provenance.json",
            caption="../report/provenance.rst",
            category="Table 1",
        ),
    log:
        "results/logs/report/provenance.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(60),
    params:
        version=version("evaluation", "provenance"),
        joint=JOINT,
        networks=" ".join(f"--network {n}=results/{n}/model.pt=results/{n}/history.json" for n in NETWORKS),
        config=json.dumps(config, sort_keys=True),
    shell:
        "rnnsmt evaluation provenance --scores {input.scores:q} {params.joint} {params.networks} "
        "--inputs {input.corpora:q} {input.alignment:q} {input.references:q} --config {params.config:q} --output {output:q} &> {log:q}"
