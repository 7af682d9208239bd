"""Operations on networks of all kinds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rnnsmt.base.arguments import (
    SAVE_EVERY,
    THREADS,
    CheckpointDir,
    InputFile,
    InputFiles,
    OptionalOutput,
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
from rnnsmt.base.paths import StrPath
from rnnsmt.config.sections import Device, Rnn, Unknown
from rnnsmt.networks.network import DATA, SettingsOptions, kind_of, kind_or_none
from rnnsmt.networks.options import Ensembles, need_torch
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.registries import NETWORKS

if TYPE_CHECKING:
    from rnnsmt.lm.queries import Perplexity
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task
    from rnnsmt.networks.text_scores import PerplexityReport

NetworkName = Annotated[str, Field(registry=NETWORKS)]


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

    The networks, and what they are trained on:

        rnn       RNN Encoder-Decoder (Cho et al. 2014), on phrase pairs (`phrases extract`) in the vocabularies of
                  `rnn prepare`: two paths
        cslm      continuous-space language model (Schwenk 2007), on the directory of `cslm prepare`
        nnjm      neural network joint model (Devlin et al. 2014), on the directory of `nnjm prepare`
        seq2seq   LSTM encoder-decoder (Sutskever, Vinyals and Le 2014), on the directory of `seq2seq prepare`

    Outputs are the network and its learning curve (JSON). Held-out examples are evaluated several times (rnn, seq2seq)
    or after every epoch (cslm, nnjm); training of the latter ends after the maximum number of epochs, or when the
    perplexity has not improved for some of them (patience).

    ``checkpoint_dir`` contains the last checkpoint, from which an interrupted run resumes. On a CPU, with the same
    ``threads``, the result is bitwise identical to that of an uninterrupted run. On SIGTERM, and shortly before
    ``time_limit``, a checkpoint is saved and the exit status is 75 (130 after Ctrl-C); run the same command again to
    resume.

    Example, in the directory of a run of the demo corpus:

        rnnsmt networks train --network rnn --data results/phrases/pairs.safetensors try/vocabularies --preset demo \
            --epochs 2 --seed 1 --output-model try/rnn.safetensors --output-history try/rnn.json \
            --checkpoint-dir try/rnn.checkpoint --threads 2

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
    is not changed: `moses add-feature` writes the moses.ini with the feature, `tuning optimize` determines its weight
    (weight 1 corresponds to the unweighted mean of Sutskever et al. 2014), and `tuning rerank` selects the best
    hypotheses with it.

    One ``model`` is used for all n-best lists, or one for each list. Lists of the same model and text are read
    together: a translation that several of them have is scored once. LSTMs read the ``source``, and compute every
    source sentence and every common prefix of its translations once. A self-normalised CSLM is not normalised.

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
            ``feature`` is not a name, the networks are of several kinds or of one without scores of translations, or
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
    r"""Compute the perplexity of a text under an n-gram model, a CSLM or a joint model, and another one for comparison.

    The kind of the model is read from its file. ``</s>`` is predicted and counted on every line.

    n-gram model: the output (JSON) contains the numbers of sentences, words and unknown words, and the perplexity
    including unknown words (as ``<unk>``) and excluding them.

    CSLM: words outside the shortlist form one class. With ``compare``, an n-gram model predicts the same events; its
    probability of the class is the sum over ``<unk>`` and all its words that are not in the shortlist, and the output
    contains the perplexity of a mixture of both models with equal weights. A second perplexity excludes these words.

    Joint model: the same for the target side of a bitext, with a CSLM of the same target vocabulary as ``compare``.

    The softmax is exact; logarithms are natural. For a self-normalised network, the output contains the mean and
    standard deviation of ln Z, where Z is the sum of the softmax over all classes.

    Example, in the directory of a run of the demo corpus:

        rnnsmt networks perplexity --model try/cslm.safetensors \
            --input results/corpus/joined/truecased/dev.fr.gz --compare results/model/lm.arpa.gz \
            --output try/cslm.perplexity.json

    Args:
        model: model file written by `networks train`, or an n-gram model of order 2 to 6 (ARPA or KenLM binary).
        input: tokenised text, one sentence per line; for a joint model, the directory written by `nnjm prepare` with
            the vocabularies of the model.
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
    """Return the order of an n-gram model, and the perplexity of the files of a text."""
    from rnnsmt.base.progress import track
    from rnnsmt.base.reading import read_lines
    from rnnsmt.lm.queries import load_kenlm, measure

    model = load_kenlm(path)
    lines = (line for text in inputs for line in read_lines(text))
    return model.order, measure(model, track(lines, "measuring"), ", ".join(inputs))
