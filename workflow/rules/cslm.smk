# The continuous-space language model: trained on the text of the n-gram LM with the RNN's target shortlist; the search
# queries it in addition to the n-gram LM.
from rnnsmt.cslm.settings import PRESETS as CSLM_PRESETS

CSLM_MODEL = "results/cslm/network{network}/model.safetensors"
CSLM_TEXT_FILES = [f"results/cslm/text/{name}" for name in ("text.json", "vocab.txt", "words.npy", "offsets.npy")]


rule cslm_prepare:
    input:
        text=texts.lm_texts(),
        bitext=texts.training_text(TARGET),
    output:
        CSLM_TEXT_FILES,
    log:
        "results/logs/cslm/prepare.log",
    resources:
        mem_mb=megabytes(150),
        runtime=minutes(15, 0.05),
    params:
        version=version("cslm", "prepare"),
        texts=in_order(texts.lm_texts()),
        vocab_size=settings.rnn.vocab_size,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt cslm prepare --input {input.text:q} --vocab-size {params.vocab_size} "
        "--vocabulary-text {input.bitext:q} --output-dir {params.directory:q} &> {log:q}"


# Training that was killed, or stopped before its time limit, resumes from the last checkpoint.
rule cslm_train:
    input:
        CSLM_TEXT_FILES,
    output:
        model=CSLM_MODEL,
        history="results/cslm/network{network}/history.json",
    log:
        "results/logs/cslm/train.{network}.log",
    priority: 5
    threads: TRAINING_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=by_preset("cslm", 600, 2800, 8000),
        runtime=longest,
    params:
        version=version("cslm", "train"),
        preset=settings.cslm.preset,
        preset_says=CSLM_PRESETS[settings.cslm.preset].as_dict(),
        settings=settings_options(settings.cslm.settings),
        seed=lambda w: systems.network_seed(w.network),
        text=subpath(input[0], parent=True),
        directory=subpath(output.model, parent=True),
    shell:
        "rnnsmt cslm train --text {params.text:q} --preset {params.preset} {params.settings} --seed {params.seed} "
        "--output-model {output.model:q} --output-history {output.history:q} --checkpoint-dir {params.directory:q}/checkpoint "
        "--device {resources.device} --threads {threads} "
        "--time-limit $(({resources.runtime} * 60)) &> {log:q}"


rule cslm_perplexity:
    input:
        model=CSLM_MODEL,
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
        version=version("cslm", "perplexity"),
    shell:
        "rnnsmt cslm perplexity --model {input.model:q} --input {input.text:q} --lm {input.lm:q} --output {output:q} "
        "--device {resources.device} --threads {threads} &> {log:q}"


# CSLM scores (ln p) of the translations of n-best lists, as in Schwenk (2007).
rule cslm_rescore:
    input:
        models=systems.ensemble_of_every_run("cslm", 1),
        nbest=of_every_run("nbest.gz"),
    output:
        of_every_run("cslm.1.nbest.gz"),
    log:
        "results/logs/cslm/rescore.{system}.log",
    wildcard_constraints:
        system=any_of(systems.phrase_based),
    threads: SEARCH_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=by_preset("cslm", 600, 1600, 4000),
        runtime=longest,
    params:
        version=version("cslm", "rescore"),
        models=lambda w, input: systems.ensemble_options("cslm", 1, input.models, len(SETS)),
        unknown=settings.cslm.unknown,
    shell:
        "rnnsmt cslm rescore {params.models} --nbest {input.nbest:q} --output {output:q} --unknown {params.unknown} "
        "--device {resources.device} --threads {threads} &> {log:q}"
