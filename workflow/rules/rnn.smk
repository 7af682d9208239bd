# The RNN Encoder-Decoder: trained on the phrase table of the baseline, scores every pair of it. There are
# networks.seeds trainings, results/rnn/network1, network2 ...
from rnnsmt.rnn.settings import PRESETS as RNN_PRESETS


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
        version=version("rnn", "prepare"),
        vocab_size=settings.rnn.vocab_size,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt rnn prepare --source {input.source:q} --target {input.target:q} "
        "--vocab-size {params.vocab_size} --output-dir {params.directory:q} &> {log:q}"


# The values of the preset are params, although the command contains only its name: if they change, the network is
# trained again. Training has a high priority, because most other jobs depend on it. Training that was killed, or
# stopped before its time limit, resumes from the last checkpoint.
rule rnn_train:
    input:
        VOCABULARY_FILES,
        pairs=PAIRS,
    output:
        model="results/rnn/network{network}/model.safetensors",
        history="results/rnn/network{network}/history.json",
    log:
        "results/logs/rnn/train.{network}.log",
    priority: 5
    threads: TRAINING_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=by_preset("rnn", 1200, 3000, 8500),
        runtime=longest,
    params:
        version=version("rnn", "train"),
        preset=settings.rnn.preset,
        preset_says=RNN_PRESETS[settings.rnn.preset].as_dict(),
        settings=settings_options(settings.rnn.settings),
        seed=lambda w: systems.network_seed(w.network),
        vocabularies=subpath(input[0], parent=True),
        directory=subpath(output.model, parent=True),
    shell:
        "rnnsmt rnn train --pairs {input.pairs:q} --vocabularies {params.vocabularies:q} --preset {params.preset} {params.settings} --seed {params.seed} "
        "--output-model {output.model:q} --output-history {output.history:q} "
        "--checkpoint-dir {params.directory:q}/checkpoint "
        "--device {resources.device} --threads {threads} "
        "--time-limit $(({resources.runtime} * 60)) &> {log:q}"
