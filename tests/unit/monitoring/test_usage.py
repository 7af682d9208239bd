"""Resources that the jobs of a run used, from its logs."""

from rnnsmt.cli import main

SNAKEMAKE = """\
[Mon Nov 23 08:39:23 2026]
localrule align_words:
    input: results/train.en.gz
    output: results/align/model4/forward.gz
    log: results/logs/align/model4.forward.log
    jobid: 9
    threads: 2
    resources: tmpdir=/tmp, runtime=30, mem_mb=1044, mem=1.04 GB, mem_mib=996
Select jobs to execute...
rule score:
    log: results/logs/score.1.log, results/logs/more.log
    resources: mem_mb=200
rule score:
    log: results/logs/score.2.log
    resources: mem_mb=300
rule fails:
    log: results/logs/fails.log
    resources: mem_mb=100
[Mon Nov 23 08:39:25 2026] group job model (jobs in lexicogr. order):
    [Mon Nov 23 08:39:25 2026]
    rule extract:
        output: results/phrases/extract.parquet
        log: results/logs/extract.log
        resources: tmpdir=<TBD>, mem_mb=500
    [Mon Nov 23 08:39:25 2026]
    rule lexical:
        log: results/logs/lexical.log
        resources: mem_mb=400
Select jobs to execute...
"""


def test_usage_of_a_run(tmp_path, capsys):
    logs = {
        ".snakemake/log/2026-11-23T083922.snakemake.log": SNAKEMAKE,
        ".snakemake/log/2026-11-24T083922.snakemake.log": SNAKEMAKE.replace("mem_mb=300", "mem_mb=301"),
        "results/logs/align/model4.forward.log": "3 of 9\ndone: links 5, 24.6 s, 31.5 CPU s, peak 397 MB\n",
        "results/logs/score.1.log": "done, 1.0 s, 2.0 CPU s, peak 83 MB\n",
        "results/logs/score.2.log": "done, 1,000.2 s, 2,000.1 CPU s, peak 1,083 MB\n",
        "results/logs/fails.log": "error\n",
        "results/align/model4/forward.gz": "x" * 123_000,
        "results/logs/extract.log": "done, 3.0 s, 3.0 CPU s, peak 93 MB\n",
        "results/logs/lexical.log": "done, 4.0 s, 4.0 CPU s, peak 94 MB\n",
    }
    for name, text in logs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(["usage", "--directory", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| align_words | 1 | 25 | 32 | 1,044 | 397 | 0.1 |",
        "| score | 2 | 1,001 | 2,002 | 301 | 1,083 | 0.0 |",
        "| extract | 1 | 3 | 3 | 500 | 93 | 0.0 |",
        "| lexical | 1 | 4 | 4 | 400 | 94 | 0.0 |",
        "| all | 5 | 1,033 | 2,041 | | | 0.1 |",
    ]


def test_no_run(tmp_path, capsys):
    assert main(["usage", "--directory", str(tmp_path)]) == 2
    assert "no workflow run found in this directory" in capsys.readouterr().err
