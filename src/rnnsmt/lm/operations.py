"""Operations on n-gram language models."""

from pathlib import Path
from typing import TYPE_CHECKING

from rnnsmt.base.arguments import (
    MEMORY_MB,
    THREADS,
    InputFile,
    MemoryMb,
    OutputFile,
    TextFiles,
    Texts,
    Threads,
)
from rnnsmt.base.operations import Written, operation
from rnnsmt.config.sections import Estimator, Lm, Order, Pruning

if TYPE_CHECKING:
    pass


@operation(version=1)
def estimate(
    input: Texts,
    output: OutputFile,
    *,
    order: Order = Lm.order,
    prune: Pruning = Lm.prune,
    estimator: Estimator = Lm.estimator,
    lmplz: InputFile | None = None,
    memory_mb: MemoryMb = MEMORY_MB,
    threads: Threads = THREADS,
) -> Written:
    r"""Estimate an interpolated modified Kneser-Ney language model and write it as an ARPA file.

    The model is the same as with KenLM's lmplz (Heafield et al. 2013): unigrams are interpolated with the uniform
    distribution, and n-grams that begin with ``<s>`` keep their raw counts. ``estimator="auto"`` uses lmplz if it is on
    PATH, and the built-in estimator otherwise. ``prune=[0, 0, 1]`` discards the n-grams of three or more words that
    occur once; their probability mass is given to the back-off distribution.

    Words are separated by spaces and tabs; ``<s>``, ``</s>`` and ``<unk>`` must not occur as words. If a text is too
    small to estimate discounts, the fallback discounts of lmplz (0.5, 1 and 1.5) are used, with a warning.

    The text and its n-grams are kept in memory if they fit into ``memory_mb``, otherwise in temporary files next to the
    output. The vocabulary is always kept in memory.

    Example, in the directory of a run of the demo corpus:

        rnnsmt lm estimate \
            --input results/corpus/truecased/harbour.fr.gz results/corpus/truecased/gazette.fr.gz --order 5 \
            --output try/lm.arpa.gz --threads 2 --memory-mb 2000 --prune 0 0 1

    Args:
        input: tokenised text, one sentence per line.
        output: output file: language model (ARPA), compressed according to its suffix.
        lmplz: path to KenLM's lmplz; overrides ``estimator``.

    Returns:
        The file; its figures are the numbers of lines, words, types and n-grams.

    Raises:
        InputError: the text is empty, or contains ``<s>``, ``</s>`` or ``<unk>``; the thresholds of ``prune`` decrease
            or there are more of them than ``order``; lmplz is not installed or fails.
    """
    from rnnsmt.lm.estimation import estimate, find_lmplz, run_lmplz

    program = lmplz or find_lmplz(estimator)
    with TextFiles() as files:
        texts = files.all_of("input", input)
        if program is not None:
            figures = run_lmplz(str(program), texts, order, output, memory_mb, prune)
        else:
            figures = estimate(texts, order, output, prune=prune, memory_mb=memory_mb, threads=threads)
    return Written(Path(output), figures)


@operation(version=2)
def binarize(lm: InputFile, output: OutputFile) -> Written:
    r"""Convert an n-gram language model to a memory-mapped binary file, like KenLM's build_binary.

    Instead of reading lm.arpa.gz, the decoder maps lm.binary.safetensors, which is in the same directory or in the
    ``model_dir``. All processes on a machine share its memory pages. `search binarize` also converts the tables of a
    model.

    Example, in the directory of a run of the demo corpus:

        rnnsmt lm binarize --lm results/model/lm.arpa.gz --output try/lm.binary.safetensors

    Args:
        lm: language model (ARPA).
        output: output file: language model (safetensors).

    Returns:
        The file; its figures are the order and the number of words.

    Raises:
        InputError: the file is malformed.
    """
    from rnnsmt.lm.automaton_file import binarize_lm

    automaton = binarize_lm(Path(lm), Path(output))
    return Written(Path(output), {"order": automaton.order, "words": len(automaton.words)})
