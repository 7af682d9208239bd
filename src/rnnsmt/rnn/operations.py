"""Operations on the RNN Encoder-Decoder."""

from rnnsmt.base.arguments import (
    THREADS,
    InputDirectory,
    InputFile,
    OptionalOutput,
    Positive,
    Text,
    TextFiles,
    Threads,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.operations import Values, operation
from rnnsmt.config.sections import Device, Rnn


@operation(version=1)
def translate(
    model: InputFile,
    vocabularies: InputDirectory,
    input: Text,
    output: OptionalOutput = None,
    *,
    max_length: Positive = 30,
    beam: Positive = 10,
    nbest: Positive | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Values[list[tuple[str, float]]]:
    r"""Translate phrases with the network by beam search for the targets with the highest log p(target | source).

    The output has one target per line. With ``nbest=N``, it has the N best targets of every phrase instead, one per
    line: ``0-based line number ||| target ||| log p``.

    Example, in the directory of a run of the demo corpus:

        rnnsmt rnn translate --model try/rnn.safetensors --vocabularies try/vocabularies --input try/phrases \
            --output try/translations --nbest 5

    Args:
        model: model file written by `networks train`.
        vocabularies: directory written by `networks prepare --network rnn`.
        input: source phrases, tokenised, one per line.
        output: output file: target phrases.
        max_length: maximum length of a target phrase in words.
        beam: beam size: number of partial hypotheses per phrase.
        nbest: write n-best lists of N targets per phrase, at most the beam size (default: write the best target only).

    Returns:
        For every source phrase, its targets with log p(target | source), best first.

    Raises:
        InputError: a phrase is empty, ``nbest`` is more than ``beam``, the network was trained with other vocabularies,
            or torch is not installed.
    """
    if nbest is not None and nbest > beam:
        raise InputError(f"--nbest {nbest}: must be an integer from 1 to the beam size, {beam}")

    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.base.writing import write_lines
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.rnn.generation import best_targets, read_phrases
    from rnnsmt.rnn.model import load_model_of
    from rnnsmt.rnn.pairs import vocabulary_files

    source, target = map(Vocabulary.read, vocabulary_files(vocabularies))
    network = load_model_of((source, target), vocabularies, model, set_up_device(device, threads))
    with TextFiles() as files:
        sources = read_phrases(files.of("input", input), source)
    found = best_targets(network, sources, beam, max_length, nbest or 1)
    targets = [[(target.text(one.words), one.score) for one in of_source] for of_source in found]
    if output is not None and nbest is None:
        write_lines(output, (best[0][0] for best in targets))
    elif output is not None:
        lines = (
            f"{number} ||| {text} ||| {log_p:.6f}"
            for number, of_source in enumerate(targets)
            for text, log_p in of_source
        )
        write_lines(output, lines)
    mean = sum(best[0][1] for best in targets) / len(targets)
    return Values(targets, {"phrases": len(sources), "mean log p": mean})
