# The networks: their data, their training, and what they score. Columns of networks are in phrases.smk, systems of LSTMs in
# seq2seq.smk.
#
# rnn: trained on the phrase pairs of the baseline, scores every pair. cslm: trained on the text of the n-gram LM with the
# RNN's target shortlist; the search queries it in addition to the n-gram LM. nnjm: trained on the bitext of the phrase
# extraction, with the links of the first aligner and the RNN's shortlists, and queried as the CSLM. seq2seq: LSTMs, trained
# on the bitext.
CSLM_TEXT_FILES = [f"results/cslm/text/{name}" for name in ("text.json", "vocab.txt", "words.npy", "offsets.npy")]
EXAMPLE_FILES = [
    f"results/nnjm/examples/{name}"
    for name in (
        "examples.json",
        "affiliations.npy",
        *(f"vocab.{side}.txt" for side in ("source", "target")),
        *(f"{side}.{part}.npy" for side in ("source", "target") for part in ("words", "offsets")),
    )
]
SENTENCE_FILES = [
    f"{SENTENCES}/sentences.json",
    *(f"{SENTENCES}/vocab.{side}.txt" for side in ("source", "target")),
    *(f"{SENTENCES}/{side}.{part}.npy" for side in ("source", "target") for part in ("words", "offsets")),
]

# The texts whose n-best lists are rescored, in the order of of_every_run.
LIST_SOURCES = [texts.set_text("preprocessed", name, SOURCE) for name in SETS]

# The files of the training data of networks, by the names in Network.data. The path of the data is the file, if there is one,
# otherwise the directory of the files.
DATA_FILES = {
    "pairs": PAIRS,
    "vocabularies": VOCABULARY_FILES,
    "text": CSLM_TEXT_FILES,
    "examples": EXAMPLE_FILES,
    "sentences": SENTENCE_FILES,
}


rule rnn_prepare:
    input:
        source=texts.training_text(SOURCE),
        target=texts.training_text(TARGET),
    output:
        VOCABULARY_FILES,
        f"{VOCABULARIES}/vocabularies.json",
    log:
        "results/logs/rnn/prepare.log",
    resources:
        mem_mb=megabytes(400, 0.5),
        runtime=minutes(15, 0.02),
    params:
        version=version("networks", "prepare"),
        vocab_size=settings.rnn.vocab_size,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt networks prepare --network rnn --source {input.source:q} --target {input.target:q} "
        "--vocab-size {params.vocab_size} --output-dir {params.directory:q} &> {log:q}"


rule cslm_prepare:
    input:
        text=texts.lm_texts(),
        bitext=texts.training_text(TARGET),
    output:
        CSLM_TEXT_FILES,
    log:
        "results/logs/cslm/prepare.log",
    resources:
        mem_mb=megabytes(200, 0.5),
        runtime=minutes(15, 0.05),
    params:
        version=version("networks", "prepare"),
        texts=in_order(texts.lm_texts()),
        vocab_size=settings.rnn.vocab_size,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt networks prepare --network cslm --target {input.text:q} --vocab-size {params.vocab_size} "
        "--vocabulary-text {input.bitext:q} --output-dir {params.directory:q} &> {log:q}"


rule nnjm_prepare:
    input:
        source=texts.training_text(SOURCE),
        target=texts.training_text(TARGET),
        alignment=ALIGNED[0],
    output:
        EXAMPLE_FILES,
    log:
        "results/logs/nnjm/prepare.log",
    resources:
        mem_mb=megabytes(300, 2),
        runtime=minutes(15, 0.05),
    params:
        version=version("networks", "prepare"),
        vocab_size=settings.rnn.vocab_size,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt networks prepare --network nnjm --source {input.source:q} --target {input.target:q} "
        "--alignment {input.alignment:q} --vocab-size {params.vocab_size} --output-dir {params.directory:q} &> {log:q}"


rule seq2seq_prepare:
    input:
        source=texts.training_text(SOURCE),
        target=texts.training_text(TARGET),
    output:
        SENTENCE_FILES,
    log:
        "results/logs/seq2seq/prepare.log",
    resources:
        mem_mb=megabytes(150, 3),
        runtime=minutes(15, 0.1),
    params:
        version=version("networks", "prepare"),
        sizes=f"--vocab-size {settings.seq2seq.source_vocab_size} {settings.seq2seq.target_vocab_size} "
        f"--max-length {settings.text.max_length}",
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt networks prepare --network seq2seq --source {input.source:q} --target {input.target:q} "
        "{params.sizes} --output-dir {params.directory:q} &> {log:q}"


# There are networks.seeds trainings of each network, results/{name}/network1, network2 ...
#
# The values of the preset are params, although the command contains only its name: if they change, the network is
# trained again. Training has a high priority, because most other jobs depend on it. Training that was killed, or
# stopped before its time limit, resumes from the last checkpoint.
rule train_network:
    input:
        unpack(lambda w: {name: DATA_FILES[name] for name in NETWORKS[systems.kind_of(w.name)].data}),
    output:
        model="results/{name}/network{network}/model.safetensors",
        history="results/{name}/network{network}/history.json",
    log:
        "results/logs/{name}/train.{network}.log",
    wildcard_constraints:
        name=any_of(systems.trainable),
    priority: 5
    threads: TRAINING_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=network_megabytes("training"),
        runtime=longest,
    params:
        version=lambda w: network_version("train", systems.kind_of(w.name)),
        kind=lambda w: systems.kind_of(w.name),
        data=lambda w, input: [
            files if isinstance(files, str) else Path(files[0]).parent
            for files in (input[name] for name in NETWORKS[systems.kind_of(w.name)].data)
        ],
        preset=lambda w: systems.preset(w.name),
        preset_says=lambda w: NETWORKS[systems.kind_of(w.name)].presets[systems.preset(w.name)].as_dict(),
        settings=lambda w: settings_options(systems.network_settings(w.name)),
        seed=lambda w: systems.network_seed(w.network),
        directory=subpath(output.model, parent=True),
    shell:
        "rnnsmt networks train --network {params.kind} --data {params.data:q} --preset {params.preset} {params.settings} "
        "--seed {params.seed} --output-model {output.model:q} --output-history {output.history:q} "
        "--checkpoint-dir {params.directory:q}/checkpoint --device {resources.device} --threads {threads} "
        "--time-limit $(({resources.runtime} * 60)) &> {log:q}"


rule cslm_perplexity:
    input:
        model="results/cslm/network{network}/model.safetensors",
        text=texts.set_text("preprocessed", "dev", TARGET),
        lm=LM,
    output:
        "results/cslm/network{network}/perplexity.json",
    log:
        "results/logs/cslm/perplexity.{network}.log",
    resources:
        **ON_DEVICE,
        mem_mb=megabytes(600 + CUDA_MB, 10),
        runtime=minutes(60),
    params:
        version=version("networks", "perplexity"),
    shell:
        "rnnsmt networks perplexity --model {input.model:q} --input {input.text:q} --compare {input.lm:q} --output {output:q} "
        "--device {resources.device} --threads {threads} &> {log:q}"


# Scores (ln p) of the translations of n-best lists by the CSLM, as in Schwenk (2007), or by LSTMs, appended as a feature; they
# do not depend on its weight.
rule rescore:
    input:
        models=lambda w: systems.ensemble_of_every_run(w.name, w.ensemble),
        nbest=of_every_run("nbest.gz"),
        source=lambda w: LIST_SOURCES if NETWORKS[systems.kind_of(w.name)].reads_source else [],
    output:
        of_every_run("{name}.{ensemble}.nbest.gz"),
    log:
        "results/logs/{name}/rescore.{system}.{ensemble}.log",
    wildcard_constraints:
        system=any_of(systems.phrase_based),
        name=any_of(systems.trainable),
    threads: SEARCH_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=network_megabytes("lists"),
        runtime=longest,
    params:
        version=lambda w: version("networks", "rescore", NETWORKS.package(systems.kind_of(w.name))),
        models=lambda w, input: systems.ensemble_options(w.name, w.ensemble, input.models, len(SETS)),
        source=lambda w, input: ["--source", *(path for _ in RUNS for path in input.source)] if input.source else [],
        unknown=lambda w: f"--unknown {settings.cslm.unknown}" if w.name == "cslm" else "",
    shell:
        "rnnsmt networks rescore {params.models} --nbest {input.nbest:q} {params.source:q} --output {output:q} {params.unknown} "
        "--device {resources.device} --threads {threads} &> {log:q}"


# The networks of all systems, with their data, learning curves and scores of phrase pairs.
TRAINED = [
    *systems.of_every_training("results/{name}/network{n}/model.safetensors"),
    *systems.of_every_training("results/{name}/network{n}/history.json"),
    *(path for name in systems.columns_used for n in TRAININGS for path in score_files(name, n)),
    *(
        [*VOCABULARY_FILES, f"{VOCABULARIES}/vocabularies.json"]
        if any(COLUMNS[name].uses_vocabularies for name in systems.columns_used)
        else []
    ),
    *(CSLM_TEXT_FILES if "cslm" in systems.networks else []),
    *expand("results/cslm/network{n}/perplexity.json", n=TRAININGS if "cslm" in systems.networks else []),
    *(EXAMPLE_FILES if "nnjm" in systems.networks else []),
    *(SENTENCE_FILES if systems.lstm_models else []),
    *systems.lstm_models,
    *systems.lstm_histories,
]


rule networks:
    input:
        TRAINED,
    localrule: True
