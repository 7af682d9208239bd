"""Operations on LSTM encoder-decoders."""

from rnnsmt.base.arguments import (
    THREADS,
    OptionalOutputs,
    OutputFiles,
    Positive,
    SeveralTexts,
    TextFiles,
    Threads,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.operations import Values, operation
from rnnsmt.config.sections import Beam, Device, Lstms, Rnn
from rnnsmt.networks.options import Ensembles


@operation(version=1)
def translate(
    model: Ensembles,
    input: SeveralTexts,
    output: OptionalOutputs = None,
    *,
    report: OutputFiles | None = None,
    beam: Beam = Lstms.beam,
    batch: Positive = 64,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Values[list[str]]:
    r"""Translate texts with a network, or with an ensemble that averages the probabilities of its networks.

    The method is left-to-right beam search. When a hypothesis is completed, it is removed from the beam and the beam
    size is reduced by one. The output is the hypothesis with the highest probability, not normalised by length. Words
    outside the vocabulary are translated as <unk>. If ``model`` is repeated, every model (or ensemble) translates all
    texts. If the same model is specified twice, its translations are computed once.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq translate --model try/lstm.safetensors --input results/corpus/joined/truecased/dev.en.gz \
            --output try/dev.lstm --beam 4

    Args:
        input: tokenised texts, one sentence per line.
        output: output files, one translation per line; first one file per ``input`` for the first ``model``, then for
            the second ``model``, and so on.
        report: output files: statistics, one file for each ``output`` (JSON).
        batch: batch size in sentences.

    Returns:
        The translations, a list for each output.

    Raises:
        InputError: the numbers of files differ, a model is malformed, the models of an ensemble have different
            vocabularies, or torch is not installed.
    """
    from itertools import product

    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.base.writing import write_lines, write_report
    from rnnsmt.networks.data import split
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.decoding import translate_all
    from rnnsmt.seq2seq.model import load_ensemble

    ensembles = [tuple(map(str, paths)) for paths in model]
    with TextFiles() as files:
        paths = files.each_of("input", input)
        tasks = list(product(ensembles, paths))
        outputs, reports = each(output) or [None] * len(tasks), each(report) or [None] * len(tasks)
        if not len(tasks) == len(outputs) == len(reports):
            raise InputError(
                f"{len(ensembles)} --model and {len(paths)} --input require {len(tasks)} --output files, and as many "
                f"--report files or none, but there are {len(outputs)} and {len(reports)}"
            )
        setup = set_up_device(device, threads)
        texts = {path: [split(line) for line in read_sentences(path)] for path in paths}
    translations = {}
    for models in dict.fromkeys(ensembles):
        ensemble = load_ensemble(list(models), setup.device)
        for path in paths:
            translations[models, path] = translate_all(ensemble, texts[path], beam, batch)
    for task, to_write, to_report in zip(tasks, outputs, reports, strict=True):
        lines, stats = translations[task]
        if to_write is not None:
            write_lines(to_write, lines)
        if to_report is not None:
            write_report(to_report, stats)
    sums = [stats for _, stats in translations.values()]
    figures = {name: round(sum(stats[name] for stats in sums), 4) for name in sums[0]}
    return Values((translations[task][0] for task in tasks), figures)
