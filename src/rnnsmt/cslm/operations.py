"""Operations on continuous-space language models."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from rnnsmt.base.arguments import (
    SAVE_EVERY,
    THREADS,
    CheckpointDir,
    InputDirectory,
    InputFile,
    InputFiles,
    OptionalOutput,
    OutputDirectory,
    OutputFile,
    OutputFiles,
    SaveEvery,
    Seed,
    TextFiles,
    Texts,
    Threads,
    TimeLimit,
    each,
)
from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field
from rnnsmt.base.operations import Written, WrittenFiles, operation
from rnnsmt.config.sections import Device, Rnn, Unknown, VocabSize
from rnnsmt.cslm.settings import PRESETS, CslmSettings
from rnnsmt.networks.settings import Presets

if TYPE_CHECKING:
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.feed_forward_training import FeedForwardTask
    from rnnsmt.networks.text_scores import PerplexityReport


@operation(version=2)
def prepare(
    input: Texts,
    output_dir: OutputDirectory,
    *,
    vocab_size: VocabSize | None = None,
    vocabulary: InputFile | None = None,
    vocabulary_text: Texts | None = None,
) -> Written:
    r"""Convert the training text of the language model into memory-mapped arrays of word ids.

    The vocabulary is a shortlist: the words of a file (``vocabulary``), or the most frequent words (``vocab_size``) of
    the input or of another text (``vocabulary_text``). All words outside the shortlist are mapped to one class, UNK.
    Lines without words are skipped.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm prepare \
            --input results/corpus/truecased/harbour.fr.gz results/corpus/truecased/gazette.fr.gz \
            --vocab-size 1500 --output-dir try/text

    Args:
        input: tokenised text, one sentence per line.
        output_dir: output directory.
        vocabulary: vocabulary file with the shortlist, for example vocab.target.txt written by `rnn prepare`.
        vocabulary_text: text whose word counts determine the shortlist for ``vocab_size`` (default: ``input``).

    Returns:
        The directory; its figures are the numbers of sentences and words.

    Raises:
        InputError: the text has no words, or neither or both of ``vocab_size`` and ``vocabulary`` are given.
    """
    from rnnsmt.cslm.text import prepare_text
    from rnnsmt.networks.data import Vocabulary

    if (vocab_size is None) == (vocabulary is None):
        raise InputError("specify --vocab-size or --vocabulary, one of them")
    with TextFiles() as files:
        texts = files.all_of("input", input)
        if vocabulary is None:
            assert vocab_size is not None
            counted = texts if vocabulary_text is None else files.all_of("vocabulary_text", vocabulary_text)
            shortlist = Vocabulary.of_texts(counted, vocab_size, "to learn from")
        elif vocabulary_text is not None:
            raise InputError("--vocabulary-text: requires --vocab-size and cannot be combined with --vocabulary")
        else:
            shortlist = Vocabulary.read(vocabulary)
        return Written(Path(output_dir), prepare_text(texts, shortlist, str(output_dir)))


@operation(version=7)
def train(
    text: InputDirectory,
    output_model: OutputFile,
    output_history: OutputFile,
    checkpoint_dir: CheckpointDir,
    *,
    settings: Annotated[CslmSettings, Field(group=Presets(PRESETS, "small"))] = PRESETS["small"],
    seed: Seed = 1,
    save_every: SaveEvery = SAVE_EVERY,
    time_limit: TimeLimit | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Written:
    r"""Train the continuous-space language model (Schwenk 2007) on text.

    Input is the directory written by `cslm prepare`; outputs are the network and its learning curve (JSON). The
    perplexity of the validation n-grams is computed after every epoch. Training ends after ``epochs`` epochs, or when
    the perplexity has not improved for ``patience`` epochs; the best parameters are saved.

    ``checkpoint_dir`` contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
    ``threads``, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly before
    ``time_limit``, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again to
    resume.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm train --text try/text --preset demo --self-normalised 0.1 --seed 1 \
            --output-model try/cslm.safetensors --output-history try/cslm.json --checkpoint-dir try/cslm.checkpoint \
            --threads 2

    Args:
        text: directory written by `cslm prepare`.
        output_model: output file: the trained network.
        output_history: output file: settings and learning curve (JSON).
        settings: sizes of the network and settings of its training, such as CslmSettings.preset("demo", order=5).

    Returns:
        The network; its figures are the results of the training run.

    Raises:
        InputError, KeyboardInterrupt, SystemExit: as ``rnnsmt.rnn.train``.
    """
    from rnnsmt.networks.run_training import run_training

    def make_task(setup: "DeviceSetup") -> "FeedForwardTask":
        from rnnsmt.cslm.model import cslm_task
        from rnnsmt.cslm.text import Text

        return cslm_task(Text.open(text), settings, seed, setup)

    outputs, checkpoints = (output_model, output_history), (checkpoint_dir, save_every, time_limit)
    return run_training(make_task, settings, outputs, checkpoints, device, threads)


@operation(version=2)
def perplexity(
    model: InputFile,
    input: Texts,
    output: OptionalOutput = None,
    *,
    lm: InputFile | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> "PerplexityReport":
    r"""Compute the perplexity of a text under the CSLM, and under an n-gram model for comparison.

    Both models predict the same events: every word and ``</s>``. Words outside the shortlist of the CSLM form one class
    in both models; the n-gram probability of this class is the sum over ``<unk>`` and all words of the n-gram model
    that are not in the shortlist. A second perplexity excludes these words. The softmax of the CSLM is exact;
    logarithms are natural.

    The output (JSON) also contains the perplexity of a mixture of both models with equal weights. For a self-normalised
    CSLM, it contains the mean and standard deviation of ln Z, where Z is the sum of the softmax over all classes.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm perplexity --model try/cslm.safetensors --input results/corpus/joined/truecased/dev.fr.gz \
            --lm results/model/lm.arpa.gz --output try/cslm.perplexity.json

    Args:
        model: model file written by `cslm train`.
        input: tokenised text, one sentence per line.
        output: output file (JSON).
        lm: n-gram language model for comparison (ARPA).

    Returns:
        The content of the output.

    Raises:
        InputError: the text is empty, a model is malformed, or torch is not installed.
    """
    from rnnsmt.networks.options import need_torch

    need_torch()

    from rnnsmt.base.writing import write_json
    from rnnsmt.cslm.scorer import perplexity_report

    with TextFiles() as files:
        report = perplexity_report(model, files.all_of("input", input), lm, device, threads)
    if output is not None:
        write_json(output, report)
    return report


@operation(version=1)
def rescore(
    model: InputFiles,
    nbest: InputFiles,
    output: OutputFiles,
    *,
    normalize: Literal["auto", "yes", "no"] = "auto",
    unknown: Unknown = "class",
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> WrittenFiles:
    r"""Add the score of the CSLM to the features of n-best lists in Moses format.

    The feature ``CSLM0= x`` is appended to the features of every hypothesis; x is ln p of the whole translation,
    including ``</s>``. The total score of a hypothesis is not changed: `moses add-feature` writes the moses.ini with
    the feature, `tuning optimize` determines its weight, and `tuning rerank` selects the best hypotheses with it. The
    lists of one model are read together, and a translation that several of them have is scored once.

    Example, in the directory of a run of the demo corpus:

        rnnsmt cslm rescore --model results/cslm/network1/model.safetensors --nbest try/dev.nbest \
            --output try/dev.rescored --unknown class

    Args:
        model: model file written by `cslm train`; one model for all n-best lists, or one for each list.
        nbest: n-best lists in Moses format.
        output: output files, one for each n-best list.
        normalize: softmax normalisation; yes: exact sum over all classes; no: unnormalised logit; auto: no for
            self-normalised models, else yes.

    Returns:
        The paths of the outputs; the figures are the numbers of translations.

    Raises:
        InputError: the numbers of files differ, a file is malformed or an n-best list is empty, or torch is not
            installed.
    """
    from collections import Counter
    from functools import partial

    from rnnsmt.networks.options import need_torch
    from rnnsmt.networks.scoring import add_to_nbest, scored_alike

    lists, outputs, models = ([str(path) for path in each(paths)] for paths in (nbest, output, model))
    groups = scored_alike(lists, outputs, model=models)
    need_torch()

    from rnnsmt.cslm.scorer import CslmScorer, scores_of_block

    normalized = {"auto": None, "yes": True, "no": False}[normalize]
    counts: Counter[str] = Counter()
    for (path,), alike, written in groups:
        scorer = CslmScorer(path, device, threads, normalized, unknown_score=unknown)
        counts.update(add_to_nbest(partial(scores_of_block, scorer), alike, written, "CSLM0"))
    return WrittenFiles(map(Path, outputs), counts)
