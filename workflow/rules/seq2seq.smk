# LSTM encoder-decoders (Sutskever et al. 2014) translate on their own, or rescore the n-best lists of a phrase-based system,
# as the CSLM does. An ensemble of N consists of networks 1 to N; with networks.seeds, the second one consists of the next N,
# and so on.


# Translations by the networks alone; runs with the same networks have the same translations.
rule seq2seq_translate:
    input:
        models=lambda w: systems.ensemble_of_every_run(*systems.ensemble(w.system)),
        source=[texts.set_text("preprocessed", name, SOURCE) for name in SETS],
    output:
        text=of_every_run("output"),
        report=of_every_run("decode.json"),
    log:
        "results/logs/seq2seq/translate.{system}.log",
    wildcard_constraints:
        system=any_of(systems.lstms_alone),
    threads: SEARCH_THREADS
    resources:
        **ON_DEVICE,
        mem_mb=network_megabytes("lists", lambda w: systems.ensemble(w.system)[0]),
        runtime=minutes(240 * len(SETS)),
    params:
        version=version("seq2seq", "translate"),
        models=lambda w, input: systems.ensemble_options(*systems.ensemble(w.system), input.models),
        beam=lambda w: systems.beam(w.system),
    shell:
        "rnnsmt seq2seq translate {params.models} --input {input.source:q} --output {output.text:q} "
        "--report {output.report:q} --beam {params.beam} --device {resources.device} --threads {threads} &> {log:q}"


# N-best lists of a phrase-based system with the tuned weights of every run, for all systems that rescore them.
rule nbest_lists:
    input:
        ini=expand(f"{RUN}/moses.ini", run=RUNS, allow_missing=True),
        lm=LM_BINARY,
        network=lambda w: systems.networks_in_search(w.system),
        tables=lambda w: systems.selected_tables(w.system, "all"),
        source=[texts.set_text("preprocessed", name, SOURCE) for name in SETS],
    output:
        nbest=of_every_run("nbest.gz"),
        best=temp(of_every_run("nbest.output")),
    log:
        "results/logs/seq2seq/nbest.{system}.log",
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
        nbest=settings.seq2seq.nbest,
        tables=lambda w, input: systems.table_directories(w.system, input.tables),
    shell:
        "rnnsmt search decode --ini {input.ini:q} --model-dir {params.tables:q} "
        "--input {input.source:q} --output {output.best:q} --nbest {params.nbest} --nbest-file {output.nbest:q} "
        "{params.limits} --device {resources.device} --threads {threads} &> {log:q}"


# The feature that the lists have in addition starts with weight 0.
rule tune_lists:
    input:
        ini=lambda w: expand(f"{RUN}/moses.ini", system=systems.rescored_by(w.system), run=w.run),
        nbest=lambda w: systems.rescored_lists(w.system, w.run, "dev"),
        source=texts.set_text("preprocessed", "dev", SOURCE),
        reference=texts.set_text("preprocessed", "dev", TARGET),
    output:
        f"{RUN}/moses.ini",
    log:
        "results/logs/seq2seq/tune.{system}.{run}.log",
    wildcard_constraints:
        system=any_of(systems.tuned_on_lists),
    resources:
        mem_mb=megabytes(400, 25),
        runtime=minutes(120, 5),
    params:
        version=version("tuning", "optimize", registries.OPTIMIZERS.package(settings.tuning.optimizer)),
        options=systems.optimizer_options(),
        feature=lambda w: systems.list_feature(w.system),
        seed=lambda w: settings.seed + int(w.run),
    shell:
        "rnnsmt tuning optimize --ini {input.ini:q} --feature {params.feature}=0 --nbest {input.nbest:q} "
        "--source {input.source:q} --reference {input.reference:q} --seed {params.seed} {params.options} "
        "--threads {threads} --output-ini {output:q} &> {log:q}"


rule rerank:
    input:
        ini=expand(f"{RUN}/moses.ini", run=RUNS, allow_missing=True),
        nbest=lambda w: [systems.rescored_lists(w.system, run, name) for run in RUNS for name in SETS],
        source=LIST_SOURCES,
    output:
        text=of_every_run("output"),
        report=of_every_run("decode.json"),
    log:
        "results/logs/seq2seq/rerank.{system}.log",
    wildcard_constraints:
        system=any_of(systems.tuned_on_lists),
    resources:
        mem_mb=megabytes(300, 9 / len(RUNS)),
        runtime=minutes(60, 1),
    params:
        version=version("tuning", "rerank"),
        weights=[],
    shell:
        "rnnsmt tuning rerank --ini {input.ini:q} --nbest {input.nbest:q} --input {input.source:q} "
        "{params.weights:q} --output {output.text:q} --report {output.report:q} &> {log:q}"


# Weight 1 for the feature that the lists have in addition: the average of the system's score and the network's, with equal
# weights.
use rule rerank as rerank_evenly with:
    input:
        ini=lambda w: expand(f"{RUN}/moses.ini", system=systems.rescored_by(w.system), run=RUNS),
        nbest=lambda w: [systems.rescored_lists(w.system, run, name) for run in RUNS for name in SETS],
        source=LIST_SOURCES,
    output:
        text=of_every_run("output"),
        report=of_every_run("decode.json"),
        ini=expand(f"{RUN}/moses.ini", run=RUNS, allow_missing=True),
    wildcard_constraints:
        system=any_of(name for name in systems.rescored if name not in systems.tuned_on_lists),
    params:
        version=version("tuning", "rerank"),
        weights=lambda w, output: ["--feature", f"{systems.list_feature(w.system)}=1", "--output-ini", *output.ini],
