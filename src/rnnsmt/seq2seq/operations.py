"""Operations on LSTM encoder-decoders."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rnnsmt.base.arguments import (
    SAVE_EVERY,
    THREADS,
    CheckpointDir,
    InputDirectory,
    InputFile,
    InputFiles,
    OptionalOutputs,
    OutputDirectory,
    OutputFile,
    OutputFiles,
    Positive,
    SaveEvery,
    Seed,
    SeveralTexts,
    TextFiles,
    Texts,
    Threads,
    TimeLimit,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Values, Written, WrittenFiles, operation
from rnnsmt.config.sections import Beam, Device, Lstms, Preprocessing, Rnn, SentenceLength, VocabSize
from rnnsmt.networks.settings import Presets
from rnnsmt.seq2seq.settings import PRESETS, Seq2SeqSettings

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.seq2seq.training import Seq2SeqTask

Ensembles = Annotated[
    Sequence[Sequence[InputFile]],
    Field(
        "model file written by `seq2seq train`; several files form an ensemble; may be repeated",
        metavar="FILE",
        expected="a list of ensembles, each a list of paths",
    ),
]


@operation(version=2)
def prepare(
    source: Texts,
    target: Texts,
    output_dir: OutputDirectory,
    *,
    source_vocab_size: VocabSize = Lstms.source_vocab_size,
    target_vocab_size: VocabSize = Lstms.target_vocab_size,
    max_length: SentenceLength = Preprocessing.max_length,
) -> Written:
    r"""Convert a parallel corpus into memory-mapped arrays of ids, with a vocabulary for each side.

    The vocabulary of a side consists of its most frequent words; all other words are mapped to UNK. Sentence pairs with
    an empty side, or a side longer than ``max_length``, are discarded.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq prepare --source results/corpus/joined/train.en.gz --target results/corpus/joined/train.fr.gz \
            --source-vocab-size 1500 --target-vocab-size 1500 --output-dir try/sentences

    Args:
        source: tokenised source text.
        target: tokenised target text.
        output_dir: output directory.

    Returns:
        The directory; its figures are the numbers of sentence pairs and words.

    Raises:
        InputError: the sides differ in length, or no sentence pair remains.
    """
    from rnnsmt.seq2seq.sentences import prepare_sentences

    with TextFiles() as files:
        figures = prepare_sentences(
            files.all_of("source", source),
            files.all_of("target", target),
            str(output_dir),
            (source_vocab_size, target_vocab_size),
            max_length,
        )
    return Written(Path(output_dir), figures)


@operation(version=3)
def train(
    sentences: InputDirectory,
    output_model: OutputFile,
    output_history: OutputFile,
    checkpoint_dir: CheckpointDir,
    *,
    settings: Annotated[Seq2SeqSettings, Field(group=Presets(PRESETS, "small"))] = PRESETS["small"],
    seed: Seed = 1,
    save_every: SaveEvery = SAVE_EVERY,
    time_limit: TimeLimit | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Written:
    r"""Train an LSTM encoder-decoder (Sutskever, Vinyals and Le 2014) on sentence pairs.

    Input is the directory written by `seq2seq prepare`; outputs are the network and its learning curve (JSON).

    ``checkpoint_dir`` contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
    ``threads``, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly before
    ``time_limit``, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again to
    resume.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq train --sentences try/sentences --preset demo --epochs 1 --seed 1 \
            --output-model try/lstm.safetensors --output-history try/lstm.json \
            --checkpoint-dir try/lstm.checkpoint --threads 2

    Args:
        sentences: directory written by `seq2seq prepare`.
        output_model: output file: the trained network.
        output_history: output file: settings and learning curve (JSON).
        settings: sizes of the network and settings of its training, such as Seq2SeqSettings.preset("demo", epochs=1).

    Returns:
        The network; its figures are the results of the training run.

    Raises:
        InputError, KeyboardInterrupt, SystemExit: as ``rnnsmt.rnn.train``.
    """
    from rnnsmt.networks.run_training import run_training

    def make_task(setup: "DeviceSetup") -> "Seq2SeqTask":
        from rnnsmt.seq2seq.sentences import SentencePairs
        from rnnsmt.seq2seq.training import Seq2SeqTask

        return Seq2SeqTask(SentencePairs.open(sentences), settings, seed, setup)

    outputs, checkpoints = (output_model, output_history), (checkpoint_dir, save_every, time_limit)
    return run_training(make_task, settings, outputs, checkpoints, device, threads)


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
    size is reduced by one. The output is the hypothesis with the highest probability, not normalised by length; unknown
    words are <unk>. If ``model`` is repeated, every model (or ensemble) translates all texts. If the same model is
    given twice, its translations are computed once.

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


@operation(version=1)
def rescore(
    model: Ensembles,
    nbest: InputFiles,
    source: InputFiles,
    output: OutputFiles,
    *,
    feature: Annotated[str, Field(metavar="NAME")] = "LSTM0",
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> WrittenFiles:
    r"""Add the log probability of every translation to the features of n-best lists in Moses format.

    The feature ``LSTM0= x`` (see ``feature``) is appended to the features of every hypothesis; x is ln p of the whole
    translation, including EOS. The total score of a hypothesis is not changed: `tuning optimize` determines the weight
    of the feature (weight 1 corresponds to the unweighted mean of the paper), and `tuning rerank` selects the best
    hypotheses with it. `moses add-feature` writes the moses.ini for both commands.

    One ``model`` is used for all n-best lists, or one for each list. Every source sentence and every common prefix of
    its translations is computed once, even across n-best lists.

    Example, in the directory of a run of the demo corpus:

        rnnsmt seq2seq rescore --model try/lstm.safetensors --nbest try/dev.nbest \
            --source results/corpus/joined/truecased/dev.en.gz --output try/dev.lstm.nbest

    Args:
        nbest: n-best lists in Moses format.
        source: tokenised source text: one file for all n-best lists, or one file for each.
        output: output files, one for each n-best list.
        feature: name of the feature.

    Returns:
        The paths of the outputs; the figures are the numbers of translations.

    Raises:
        InputError: the numbers of files differ, a file is malformed, an n-best list is empty or of another text,
            ``feature`` is not a name, or torch is not installed.
    """
    if not feature.isidentifier():
        raise InputError(f"--feature {feature}: must be a name such as LSTM0")
    from collections import Counter
    from functools import lru_cache, partial

    from rnnsmt.networks.options import need_torch
    from rnnsmt.networks.scoring import add_to_nbest, scored_alike

    lists, outputs, texts = ([str(path) for path in each(paths)] for paths in (nbest, output, source))
    ensembles = [tuple(map(str, paths)) for paths in model]
    groups = scored_alike(lists, outputs, model=ensembles, source=texts)
    need_torch()

    from rnnsmt.networks.devices import set_up_device
    from rnnsmt.search.source_text import read_sentences
    from rnnsmt.seq2seq.model import load_ensemble
    from rnnsmt.seq2seq.translation_scores import Scorer, scores_of_block

    setup = set_up_device(device, threads)

    @lru_cache(1)  # the groups of an ensemble follow one another
    def scorer_of(models: tuple[str, ...]) -> Scorer:
        return Scorer(load_ensemble(list(models), setup.device))

    counts: Counter[str] = Counter()
    for (models, text), alike, written in groups:
        sources = read_sentences(text)
        scores = partial(scores_of_block, scorer_of(models), sources)
        counts.update(add_to_nbest(scores, alike, written, feature, len(sources)))
    return WrittenFiles(map(Path, outputs), counts)
