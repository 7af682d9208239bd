# MERT: several independent runs of every system, each with its own seed.
TUNING_OPTIONS = (
    f"--nbest {config['tuning']['nbest']} --restarts {config['tuning']['restarts']} "
    f"--combine {config['tuning']['combine']} --max-iterations {config['tuning']['max_iterations']} "
    f"--patience {config['tuning']['patience']}"
)


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
    conda:
        search_env
    threads: tuning_threads()
    resources:
        mem_mb=search_memory,
        runtime=LONG,
        gpu=search_gpu,
        device=DEVICE,
    params:
        version=version("tuning", "mert"),
        decoder=version("search", "decode"),
        options=TUNING_OPTIONS,
        limits=search_limits,
        seed=lambda w: config["seed"] + int(w.run),
        tables=lambda w, input: str(Path(input.tables[0]).parent),
        folder=subpath(output.ini, parent=True),
    shell:
        "rnnsmt tuning mert --ini {input.ini:q} --model-dir {params.tables:q} "
        "--source {input.source:q} --reference {input.reference:q} --seed {params.seed} "
        "--output-ini {output.ini:q} --output-history {output.history:q} "
        "--state-dir {params.folder:q}/state "
        "{params.options} {params.limits} --device {resources.device} --threads {threads} "
        "--time-limit $(({resources.runtime} * 60)) &> {log:q}"
