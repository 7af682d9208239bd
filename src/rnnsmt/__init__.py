"""rnnsmt: Table 1 of Cho et al. 2014, from raw text to BLEU.

One sub-package per chapter of the pipeline, in the order of the workflow's rule files:
``demo``, ``corpus``, ``selection``, ``align``, ``phrases``, ``lm``, ``search``, ``tuning``, ``evaluation``;
``moses`` holds what concerns Moses' own files. ``rnnsmt.stages`` lists every command.
"""

__version__ = "0.1.0"
