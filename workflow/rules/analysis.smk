# Tables and figures of what the networks have learnt, comparisons of systems, and the report.
import itertools

from rnnsmt.config.features import label, network_titles, share_networks

HAS_RNN = "rnn" in systems.networks
PICTURES = [f"learning-{name}" for name in [*systems.networks, *systems.lstms]]
PICTURES += ["mert"] * bool(systems.compared) + ["scores-rnn"] * HAS_RNN
PICTURES += [f"bleu-curves-{name}" for name in texts.test if systems.lstms]
PICTURES += ["sentence-vectors"] if systems.lstms and settings.seq2seq.sentences else []
MAPS = ["words", "phrases"] if HAS_RNN else []
if not settings.evaluation.figures:
    PICTURES, MAPS = [], []
EXAMPLES = ["results/analysis/phrase-examples.json"] if HAS_RNN else []
COMPARISONS = [
    f"results/analysis/{system}.vs.{other}/{name}.json"
    for system in systems.compared
    for other in systems.smaller(system)
    for name in texts.test
]
NETWORK_TITLES = network_titles(
    [*FEATURES, *(name for system in settings.compare for name in systems.features(system))]
)
NETWORK_TITLES |= {name: label(name) for name in settings.seq2seq.networks}


rule learning_curve:
    input:
        lambda w: (
            [path for path in systems.lstm_histories if path.startswith(f"results/{w.name}/")]
            or systems.of_every_training("results/{name}/network{n}/history.json", [w.name])
        ),
    output:
        report(
            "results/figures/learning-{name}.png",
            caption="../report/learning.rst",
            category="Figures",
            labels=lambda w: {"figure": f"Learning curve, {NETWORK_TITLES[w.name]}"},
        ),
        "results/figures/learning-{name}.svg",
    log:
        "results/logs/analysis/learning-{name}.log",
    wildcard_constraints:
        name=any_of(NETWORK_TITLES),
    resources:
        mem_mb=megabytes(250),
        runtime=minutes(10),
    params:
        version=version("analysis", "history-curves"),
        histories=lambda w, input: [f"{NETWORK_TITLES[w.name]}={path}" for path in input],
    shell:
        "rnnsmt analysis history-curves --history {params.histories:q} --output {output:q} &> {log:q}"


rule tuning_curves:
    input:
        expand(f"{RUN}/history.json", system=systems.compared, run=RUNS),
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
    resources:
        mem_mb=megabytes(250),
        runtime=minutes(10),
    params:
        version=version("analysis", "history-curves"),
        systems=in_order(systems.compared),
        histories=lambda w, input: [
            f"{system}={history}" for (system, _), history in zip(itertools.product(systems.compared, RUNS), input)
        ],
    shell:
        "rnnsmt analysis history-curves --history {params.histories:q} --output {output:q} &> {log:q}"


# Figures 2 and 3 of Sutskever et al. (2014).
rule bleu_curves:
    input:
        systems=expand(f"{RUN}/{{set}}.tokens", system=settings.compare, run=RUNS, allow_missing=True),
        source=lambda w: texts.set_text("preprocessed", w.set, SOURCE),
        reference=lambda w: texts.set_text("tokenized", w.set, TARGET),
        text=texts.training_text(SOURCE),
    output:
        report(
            "results/figures/bleu-curves-{set}.png",
            caption="../report/bleu-curves.rst",
            category="Figures",
            labels={"figure": "BLEU by sentence length and word frequency rank, {set}"},
        ),
        "results/figures/bleu-curves-{set}.svg",
        json="results/analysis/bleu-curves-{set}.json",
    log:
        "results/logs/analysis/bleu-curves.{set}.log",
    resources:
        mem_mb=megabytes(400),
        runtime=minutes(60, 0.1),
    params:
        version=version("analysis", "bleu-curves"),
        systems=in_order(settings.compare),
        hypotheses=lambda w, input: [
            f"{system}={path}" for (system, _), path in zip(itertools.product(settings.compare, RUNS), input.systems)
        ],
        pictures=lambda w, output: output[:2],
    shell:
        "rnnsmt analysis bleu-curves --hypothesis {params.hypotheses:q} --reference {input.reference:q} "
        "--source {input.source:q} --rank-text {input.text:q} --output {params.pictures:q} "
        "--output-json {output.json:q} &> {log:q}"


rule sentence_vectors:
    input:
        model=systems.lstm_models[:1],
        sentences=settings.seq2seq.sentences or [],
    output:
        report(
            "results/figures/sentence-vectors.png",
            caption="../report/sentence-vectors.rst",
            category="Figures",
            labels={"figure": "Sentence vectors"},
        ),
        "results/figures/sentence-vectors.svg",
        json="results/analysis/sentence-vectors.json",
    log:
        "results/logs/analysis/sentence-vectors.log",
    resources:
        mem_mb=megabytes(3000),
        runtime=minutes(10),
    params:
        version=version("analysis", "sentence-vectors"),
        pictures=lambda w, output: output[:2],
    shell:
        "rnnsmt analysis sentence-vectors --model {input.model:q} --sentences {input.sentences:q} "
        "--output {params.pictures:q} --output-json {output.json:q} &> {log:q}"


rule score_scatter:
    input:
        pairs=PAIRS,
        table_scores=paths.TABLE_SCORES,
        scores=score_files("rnn", 1),
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
    resources:
        mem_mb=megabytes(350),
        runtime=minutes(10, 0.02),
    params:
        version=version("analysis", "score-scatter"),
        seed=settings.seed,
    shell:
        "rnnsmt analysis score-scatter --pairs {input.pairs:q} --table-scores {input.table_scores:q} --scores {input.scores:q} "
        "--seed {params.seed} --output {output:q} &> {log:q}"


# Comparison of a system with a system that lacks some of its features, sentence by sentence.
rule compare_systems:
    input:
        baseline=expand("results/systems/{other}/run{run}/{set}.tokens", run=RUNS, allow_missing=True),
        system=expand(f"{RUN}/{{set}}.tokens", run=RUNS, allow_missing=True),
        details=["results/systems/{other}/run1/{set}.details", "results/systems/{system}/run1/{set}.details"],
        ini="results/systems/{system}/run1/moses.ini",
        lm=LM_BINARY,
        network=lambda w: systems.search_models(systems.features(w.system), 1),
        tables=lambda w: systems.selected_tables(w.system, "all")[:1],
        source=lambda w: texts.set_text("preprocessed", w.set, SOURCE),
        reference=lambda w: texts.set_text("tokenized", w.set, TARGET),
    output:
        json="results/analysis/{system}.vs.{other}/{set}.json",
        md="results/analysis/{system}.vs.{other}/{set}.md",
    log:
        "results/logs/analysis/{system}.vs.{other}.{set}.log",
    wildcard_constraints:
        other=any_of(settings.systems),
    resources:
        **SEARCH_ON_DEVICE,
        mem_mb=search_megabytes(480, 6, neural=(300, 3000)),
        runtime=minutes(60),
    params:
        version=version("evaluation", "compare"),
        names=lambda w: [label(w.other), label(w.system)],
        trainings=lambda w: [len(set(systems.trainings_of(name))) for name in (w.other, w.system)],
        shared=lambda w: switch(
            "shared-networks", share_networks(systems.features(w.other), systems.features(w.system))
        ),
        tables=lambda w, input: Path(input.tables[0]).parent,
        columns=lambda w: systems.columns(systems.features(w.system)),
    shell:
        "rnnsmt evaluation compare --baseline {input.baseline:q} --hypothesis {input.system:q} --names {params.names:q} "
        "--trainings {params.trainings} {params.shared} --reference {input.reference:q} --source {input.source:q} "
        "--details {input.details:q} --ini {input.ini:q} --model-dir {params.tables:q} --columns {params.columns} "
        "--device {resources.device} --output-json {output.json:q} --output-md {output.md:q} &> {log:q}"


# Tables 2 and 3 of the paper.
rule phrase_examples:
    input:
        VOCABULARY_FILES,
        pairs=PAIRS,
        table_scores=paths.TABLE_SCORES,
        scores=score_files("rnn", 1),
        model="results/rnn/network1/model.safetensors",
    output:
        json="results/analysis/phrase-examples.json",
        md="results/analysis/phrase-examples.md",
    log:
        "results/logs/analysis/phrase-examples.log",
    resources:
        mem_mb=megabytes(600, 2),
        runtime=minutes(30, 0.05),
    params:
        version=version("analysis", "phrase-examples"),
        vocabularies=subpath(input[0], parent=True),
        seed=settings.seed,
    shell:
        "rnnsmt analysis phrase-examples --pairs {input.pairs:q} --table-scores {input.table_scores:q} "
        "--scores {input.scores:q} --model {input.model:q} --vocabularies {params.vocabularies:q} --seed {params.seed} "
        "--output-json {output.json:q} --output-md {output.md:q} &> {log:q}"


# Figures 4 and 5 of the paper.
rule embeddings:
    input:
        VOCABULARY_FILES,
        pairs=PAIRS,
        model="results/rnn/network1/model.safetensors",
    output:
        figure=report(
            "results/figures/{of}.png",
            caption="../report/embeddings.rst",
            category="Figures",
            labels={"figure": "t-SNE of source {of}"},
        ),
        svg="results/figures/{of}.svg",
        zooms=report(
            "results/figures/{of}-zooms.png",
            caption="../report/embeddings.rst",
            category="Figures",
            labels={"figure": "t-SNE of source {of}, enlarged views"},
        ),
        zooms_svg="results/figures/{of}-zooms.svg",
        json="results/analysis/{of}.json",
    log:
        "results/logs/analysis/{of}.log",
    wildcard_constraints:
        of="words|phrases",
    resources:
        mem_mb=megabytes(750, 2),
        runtime=minutes(60),
    params:
        version=version("analysis", "embeddings"),
        vocabularies=subpath(input[0], parent=True),
        sample=2000 if is_demo_corpus(settings) else 5000,
        seed=settings.seed,
    shell:
        "rnnsmt analysis embeddings --of {wildcards.of} --model {input.model:q} --pairs {input.pairs:q} --vocabularies {params.vocabularies:q} "
        "--sample {params.sample} --seed {params.seed} --output {output.figure:q} {output.svg:q} "
        "--output-zooms {output.zooms:q} {output.zooms_svg:q} --output-json {output.json:q} &> {log:q}"


# The report: all results on one page.
rule report_page:
    input:
        table="results/table1.json",
        provenance="results/provenance.json",
        figures=[f"results/figures/{name}.svg" for name in [*PICTURES, *(f"{name}-zooms" for name in MAPS)]],
        maps=[f"results/analysis/{name}.json" for name in MAPS],
        comparisons=COMPARISONS,
        examples=EXAMPLES,
        overlap="results/corpus/overlap.json",
    output:
        report(
            "results/report/index.html",
            caption="../report/report.rst",
            category="Report",
        ),
    log:
        "results/logs/report/page.log",
    resources:
        mem_mb=megabytes(300, 5),
        runtime=minutes(10),
    params:
        version=version("analysis", "report"),
        examples=lambda w, input: ["--examples", *input.examples] if input.examples else [],
        logs=lambda w, input: Path(input.table).parent / "logs",
        jobs=lambda w: names_of_logs(
            [*CORPORA, *SELECTED, *ALIGNMENTS, *TABLES, *TRAINED, *MOSES_MODELS, *TUNED, *TRANSLATIONS, *RESULTS]
        ),
    shell:
        "rnnsmt analysis report --table {input.table:q} --provenance {input.provenance:q} "
        "--figures {input.figures:q} --maps {input.maps:q} --comparisons {input.comparisons:q} {params.examples:q} "
        "--overlap {input.overlap:q} --logs {params.logs:q} --jobs {params.jobs:q} --output {output:q} &> {log:q}"


# Scores, Table 1, figures, comparisons, and the report.
RESULTS = [
    *SCORES,
    *(f"results/table1.{suffix}" for suffix in ("tsv", "json", "contrasts.tsv", "md", "html")),
    "results/provenance.json",
    *(f"results/figures/{name}.{suffix}" for name in PICTURES for suffix in ("png", "svg")),
    *(f"results/analysis/{name}.json" for name in PICTURES if name.startswith(("bleu-curves", "sentence"))),
    *(
        f"results/figures/{name}.{suffix}"
        for name in [*MAPS, *(f"{name}-zooms" for name in MAPS)]
        for suffix in ("png", "svg")
    ),
    *(f"results/analysis/{name}.json" for name in MAPS),
    *(path for path in COMPARISONS),
    *(str(Path(path).with_suffix(".md")) for path in [*COMPARISONS, *EXAMPLES]),
    *EXAMPLES,
    "results/report/index.html",
]


rule results:
    input:
        RESULTS,
    localrule: True
