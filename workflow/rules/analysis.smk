# Pictures of what was learnt, for results/figures and the report.
import itertools

FIGURES = [f"results/figures/learning-{name}.png" for name in NETWORKS]
FIGURES += ["results/figures/mert.png"]
FIGURES += ["results/figures/scores-rnn.png"] if "rnn" in NETWORKS else []
NETWORK_NAMES = {"rnn": "RNN Encoder–Decoder", "cslm": "CSLM"} | {name: f"Scorer {name}" for name in config["scorers"]}


rule learning_curve:
    input:
        lambda w: of_every_training("results/{name}/network{n}/history{left_out}.json", [w.name]),
    output:
        report(
            "results/figures/learning-{name}.png",
            caption="../report/learning.rst",
            category="Figures",
            labels=lambda w: {"figure": f"Learning curve, {NETWORK_NAMES[w.name]}"},
        ),
        "results/figures/learning-{name}.svg",
    log:
        "results/logs/analysis/learning-{name}.log",
    wildcard_constraints:
        name="|".join(NETWORK_NAMES),
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10),
    params:
        version=version("analysis", "learning-curve"),
        title=lambda w: NETWORK_NAMES[w.name],
    shell:
        "rnnsmt analysis learning-curve --history {input:q} --title {params.title:q} --output {output:q} &> {log:q}"


rule mert_curves:
    input:
        expand(f"{RUN}/history.json", system=config["compare"], run=RUNS),
    output:
        report(
            "results/figures/mert.png",
            caption="../report/mert.rst",
            category="Figures",
            labels={"figure": "Tuning"},
        ),
        "results/figures/mert.svg",
    log:
        "results/logs/analysis/mert.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10),
    params:
        version=version("analysis", "mert-curves"),
        histories=lambda w, input: [
            f"{system}={history}" for (system, _), history in zip(itertools.product(config["compare"], RUNS), input)
        ],
    shell:
        "rnnsmt analysis mert-curves --history {params.histories:q} --output {output:q} &> {log:q}"


rule score_scatter:
    input:
        phrase_table=f"results/model/{PHRASE_TABLE}",
        scores=column("rnn", 1),
    output:
        report(
            "results/figures/scores-rnn.png",
            caption="../report/scores.rst",
            category="Figures",
            labels={"figure": "Scores of phrase pairs"},
        ),
        "results/figures/scores-rnn.svg",
    log:
        "results/logs/analysis/scores.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(2000),
        runtime=minutes(10, 0.02),
    params:
        version=version("analysis", "score-scatter"),
        seed=config["seed"],
    shell:
        "rnnsmt analysis score-scatter --phrase-table {input.phrase_table:q} --scores {input.scores:q} "
        "--seed {params.seed} --output {output:q} &> {log:q}"
