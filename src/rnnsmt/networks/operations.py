"""Operations on networks of all kinds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rnnsmt.base.arguments import (
    SAVE_EVERY,
    THREADS,
    Alignments,
    CheckpointDir,
    InputFile,
    InputFiles,
    OptionalOutput,
    OutputDirectory,
    OutputFile,
    OutputFiles,
    Positive,
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
from rnnsmt.base.options import option
from rnnsmt.base.paths import StrPath
from rnnsmt.config.sections import Device, Preprocessing, Rnn, Unknown, VocabSize
from rnnsmt.networks.network import DATA, SettingsOptions, TrainingTexts, kind_of, kind_or_none
from rnnsmt.networks.options import Ensembles, need_torch
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.registries import NETWORKS

if TYPE_CHECKING:
    from rnnsmt.lm.queries import Perplexity
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task
    from rnnsmt.networks.text_scores import PerplexityReport

NetworkName = Annotated[str, Field(registry=NETWORKS)]

VocabSizes = Annotated[
    VocabSize | Sequence[VocabSize],
    Field(metavar="N", expected="an integer from 3 or two of them", several=True),
]


@operation(version=1)
def prepare(
    network: NetworkName,
    target: Texts,
    output_dir: OutputDirectory,
    *,
    source: Texts | None = None,
    alignment: Alignments | None = None,
    vocab_size: VocabSizes = Rnn.vocab_size,
    source_vocabulary: InputFile | None = None,
    target_vocabulary: InputFile | None = None,
    vocabulary_text: Texts | None = None,
    max_length: Positive | None = None,
) -> Written:
    r"""Prepare the training data of a network from texts: vocabularies, and memory-mapped arrays of word ids.

    The vocabulary of a side consists of its most frequent words; all other words are mapped to one class, UNK. Contents
    of the output directory for each network:

        rnn       source and target vocabulary, for training on the phrase pairs of `phrases extract`
        cslm      text of the target language and its vocabulary; lines without words are skipped
        nnjm      source text, target text and their vocabularies, and for every target word the position of its
                  affiliated source word (Devlin et al. 2014): the middle one of the source words that are aligned with
                  it, or, for unaligned words, the affiliated word of the nearest aligned target word; sentence pairs
                  without a link are skipped and counted
        seq2seq   source text, target text and their vocabularies; sentence pairs with an empty side, or a side longer
                  than ``max_length``, are skipped and counted

    Examples, in the directory of a run of the demo corpus:

        rnnsmt networks prepare --network rnn --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --vocab-size 1500 --output-dir try/vocabularies
        rnnsmt networks prepare --network cslm --target results/corpus/truecased/harbour.fr.gz \
            results/corpus/truecased/gazette.fr.gz --vocab-size 1500 --output-dir try/text
        rnnsmt networks prepare --network nnjm --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz \
            --alignment results/align/model4/aligned.grow-diag-final-and.gz \
            --source-vocabulary results/rnn/vocabularies/vocab.source.txt \
            --target-vocabulary results/rnn/vocabularies/vocab.target.txt --output-dir try/examples
        rnnsmt networks prepare --network seq2seq --source results/corpus/joined/train.en.gz \
            --target results/corpus/joined/train.fr.gz --vocab-size 1500 --output-dir try/sentences

    Args:
        network: kind of network.
        target: tokenised target text, one sentence per line.
        output_dir: output directory.
        source: tokenised source text, parallel to the target text, for rnn, nnjm and seq2seq.
        alignment: word alignment of source and target text in Pharaoh format (i-j), for nnjm.
        vocab_size: size of both vocabularies, or sizes of the source and the target vocabulary, including UNK and a
            reserved id.
        source_vocabulary: vocabulary file of the source side instead of the most frequent words, for nnjm.
        target_vocabulary: vocabulary file of the target side instead of the most frequent words, for cslm and nnjm,
            such as vocab.target.txt of the directory for rnn.
        vocabulary_text: text whose most frequent words are the vocabulary, for cslm (default: ``target``).
        max_length: maximum number of words of a sentence, for seq2seq (default: 80).

    Returns:
        The directory; its figures are the numbers of sentences and words, or sizes and coverage of the vocabularies.

    Raises:
        InputError: the sides differ in length, a text has no words, a link is out of range, no sentence remains, or
            an argument is missing or does not apply to this network.
    """
    from rnnsmt.formats.pharaoh import links_files

    kind = NETWORKS[network]
    if not kind.texts:
        raise InputError(f"--network {network}: its training data are not made from texts")
    given = {
        "source": source, "alignment": alignment, "source_vocabulary": source_vocabulary,
        "target_vocabulary": target_vocabulary, "vocabulary_text": vocabulary_text, "max_length": max_length,
    }  # fmt: skip
    for name, value in given.items():
        if value is not None and name not in kind.texts:
            raise InputError(f"{option(name)}: is not used for {network}; remove it")
        if value is None and name in kind.texts and name in ("source", "alignment"):
            raise InputError(f"{option(name)}: is required for {network}")
    if vocabulary_text is not None and target_vocabulary is not None:
        raise InputError("--vocabulary-text: cannot be combined with --target-vocabulary; remove one of them")
    sizes = each(vocab_size)
    if len(sizes) > 2:
        raise InputError(f"--vocab-size: {len(sizes)} given, but there are two vocabularies")
    with TextFiles() as files:
        texts = TrainingTexts(
            [] if source is None else files.all_of("source", source),
            files.all_of("target", target),
            [] if alignment is None else links_files(files, "alignment", alignment),
            (sizes[0], sizes[-1]),
            (source_vocabulary, target_vocabulary),
            [] if vocabulary_text is None else files.all_of("vocabulary_text", vocabulary_text),
            Preprocessing.max_length if max_length is None else max_length,
        )
        return Written(Path(output_dir), kind.prepare(texts, str(output_dir)))


@operation(version=1)
def train(
    network: NetworkName,
    data: Annotated[InputFile | Sequence[InputFile], Field(metavar="PATH", several=True, path="input")],
    output_model: OutputFile,
    output_history: OutputFile,
    checkpoint_dir: CheckpointDir,
    *,
    settings: Annotated[TrainingSettings | None, Field(group=SettingsOptions())] = None,
    seed: Seed = 1,
    save_every: SaveEvery = SAVE_EVERY,
    time_limit: TimeLimit | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> Written:
    r"""Train a network.

    Networks and their training data:

        rnn       RNN Encoder-Decoder (Cho et al. 2014): the phrase pairs of `phrases extract`, and the directory of
                  vocabularies written by `networks prepare` (two paths)
        cslm      continuous-space language model (Schwenk 2007): the directory written by `networks prepare`
        nnjm      neural network joint model (Devlin et al. 2014): the directory written by `networks prepare`
        seq2seq   LSTM encoder-decoder (Sutskever, Vinyals and Le 2014): the directory written by `networks prepare`

    Outputs are the network and its learning curve (JSON). Held-out examples are evaluated several times (rnn, seq2seq)
    or after every epoch (cslm, nnjm). Training of cslm and nnjm ends after the maximum number of epochs, or when the
    perplexity has not improved for a number of epochs (the setting patience).

    ``checkpoint_dir`` contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
    ``threads``, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly before
    ``time_limit``, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again to
    resume.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt networks train --network rnn --data results/phrases/pairs.safetensors try/vocabularies --preset demo \
            --epochs 2 --seed 1 --output-model try/rnn.safetensors --output-history try/rnn.json \
            --checkpoint-dir try/rnn.checkpoint --threads 2
        rnnsmt networks train --network cslm --data try/text --preset demo --self-normalised 0.1 --seed 1 \
            --output-model try/cslm.safetensors --output-history try/cslm.json \
            --checkpoint-dir try/cslm.checkpoint --threads 2
        rnnsmt networks train --network nnjm --data try/examples --preset demo --seed 1 \
            --output-model try/nnjm.safetensors --output-history try/nnjm.json \
            --checkpoint-dir try/nnjm.checkpoint --threads 2
        rnnsmt networks train --network seq2seq --data try/sentences --preset demo --epochs 1 --seed 1 \
            --output-model try/lstm.safetensors --output-history try/lstm.json \
            --checkpoint-dir try/lstm.checkpoint --threads 2

    Args:
        network: kind of network.
        data: training data.
        output_model: output file: the trained network.
        output_history: output file: settings and learning curve (JSON).
        settings: sizes of the network and settings of its training, such as RnnSettings.preset("demo", epochs=2);
            None: the preset small.

    Returns:
        The network; its figures are the results of the training run.

    Raises:
        InputError: a file is missing or malformed, the settings are those of another network, the checkpoint is that of
            a training run with other settings, the loss became infinite, or torch is not installed.
        KeyboardInterrupt: after Ctrl-C, with the checkpoint saved.
        SystemExit: 75 after SIGTERM or at the time limit, with the checkpoint saved.
    """
    from rnnsmt.networks.run_training import run_training

    kind, paths = NETWORKS[network], [Path(path) for path in each(data)]
    if len(paths) != len(kind.data):
        needed = " and ".join(DATA[name] for name in kind.data)
        raise InputError(f"--data: {network} requires {len(kind.data)}: {needed}; there are {len(paths)}")
    chosen = kind.presets[kind.default] if settings is None else settings
    if not isinstance(chosen, kind.settings):
        raise InputError(f"--settings {chosen}: must be {kind.settings.__name__} for the network {network}")

    def make_task(setup: "DeviceSetup") -> "Task":
        return kind.task(paths, chosen, seed, setup)

    outputs, checkpoints = (output_model, output_history), (checkpoint_dir, save_every, time_limit)
    return run_training(make_task, chosen, outputs, checkpoints, device, threads)


@operation(version=1)
def rescore(
    model: Ensembles,
    nbest: InputFiles,
    output: OutputFiles,
    *,
    source: InputFiles | None = None,
    feature: Annotated[str | None, Field(metavar="NAME")] = None,
    unknown: Unknown = "class",
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> WrittenFiles:
    r"""Add the log probability of every translation under a network to the features of n-best lists in Moses format.

    The feature ``CSLM0= x`` or, for LSTMs, ``LSTM0= x`` (see ``feature``) is appended to the features of every
    hypothesis; x is ln p of the whole translation, including the end of the sentence. The total score of a hypothesis
    is not changed: `tuning optimize --feature` determines the weight of the feature, and `tuning rerank` selects the
    best hypotheses with this weight or with a specified one (--feature LSTM0=1 is the unweighted mean of Sutskever et
    al. 2014).

    Specify one ``model`` for all n-best lists, or one for each list. Lists with the same model and text are read
    together, and a translation that occurs in several of them is scored once. LSTMs read the ``source`` text; each
    source sentence and each common prefix of its translations is computed once. The scores of a self-normalised CSLM
    are not normalised.

    Example, in the directory of a run of the demo corpus:

        rnnsmt networks rescore --model results/cslm/network1/model.safetensors --nbest try/dev.nbest \
            --output try/dev.rescored --unknown class

    Args:
        nbest: n-best lists in Moses format.
        output: output files, one for each n-best list.
        source: tokenised source text, which LSTMs require: one file for all n-best lists, or one for each.
        feature: name of the feature (default: CSLM0 or LSTM0).

    Returns:
        The paths of the outputs; the figures are the numbers of translations.

    Raises:
        InputError: the numbers of files differ, a file is malformed, an n-best list is empty or of another text,
            ``feature`` is not a name, the networks are of several kinds or of a kind that cannot score translations, or
            torch is not installed.
    """
    from collections import Counter
    from functools import lru_cache, partial

    from rnnsmt.networks.scoring import add_to_nbest, scored_alike

    lists, outputs, texts = ([str(path) for path in each(paths)] for paths in (nbest, output, source))
    ensembles = [tuple(map(str, paths)) for paths in model]
    if len(kinds := {kind_of(path) for paths in ensembles for path in paths}) > 1:
        raise InputError(f"--model: the networks must be of one kind, but they are {' and '.join(sorted(kinds))}")
    network = NETWORKS[kinds.pop()]
    name = feature or network.list_feature
    if not network.list_feature:
        raise InputError(f"--model {ensembles[0][0]}: a network of this kind does not score translations")
    if not name.isidentifier():
        raise InputError(f"--feature {name}: must be a name such as LSTM0")
    if network.reads_source and not texts:
        raise InputError(f"--source: is required for the model {ensembles[0][0]}")
    groups = scored_alike(lists, outputs, model=ensembles, source=texts if network.reads_source else [""])
    need_torch()

    scores_of = lru_cache(1)(partial(network.list_scores, unknown=unknown, device=device, threads=threads))
    counts: Counter[str] = Counter()
    for (models, text), alike, written in groups:  # the groups of an ensemble follow one another
        sources = network.read_source(text) if text else []
        counts.update(add_to_nbest(partial(scores_of(models), sources), alike, written, name, len(sources) or None))
    return WrittenFiles(map(Path, outputs), counts)


@operation(version=1)
def perplexity(
    model: InputFile,
    input: Texts,
    output: OptionalOutput = None,
    *,
    compare: InputFile | None = None,
    device: Device = Rnn.device,
    threads: Threads = THREADS,
) -> "PerplexityReport | Perplexity":
    r"""Compute the perplexity of a text under an n-gram model, a CSLM or a joint model, and optionally a second model.

    The kind of the model is read from its file. ``</s>`` is predicted and counted on every line.

    n-gram model: the output (JSON) contains the numbers of sentences, words and unknown words, and the perplexity
    including unknown words (as ``<unk>``) and excluding them.

    CSLM: words outside the shortlist form one class. The output contains the perplexity including these words and
    excluding them. With ``compare``, an n-gram model predicts the same events: the probability of the class is the sum
    over ``<unk>`` and all words of the n-gram model outside the shortlist. The output then also contains the
    perplexities under the n-gram model and under a mixture of both models with equal weights.

    Joint model: the same for the target side of a bitext; ``compare`` is a CSLM with the same target vocabulary, and
    there is no mixture.

    The softmax is exact; logarithms are natural. For a self-normalised network, the output contains the mean and
    standard deviation of ln Z, where Z is the sum of the softmax over all classes.

    Examples, in the directory of a run of the demo corpus:

        rnnsmt networks perplexity --model try/cslm.safetensors \
            --input results/corpus/joined/truecased/dev.fr.gz --compare results/model/lm.arpa.gz \
            --output try/cslm.perplexity.json
        rnnsmt networks perplexity --model try/nnjm.safetensors --input try/examples --output try/nnjm.perplexity.json

    Args:
        model: model file written by `networks train`, or an n-gram model of order 2 to 6 (ARPA or KenLM binary).
        input: tokenised text, one sentence per line; for a joint model, the directory written by `networks prepare`
            with the vocabularies of the model.
        output: output file (JSON).
        compare: model for comparison: an n-gram model (ARPA) for a CSLM, a CSLM for a joint model.

    Returns:
        The values of the output.

    Raises:
        InputError: the text is empty, a model is malformed, the vocabularies differ, or torch is not installed.
    """
    from rnnsmt.base.writing import write_json

    kind = kind_of(model) if str(model).endswith(".safetensors") else kind_or_none(model)
    if kind is None and compare is not None:
        raise InputError(f"--compare {compare}: requires a network as --model, but {model} is none")
    with TextFiles() as files:
        inputs = files.all_of("input", input)
        if kind is None:
            order, measured = _ngram_perplexity(model, inputs)
            if output is not None:
                write_json(output, {"lm_order": order, **measured.as_dict()})
            return measured
        need_torch()
        report = NETWORKS[kind].perplexity(model, inputs, compare, device, threads)
    if output is not None:
        write_json(output, report)
    return report


def _ngram_perplexity(path: StrPath, inputs: list[str]) -> "tuple[int, Perplexity]":
    """Return the order of an n-gram model, and the perplexity of a text in one or several files."""
    from rnnsmt.base.progress import track
    from rnnsmt.base.reading import read_lines
    from rnnsmt.lm.queries import load_kenlm, measure

    model = load_kenlm(path)
    lines = (line for text in inputs for line in read_lines(text))
    return model.order, measure(model, track(lines, "measuring"), ", ".join(inputs))
