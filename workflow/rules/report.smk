# Table 1.
rule table1:
    input:
        expand(
            "results/systems/{system}/run{run}/{set}.bleu.json",
            system=config["compare"],
            run=RUNS,
            set=SETS,
        ),
    output:
        tsv="results/table1.tsv",
        json="results/table1.json",
        md="results/table1.md",
        html=report(
            "results/table1.html",
            caption="../report/table1.rst",
            category="Table 1",
        ),
    log:
        "results/logs/report/table1.log",
    conda:
        BASE_ENV
    params:
        version=version("evaluation", "table"),
        joint=" ".join(f"--joint {name}={'+'.join(parts)}" for name, parts in config["evaluation"]["joint"].items()),
    shell:
        "rnnsmt evaluation table --scores {input:q} {params.joint} "
        "--output-tsv {output.tsv:q} --output-json {output.json:q} --output-md {output.md:q} --output-html {output.html:q} &> {log:q}"
