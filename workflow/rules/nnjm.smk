# The neural network joint model: trained on the bitext of the phrase extraction, with the links of the first aligner
# and the RNN's shortlists. The search queries the direct model in addition to the n-gram LM; models of other directions
# rescore n-best lists.
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS

EXAMPLE_FILES = [
    f"results/{{nnjm}}/examples/{name}"
    for name in (
        "examples.json",
        "affiliations.npy",
        *(f"vocab.{side}.txt" for side in ("source", "target")),
        *(f"{side}.{part}.npy" for side in ("source", "target") for part in ("words", "offsets")),
    )
]


rule nnjm_prepare:
    input:
        source=texts.training_text(SOURCE),
        target=texts.training_text(TARGET),
        alignment=ALIGNED[0],
    output:
        EXAMPLE_FILES,
    log:
        "results/logs/{nnjm}/prepare.log",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory("nnjm_prepare"),
        runtime=minutes("nnjm_prepare"),
    params:
        version=version("nnjm", "prepare"),
        vocab_size=config["rnn"]["vocab_size"],
        direction=lambda w: NNJM_DIRECTIONS[w.nnjm],
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt nnjm prepare --source {input.source:q} --target {input.target:q} --alignment {input.alignment:q} "
        "--vocab-size {params.vocab_size} --direction {params.direction} --output-dir {params.directory:q} &> {log:q}"


# Training that was killed, or stopped before its time limit, resumes from the last checkpoint.
rule nnjm_train:
    input:
        EXAMPLE_FILES,
    output:
        model="results/{nnjm}/network{network}/model.pt",
        history="results/{nnjm}/network{network}/history.json",
    log:
        "results/logs/{nnjm}/train.{network}.log",
    priority: 5
    conda:
        TORCH_ENV
    threads: machine.beside_tuning(16)
    resources:
        mem_mb=memory("nnjm_train"),
        runtime=LONG,
        gpu=GPU,
        device=DEVICE,
    params:
        version=version("nnjm", "train"),
        preset=config["nnjm"]["preset"],
        preset_says=NNJM_PRESETS[config["nnjm"]["preset"]].as_dict(),
        settings=settings_options(config["nnjm"]["settings"]),
        seed=lambda w: systems.network_seed(w.network),
        examples=subpath(input[0], parent=True),
        directory=subpath(output.model, parent=True),
    shell:
        "rnnsmt nnjm train --examples {params.examples:q} --preset {params.preset} {params.settings} --seed {params.seed} "
        "--output-model {output.model:q} --output-history {output.history:q} --checkpoint-dir {params.directory:q}/checkpoint "
        "--device {resources.device} --threads {threads} "
        "--time-limit $(({resources.runtime} * 60)) &> {log:q}"


# The network in Moses' format, if the Moses decoder is used for tuning or decoding.
rule nnjm_export:
    input:
        "results/nnjm/network{network}/model.pt",
    output:
        model="results/nnjm/network{network}/nplm/model.nplm",
        others=[f"results/nnjm/network{{network}}/nplm/{name}" for name in ("info", "vocab.source", "vocab.target")],
    log:
        "results/logs/nnjm/export.{network}.log",
    conda:
        TORCH_ENV
    resources:
        mem_mb=memory("nnjm_export"),
        runtime=minutes("nnjm_export"),
    params:
        version=version("nnjm", "export-nplm"),
        directory=subpath(output.model, parent=True),
    shell:
        "rnnsmt nnjm export-nplm --model {input:q} --output-dir {params.directory:q} &> {log:q}"


# Scores (ln p) of the translations of n-best lists by the joint models of all directions that the search has not used.
rule nnjm_rescore:
    input:
        models=lambda w: systems.list_models("nnjm", w.system),
        nbest=of_every_run("nbest.gz"),
        source=[texts.set_text("preprocessed", name, SOURCE) for name in SETS],
        tables=lambda w: systems.filtered_tables(w.system, "all"),
    output:
        of_every_run("nnjm.1.nbest.gz"),
    log:
        "results/logs/nnjm/rescore.{system}.log",
    wildcard_constraints:
        system=any_of(systems.phrase_based),
    conda:
        TORCH_ENV
    threads: machine.search_threads
    resources:
        mem_mb=memory("nnjm_rescore"),
        runtime=LONG,
        gpu=GPU,
        device=DEVICE,
    params:
        version=version("nnjm", "rescore"),
        models=lambda w: systems.list_model_options("nnjm", w.system, len(SETS)),
        source=lambda w, input: [path for _ in RUNS for path in input.source],
        unknown=config["nnjm"]["unknown"],
    shell:
        "rnnsmt nnjm rescore {params.models} --nbest {input.nbest:q} --source {params.source:q} "
        "--phrase-table {input.tables[0]:q} --output {output:q} --unknown {params.unknown} --device {resources.device} "
        "--threads {threads} &> {log:q}"
