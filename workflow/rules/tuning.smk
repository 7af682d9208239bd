# Tuning by MERT or batch MIRA: several independent runs of every system, each with its own seed. On a cluster, every run is a
# job (its input is that of all runs, so that it does not depend on the setting). On one machine, one process makes all runs of
# a system, and loads each model once.
OF_JOB = "{system}.run{run}" if CLUSTER else "{system}"

if "tuning" in MOSES_PARTS:

    # After a kill, a run resumes from run{n}/checkpoint.
    rule moses_tune:
        input:
            ini=lambda w: systems.untuned_inis(w.system),
            lm=LM,
            network=lambda w: systems.networks_in_search(w.system),
            tables=lambda w: systems.table_files(w.system, "dev"),
            source=texts.set_text("preprocessed", "dev", SOURCE),
            reference=texts.set_text("preprocessed", "dev", TARGET),
        output:
            ini=files_of_job(f"{RUN}/moses.ini"),
            history=files_of_job(f"{RUN}/history.json"),
        log:
            f"results/logs/tuning/moses.{OF_JOB}.log",
            program=f"results/logs/tuning/moses.{OF_JOB}.programs.log",
        wildcard_constraints:
            system=any_of(systems.phrase_based),
        threads: TUNING_THREADS
        resources:
            mem_mb=megabytes(1500, 60),
            runtime=longest,
        params:
            version=version("moses", "tune"),
            home=MOSES_HOME,
            options=f"--optimizer {settings.tuning.optimizer} --nbest {settings.tuning.nbest} "
            f"--max-iterations {settings.tuning.iterations}",
            limits=systems.moses_limits(),
            seed=settings.seed,
            seeds=lambda w, input: of_job(w, [settings.seed + run for run in RUNS]),
            ini=lambda w, input: of_job(w, input.ini),
            tables=lambda w, input: of_job(w, systems.table_directories(w.system, input.tables)),
            checkpoints=lambda w, output: [f"{Path(ini).parent}/checkpoint" for ini in output.ini],
        shell:
            "rnnsmt moses tune --moses-home {params.home:q} --ini {params.ini:q} --model-dir {params.tables:q} "
            "--source {input.source:q} --reference {input.reference:q} --seed {params.seeds} "
            "--output-ini {output.ini:q} --output-history {output.history:q} --checkpoint-dir {params.checkpoints:q} "
            "{params.options} {params.limits} --threads {threads} --program-log {log.program:q} &> {log[0]:q}"

else:

    # After a kill, or a stop before the time limit, a run resumes from run{n}/checkpoint.
    rule mert:
        input:
            ini=lambda w: systems.untuned_inis(w.system),
            lm=LM_BINARY,
            network=lambda w: systems.networks_in_search(w.system),
            tables=lambda w: systems.table_files(w.system, "dev"),
            source=texts.set_text("preprocessed", "dev", SOURCE),
            reference=texts.set_text("preprocessed", "dev", TARGET),
        output:
            ini=files_of_job(f"{RUN}/moses.ini"),
            history=files_of_job(f"{RUN}/history.json"),
        log:
            f"results/logs/tuning/mert.{OF_JOB}.log",
        wildcard_constraints:
            system=any_of(systems.phrase_based),
        threads: TUNING_THREADS
        resources:
            **SEARCH_ON_DEVICE,
            mem_mb=search_megabytes(480, 10, neural=(200, 37000)),
            runtime=longest,
        params:
            version=version("tuning", "tune", registries.OPTIMIZERS.package(settings.tuning.optimizer)),
            decoder=version("search", "decode"),
            options=systems.optimizer_options(),
            nbest=settings.tuning.nbest,
            iterations=settings.tuning.iterations,
            limits=lambda w: systems.search_options(w.system),
            seed=settings.seed,
            seeds=lambda w, input: of_job(w, [settings.seed + run for run in RUNS]),
            ini=lambda w, input: of_job(w, input.ini),
            tables=lambda w, input: of_job(w, systems.table_directories(w.system, input.tables)),
            checkpoints=lambda w, output: [f"{Path(ini).parent}/checkpoint" for ini in output.ini],
        shell:
            "rnnsmt tuning tune --ini {params.ini:q} --model-dir {params.tables:q} "
            "--source {input.source:q} --reference {input.reference:q} --seed {params.seeds} "
            "--output-ini {output.ini:q} --output-history {output.history:q} --checkpoint-dir {params.checkpoints:q} "
            "--nbest {params.nbest} --iterations {params.iterations} {params.options} {params.limits} --device {resources.device} --threads {threads} "
            "--time-limit $(({resources.runtime} * 60)) &> {log:q}"


# The weights of all systems, the histories of tuning, and the n-best lists that are rescored.
TUNED = [
    *expand(f"{RUN}/{{file}}", system=systems.compared, run=RUNS, file=["moses.ini", "history.json"]),
    *expand(f"{RUN}/moses.ini", system=systems.tuned, run=RUNS),
    *(path for name in systems.tuned if name in systems.rescored for path in systems.list_files(name, SETS)),
]


rule tuned:
    input:
        TUNED,
    localrule: True
