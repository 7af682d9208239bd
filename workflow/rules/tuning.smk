# MERT: several independent runs of every system, each with its own seed.
TUNING_OPTIONS = (
    f"--nbest {config['tuning']['nbest']} --restarts {config['tuning']['restarts']} "
    f"--combine {config['tuning']['combine']} --max-iterations {config['tuning']['max_iterations']} "
    f"--patience {config['tuning']['patience']}"
)


# What dev can use of the tables, and what all sets can, once for all systems that share them: loads in a moment, and
# everybody can look at it. Dev has its own, so that another test set is no reason to tune again.
rule filter_tables:
    input:
        text=lambda w: [set_text("usual", name, SOURCE) for name in (SETS if w.part == "all" else [w.part])],
        phrase_table=f"results/{{folder}}/{PHRASE_TABLE}",
        reordering_table=f"results/model/{REORDERING_TABLE}",
    output:
        f"results/{{folder}}/filtered/{{part}}/{PHRASE_TABLE}",
        f"results/{{folder}}/filtered/{{part}}/{REORDERING_TABLE}",
    log:
        "results/logs/filter/{folder}.{part}.log",
    wildcard_constraints:
        folder=f"model|augmented/{FEATURE_NAMES}",
        part="dev|all",
    conda:
        BASE_ENV
    resources:
        mem_mb=memory(1000),
        runtime=minutes(10, 0.02),
    params:
        version=version("phrases", "filter"),
        max_length=config["phrases"]["max_length"],
    shell:
        "rnnsmt phrases filter --input {input.text:q} --phrase-table {input.phrase_table:q} "
        "--reordering-table {input.reordering_table:q} --max-length {params.max_length} "
        "--output-dir results/{wildcards.folder}/filtered/{wildcards.part} &> {log:q}"


# A run that is killed, or stops before its time is up, goes on after its last iteration in run{n}/state.
rule mert:
    input:
        ini=untuned_ini,
        lm="results/model/lm.arpa.gz",
        network=neural_model,
        tables=lambda w: filtered_tables(w.system, "dev"),
        source=set_text("usual", "dev", SOURCE),
        reference=set_text("usual", "dev", TARGET),
    output:
        ini="results/systems/{system}/run{run}/moses.ini",
        history="results/systems/{system}/run{run}/history.json",
    log:
        "results/logs/tuning/mert.{system}.run{run}.log",
    retries: 3
    conda:
        search_env
    threads: tuning_threads()
    resources:
        mem_mb=search_memory,
        runtime=1440,
        gpu=search_gpu,
        device=DEVICE,
    params:
        version=version("tuning", "mert"),
        options=TUNING_OPTIONS,
        limits=search_limits,
        seed=lambda w: config["seed"] + int(w.run),
        tables=lambda w: filtered_folder(w.system, "dev"),
    shell:
        "rnnsmt tuning mert --ini {input.ini:q} --model-dir {params.tables} "
        "--source {input.source:q} --reference {input.reference:q} --seed {params.seed} "
        "--output-ini {output.ini:q} --output-history {output.history:q} "
        "--state-dir results/systems/{wildcards.system}/run{wildcards.run}/state "
        "{params.options} {params.limits} --device {resources.device} --threads {threads} "
        "$(time_limit {resources.runtime}) &> {log:q}"
