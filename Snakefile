# Table 1 of Cho et al. 2014. The chapters below are in the order of the pipeline; config.yaml explains the settings.
from snakemake.utils import min_version

min_version("9.20.0")


include: "workflow/rules/common.smk"
include: "workflow/rules/resources.smk"
include: "workflow/rules/demo.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/selection.smk"
include: "workflow/rules/align.smk"
include: "workflow/rules/phrases.smk"
include: "workflow/rules/lm.smk"
include: "workflow/rules/rnn.smk"
include: "workflow/rules/cslm.smk"
include: "workflow/rules/nnjm.smk"
include: "workflow/rules/seq2seq.smk"
include: "workflow/rules/moses.smk"
include: "workflow/rules/tuning.smk"
include: "workflow/rules/evaluation.smk"
include: "workflow/rules/analysis.smk"
include: "workflow/rules/translation.smk"


rule all:
    default_target: True
    input:
        "results/table1.tsv",
        "results/table1.json",
        "results/table1.md",
        "results/table1.html",
        "results/provenance.json",
        "results/report/index.html",
        SYSTEM_FILES,
        PERPLEXITIES,
