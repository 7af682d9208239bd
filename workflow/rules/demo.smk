# The demo corpus.
DEMO = [
    *expand("results/demo/{part}.{lang}.gz", part=["in-domain", "general"], lang=["en", "fr"]),
    "results/demo/mono.fr.gz",
    *expand("results/demo/{part}.{lang}", part=["dev", "test"], lang=["en", "fr"]),
]


rule demo:
    output:
        DEMO,
    log:
        "results/logs/corpus/demo.log",
    resources:
        mem_mb=megabytes(150),
        runtime=minutes(10),
    params:
        version=version("demo", "make"),
        scale=settings.demo.scale,
        directory=subpath(output[0], parent=True),
    shell:
        "rnnsmt demo make --output-dir {params.directory:q} --scale {params.scale} &> {log:q}"
