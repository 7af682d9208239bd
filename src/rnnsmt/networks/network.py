"""Interface of a kind of network: its settings, training data, training and scores. This module does not import torch.

``rnnsmt.registries.NETWORKS`` lists all kinds by name. `networks train --network NAME` trains one of them.
"""

import argparse
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import CommandParser, Setting, add_option, fields_of
from rnnsmt.base.operations import as_on_command_line
from rnnsmt.base.options import option
from rnnsmt.base.paths import StrPath
from rnnsmt.base.reading import read_lines
from rnnsmt.networks.settings import TrainingSettings
from rnnsmt.registries import NETWORKS

if TYPE_CHECKING:
    from rnnsmt.networks.data import Vocabulary
    from rnnsmt.networks.devices import DeviceSetup
    from rnnsmt.networks.task import Task
    from rnnsmt.networks.text_scores import PerplexityReport

Block = Sequence[tuple[int, Sequence[str]]]
"""Sentences of a text: the 0-based number of each sentence, and some of its translations."""

ListScores = Callable[[Sequence[str], Block], Iterable[float]]
"""Function that takes the source sentences of a text and a ``Block``, and computes ln p of all translations of the
block, one after the other."""

METADATA = "rnnsmt"
"""The only key of the metadata of a model file, whose value is a JSON object with all entries: safetensors would write
several keys in random order."""

MOST_BYTES = 100_000_000
"""Maximum size of the header of a safetensors file."""

DATA = {
    "pairs": "phrase pairs, written by `phrases extract` or `phrases import-table`",
    "vocabularies": "directory written by `networks prepare --network rnn`",
    "text": "directory written by `networks prepare --network cslm`",
    "examples": "directory written by `networks prepare --network nnjm`",
    "sentences": "directory written by `networks prepare --network seq2seq`",
}
"""Kinds of training data: name -> description. The workflow prepares those that the networks of a run read."""


@dataclass(frozen=True)
class TrainingTexts:
    """Texts from which `networks prepare` makes the training data of a network.

    Attributes:
        source, target: text files of each side; the n-th files are parallel.
        alignment: word alignments in Pharaoh format; the n-th file aligns the n-th files of both sides.
        vocab_sizes: sizes of the source and the target vocabulary.
        vocabularies: vocabulary files of source and target; None: the vocabulary consists of the most frequent words.
        vocabulary_text: files whose words are counted for the target vocabulary; empty: those of ``target``.
        max_length: maximum number of words of a sentence.
    """

    source: list[str]
    target: list[str]
    alignment: list[str]
    vocab_sizes: tuple[int, int]
    vocabularies: tuple[StrPath | None, StrPath | None]
    vocabulary_text: list[str]
    max_length: int

    def vocabulary(self, side: int) -> "Vocabulary":
        """Return the vocabulary of the source side (0) or of the target side (1)."""
        from rnnsmt.networks.data import Vocabulary

        if (path := self.vocabularies[side]) is not None:
            return Vocabulary.read(path)
        counted = (self.source, self.vocabulary_text or self.target)[side]
        return Vocabulary.of_texts(counted, self.vocab_sizes[side], f"on the {('source', 'target')[side]} side")


class Network(ABC):
    """Base class of a kind of network. The module of a subclass imports torch only inside of functions.

    Attributes:
        data: kinds of training data, keys of ``DATA``, in the order in which ``task`` expects them.
        texts: arguments of `networks prepare` that ``prepare`` uses in addition to the target text; empty: the command
            does not prepare data for the network.
        presets: settings by name. By default, a run uses ``demo`` for the demo corpus and ``default`` otherwise.
        default: name of the default preset.
        list_feature: default name of the network's score in n-best lists; empty: the network does not score
            translations.
        reads_source: whether the score of a translation depends on its source sentence.
        version: version of the training. It is increased when the same data and settings give another network than
            before. The networks of a run are then trained again, and older checkpoints are not resumed.
    """

    data: Sequence[str]
    texts: Sequence[str] = ()
    presets: Mapping[str, Any]
    default: str = "small"
    list_feature: str = ""
    reads_source: bool = False
    version: int = 1

    @property
    def settings(self) -> type[TrainingSettings]:
        """Return the class of the presets."""
        return type(self.presets[self.default])

    @abstractmethod
    def task(self, data: Sequence[Path], settings: Any, seed: int, setup: "DeviceSetup") -> "Task":
        """Open the training data, create the network on a device, and return the training task.

        data: paths of the training data, in the order of the attribute ``data``.
        """

    def prepare(self, texts: TrainingTexts, output_dir: str) -> dict[str, object]:
        """Write the directory of training data, and return the statistics; for networks with ``texts`` only."""
        raise NotImplementedError

    def read_source(self, path: StrPath) -> list[str]:
        """Return the sentences of the source text of n-best lists; for networks with ``reads_source`` only."""
        return list(read_lines(path))

    def list_scores(self, models: Sequence[str], unknown: str, device: str, threads: int) -> ListScores:
        """Load the networks of an ensemble, and return the function that scores translations.

        unknown: score of words outside the shortlist, see ``rnnsmt.config.features.UnknownScore``.
        """
        raise NotImplementedError

    def perplexity(
        self, model: StrPath, inputs: list[str], other: StrPath | None, device: str, threads: int
    ) -> "PerplexityReport":
        """Compute the perplexity of a text under a network, and under another model for comparison.

        Args:
            model: model file of the network.
            inputs: the argument ``input`` of `networks perplexity`.
            other: the model for comparison, or None.
        """
        raise InputError(f"{model}: `networks perplexity` requires an n-gram model, a CSLM or a joint model")


class SettingsOptions:
    """Command-line options for the settings of a network: ``--preset``, and an option for each setting to override it.

    The network is that of ``--network``. Without it, the help lists the settings of all networks.
    """

    def add_options(self, parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
        """Add the options; the help text of a setting ends with its values in all presets."""
        name = _named(words)
        if name is None:
            parser.add_argument("--preset", metavar="NAME", help="preset of network sizes and training settings")
            parser.epilog = "\n".join(map(_listed, NETWORKS))
        else:
            try:
                _add_settings(parser, NETWORKS[name])
            except InputError as error:
                parser.error(str(error))
        if isinstance(parser, CommandParser):
            parser.explain = lambda word: _explanation(word, name)

    def value(self, namespace: argparse.Namespace) -> TrainingSettings:
        """Return the settings of the preset, overridden by the options of the command line."""
        network = NETWORKS[namespace.network]
        preset: TrainingSettings = network.presets[namespace.preset]
        values = preset.values_with({name: value for name, value in vars(namespace).items() if name in vars(preset)})
        for mistake in network.settings.checked(values)[1]:
            raise InputError(str(mistake))
        return network.settings(**values)

    def fields(self) -> dict[str, Setting]:
        """Return the settings of all built-in networks by name."""
        return {
            name: setting for network in NETWORKS for name, setting in fields_of(NETWORKS[network].settings).items()
        }


def kind_of(path: StrPath) -> str:
    """Return the kind of the network in a model file, a name in ``NETWORKS``.

    Raises:
        InputError: the file does not exist, or is not the model file of a network.
    """
    kind = kind_or_none(path)
    if kind is None:
        raise InputError(
            f"{path}: is not a complete file of a network (networks of version 1.0.0 cannot be read); train it again "
            "with `networks train`"
        )
    return kind


def kind_or_none(path: StrPath) -> str | None:
    """Return the kind of the network in a model file; None if the file is not that of a network.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size if size <= MOST_BYTES else 0))
        version = json.loads(header["__metadata__"][METADATA])["format"]
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError(f"{path}: {reason}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    found = re.fullmatch(r"rnnsmt-([a-z0-9]+)-\d+", str(version))
    return found[1] if found is not None and found[1] in NETWORKS else None


def _named(words: Sequence[str]) -> str | None:
    """Return the value of ``--network`` in the words of a command line; None if it is missing or not a network."""
    values = [
        word.removeprefix("--network=") if "=" in word else "".join(words[place + 1 : place + 2])
        for place, word in enumerate(words)
        if word.partition("=")[0] == "--network"
    ]
    return values[0] if values and values[0] in NETWORKS else None


def _listed(name: str) -> str:
    """Return the part of the help text that lists the settings of a network."""
    network = NETWORKS[name]
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, add_help=False)
    _add_settings(parser, network, f"settings of {name}, presets: {', '.join(network.presets)}")
    return parser.format_help()


def _add_settings(parser: argparse.ArgumentParser, network: Network, title: str = "") -> None:
    """Add the options for the settings of a network; without a title, ``--preset`` too."""
    if not title:
        parser.add_argument(
            "--preset",
            choices=tuple(network.presets),
            default=network.default,
            help="preset of network sizes and training settings",
        )
    group = parser.add_argument_group(title or "override preset settings")
    fields = fields_of(network.settings)
    for name, setting in fields.items():
        text = as_on_command_line(setting.field.description, fields)
        text = f"{text} ({_values(network.presets, name)})".replace("%", "%%")
        add_option(group, name, setting, default=argparse.SUPPRESS, help=text)


def _values(presets: Mapping[str, TrainingSettings], name: str) -> str:
    """Return the value of a setting in every preset, for its help text."""
    values = {preset: getattr(settings, name) for preset, settings in presets.items()}
    texts = {preset: f"{value:g}" if isinstance(value, float) else str(value) for preset, value in values.items()}
    if len(set(texts.values())) == 1:
        return f"all presets: {next(iter(texts.values()))}"
    return ", ".join(f"{preset} {text}" for preset, text in texts.items())


def _explanation(word: str, name: str | None) -> str:
    """Return why an option is unknown, if it is a setting of a built-in network; otherwise an empty string."""
    owners = [other for other in NETWORKS if word in map(option, fields_of(NETWORKS[other].settings))]
    if not owners:
        return ""
    listed = f"a setting of {', '.join(owners)}"
    return (
        f"option {word}: is {listed}; specify --network"
        if name is None
        else f"option {word}: is {listed}, not of {name}"
    )
