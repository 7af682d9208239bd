# The neural network joint model: trained on the bitext of the phrase extraction, with the links of the first aligner
# and the RNN's shortlists. The search queries it in addition to the n-gram LM.
from rnnsmt.nnjm.settings import PRESETS as NNJM_PRESETS

EXAMPLE_FILES = [
    f"results/nnjm/examples/{name}"
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
        "results/logs/nnjm/prepare.log",
    resources:
        mem_mb=megabytes(300, 2),
        runtime=minutes(15, 0.05),
    params:
        version=version("nnjm", "prepare"),
        vocab_size=settings.rnn.vocab_size,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt nnjm prepare --source {input.source:q} --target {input.target:q} --alignment {input.alignment:q} "
        "--vocab-size {params.vocab_size} --output-dir {params.directory:q} &> {log:q}"


# Training that was killed, or stopped before its time limit, resumes from the last checkpoint.
rule nnjm_train:
    input:
        EXAMPLE_FILES,
    output:
        model="results/nnjm/network{network}/model.safetensors",
        history="results/nnjm/network{network}/history.json",
    log:
        "results/logs/nnjm/train.{network}.log",
    priority: 5
    threads: TRAINING_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=by_preset("nnjm", 900, 1700, 8000),
        runtime=longest,
    params:
        version=version("nnjm", "train"),
        preset=settings.nnjm.preset,
        preset_says=NNJM_PRESETS[settings.nnjm.preset].as_dict(),
        settings=settings_options(settings.nnjm.settings),
        seed=lambda w: systems.network_seed(w.network),
        examples=subpath(input[0], parent=True),
        directory=subpath(output.model, parent=True),
    shell:
        "rnnsmt nnjm train --examples {params.examples:q} --preset {params.preset} {params.settings} --seed {params.seed} "
        "--output-model {output.model:q} --output-history {output.history:q} --checkpoint-dir {params.directory:q}/checkpoint "
        "--device {resources.device} --threads {threads} "
        "--time-limit $(({resources.runtime} * 60)) &> {log:q}"
