"""rnnsmt: Table 1 of Cho et al. 2014, from raw text to BLEU.

One sub-package per chapter of the pipeline: ``demo``, ``corpus``, ``selection``, ``align``, ``phrases``, ``lm``,
``rnn``, ``cslm``, ``search``, ``tuning``, ``evaluation``, ``analysis``. ``networks`` is what ``rnn`` and ``cslm``
share, ``bleu`` what ``tuning`` and ``evaluation`` share; ``moses`` holds what concerns Moses' own files,
``kernels`` the compiled ground of all. ``rnnsmt.stages`` lists every command.
"""

__version__ = "0.1.0"
