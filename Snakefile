# Table 1 of Cho et al. 2014: `snakemake --cores N`. The rules are in workflow/; config.yaml explains the settings.
include: "workflow/Snakefile"


# Snakemake forgets the default target of an included file.
workflow.default_target = workflow.modifier.modify_rulename("all")
