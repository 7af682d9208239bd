"""Sizes of the networks, and their training settings; does not import torch or pydantic."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, dataclass_transform

from rnnsmt.base.errors import InputError
from rnnsmt.base.fields import Field, Mistake, checked, fields_of
from rnnsmt.base.operations import as_in_python
from rnnsmt.base.options import check_choice, option
from rnnsmt.config.declaration import section

Size = Annotated[int, Field(gt=0)]
Order = Annotated[int, Field(ge=2)]

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True)
def network_sizes(cls: type[Class]) -> type[Class]:
    """Make a class of network sizes a frozen dataclass; pydantic checks types and bounds of sizes in model files."""
    cls.__pydantic_config__ = {"extra": "forbid", "strict": True}  # type: ignore[attr-defined]
    return dataclass(frozen=True)(cls)


class NetworkSizes(ABC):
    """Base class of the sizes of a network; the decorator of subclasses is ``network_sizes``."""

    @abstractmethod
    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: part of the network -> symbol in the equations -> number."""

    def count(self) -> int:
        """Return the total number of parameters."""
        return sum(sum(group.values()) for group in self.parameters().values())

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, as written to model files."""
        return dict(vars(self))

    def __str__(self) -> str:
        """Return a table of the sizes, the number of parameters of each part and symbol, and their total."""
        lines = [f"{name.replace('_', ' '):20} {value}" for name, value in self.as_dict().items()]
        lines.append("")
        for group, symbols in self.parameters().items():
            lines.append(f"{group:30} {sum(symbols.values()):>12,}")
            lines += [f"    {symbol:26} {number:>12,}" for symbol, number in symbols.items()]
        lines.append(f"{'all parameters':30} {self.count():>12,}")
        return "\n".join(lines)


class FeedForwardSizes(NetworkSizes):
    """The sizes of a feed-forward network that predicts a class from a context, a sequence of ids.

    Attributes:
        vocabulary: number of softmax classes.
        projection: dimension of the projection (embedding) of an id.
        hidden_1, hidden_2: number of units of the hidden layers.
    """

    vocabulary: Size
    projection: Size
    hidden_1: Size
    hidden_2: Size

    @property
    @abstractmethod
    def context(self) -> int:
        """Return the number of ids of a context."""

    @property
    @abstractmethod
    def inputs(self) -> int:
        """Return the number of distinct ids that a context may contain."""

    @property
    def ranges(self) -> list[range]:
        """Return the ids that each position of the context may have."""
        return [range(self.inputs)] * self.context

    @property
    @abstractmethod
    def activation(self) -> str:
        """Return the activation function of the hidden layers, ``relu`` or ``tanh``."""

    def parameters(self) -> dict[str, dict[str, int]]:
        """Return the numbers of parameters: layer -> symbol -> number; biases are ``b_...``."""
        first, second = self.hidden_1, self.hidden_2
        return {
            "projection": {"R": self.inputs * self.projection},
            "hidden 1": {"W_1": first * self.context * self.projection, "b_1": first},
            "hidden 2": {"W_2": second * first, "b_2": second},
            "softmax": {"W_o": self.vocabulary * second, "b_o": self.vocabulary},
        }


Batch = Annotated[int, Field(gt=0, description="minibatch size")]
Epochs = Annotated[float, Field(gt=0, description="number of epochs, may be fractional")]
Optimizer = Annotated[
    Literal["adadelta", "adam", "sgd"],
    Field(description="optimizer; adadelta: rho 0.95, eps 1e-6; adam: AdamW; sgd: without momentum"),
]
LearningRate = Annotated[
    float, Field(gt=0, description="base learning rate, to which ``warmup`` and ``schedule`` apply")
]
Schedule = Annotated[
    Literal["constant", "linear", "halving"],
    Field(
        description="learning rate schedule; linear: decay to 0 at the last update; halving: constant for the first "
        "2/3 of the updates, then halved every 1/15 of the updates"
    ),
]
"""``halving`` is the schedule of Sutskever et al. (2014), who train for 7.5 epochs: the learning rate is constant for 5
epochs, then it is halved every half epoch."""
Warmup = Annotated[int, Field(ge=0, description="number of updates of linear learning rate warm-up")]
Clip = Annotated[float, Field(gt=0, description="maximum norm of the gradient; larger gradients are scaled down")]
WeightDecay = Annotated[float, Field(ge=0, description='decoupled weight decay, for ``optimizer="adam"`` only')]
"""Decoupled weight decay (Loshchilov and Hutter 2019), which is multiplied by the learning rate."""
Dropout = Annotated[float, Field(ge=0, lt=1, description="dropout rate")]
SampledClasses = Annotated[
    int,
    Field(
        ge=0,
        description="number of classes sampled for the softmax of a minibatch in training, in addition to the words in "
        "it; 0: softmax over all classes",
    ),
]
"""See ``rnnsmt.networks.draws.ClassSampler``."""
Precision = Annotated[
    Literal["float32", "reduced"],
    Field(
        description="precision of matrix products in training; reduced: bfloat16 on CPUs with bfloat16 instructions, "
        "TF32 on GPUs"
    ),
]
"""See ``rnnsmt.networks.devices.set_up_device``."""
Evaluations = Annotated[int, Field(gt=0, description="number of evaluations on the held-out pairs")]
Keep = Annotated[
    Literal["last", "best"],
    Field(description="parameters to save: the last ones, or the best ones on the held-out pairs"),
]


def held_out_pairs(pairs: int, at_most: int, part: int) -> int:
    """Return the number of pairs to hold out: 1/``part`` of ``pairs``, but at least 1 and at most ``at_most``.

    If ``pairs`` is less than 2, no pair is held out.
    """
    return min(at_most, max(pairs // part, int(pairs > 1)))


class TrainingSettings(ABC):
    """All settings of a training run except its data and seed; subclasses are frozen dataclasses with defaults.

    A subclass declares all fields with their defaults: the fields below, which all networks have, with the types above,
    and its own. The description of a field is the help text of the command-line option. An invalid value raises
    ``InputError``.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    batch: int
    optimizer: str
    learning_rate: float
    schedule: str
    warmup: int
    clip: float
    weight_decay: float
    dropout: float
    sampled_classes: int
    precision: str

    @classmethod
    @abstractmethod
    def presets(cls) -> Mapping[str, Self]:
        """Return the presets by name."""

    @classmethod
    def preset(cls, name: str, **overrides: Any) -> Self:
        """Return the settings of a preset, with other values for some of them: ``preset("demo", epochs=2)``.

        Settings of the preset that cannot be combined with the overrides are set to 0.

        Raises:
            InputError: the preset or a setting is unknown, a value is out of range, or values cannot be combined.
        """
        check_choice("preset", name, cls.presets())
        return cls(**cls._accepted(cls.presets()[name].values_with(overrides)))

    def values_with(self, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of all settings with overrides, unchecked.

        Other settings that cannot be combined with the overrides are set to 0.
        """
        values = vars(self) | dict(overrides)
        return values | {name: 0 for name in self.incompatible(values) if name not in overrides}

    @classmethod
    def checked(cls, values: Mapping[str, Any], text: bool = False) -> tuple[dict[str, Any], list[Mistake]]:
        """Convert values to the types of the settings; return them and the mistakes, see ``fields.checked``."""
        accepted, mistakes = checked(cls, values, text)
        return accepted, mistakes or [Mistake("", text) for text in cls.conflicts(accepted)]

    @classmethod
    def conflicts(cls, values: Mapping[str, Any]) -> Iterator[str]:
        """Yield an error message, with the names of options, for each combination of values that is not allowed."""
        if values["weight_decay"] and values["optimizer"] != "adam":
            yield f"--weight-decay {values['weight_decay']}: requires --optimizer adam"
        for name, other in cls.incompatible(values).items():
            if values[name]:
                yield f"{option(name)} {values[name]}: cannot be combined with {other}; set it to 0"

    @classmethod
    def incompatible(cls, values: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the settings that must be 0 because of the values of others: name -> option that requires it."""
        return {}

    @classmethod
    def _accepted(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Check values and convert them to the types of the settings; error messages name arguments of ``preset``."""
        accepted, mistakes = cls.checked(values)
        for name, text, value in mistakes:
            message = as_in_python(text, fields_of(cls))
            raise InputError(f"{name} {value!r}: {message}" if name else message)
        return accepted

    def __repr__(self) -> str:
        """Return the call of ``preset`` with the fewest overrides that gives these settings."""
        values = vars(self)
        differing = {
            preset: {name: value for name, value in values.items() if value != getattr(settings, name)}
            for preset, settings in self.presets().items()
        }
        nearest = min(differing, key=lambda preset: len(differing[preset]))
        overrides = "".join(f", {name}={value!r}" for name, value in differing[nearest].items())
        return f"{type(self).__name__}.preset({nearest!r}{overrides})"

    def __post_init__(self) -> None:
        """Check and convert the values."""
        vars(self).update(self._accepted(vars(self)))

    @abstractmethod
    def sizes(self, *vocabularies: int) -> NetworkSizes:
        """Return the sizes of the network for these numbers of classes."""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name."""
        return dict(vars(self))


@section
class FeedForwardSettings(TrainingSettings):
    """Settings of training on the n-grams of a text, with an evaluation after every epoch and early stopping.

    The defaults are those of the paper's language model.

    Attributes:
        spread: 0 selects the initial weights of He et al. (2015).
        singletons: if the shortlist contains every word of the text, UNK is learnt only from the replaced words.
        epochs: the schedule ``linear`` reaches 0 after this number of epochs, even if training stops earlier.
    """

    order: Annotated[
        int, Field(ge=2, description="n-gram order: number of target context words plus the predicted word")
    ] = 7
    projection: Annotated[
        int, Field(gt=0, description="dimension of the projection (embedding) of every input word")
    ] = 512
    hidden_1: Annotated[int, Field(gt=0, description="number of units of the first hidden layer")] = 1536
    hidden_2: Annotated[int, Field(gt=0, description="number of units of the second hidden layer")] = 1024
    spread: Annotated[
        float,
        Field(
            ge=0,
            description="initial weights are drawn from U(-X, X); 0: range derived from the number of inputs of a unit",
        ),
    ] = 0.01
    output_bias: Annotated[
        Literal["zero", "unigram", "uniform"],
        Field(
            description="initial output biases; unigram: log relative frequencies of the words; uniform: -ln(number of "
            "classes)"
        ),
    ] = "zero"
    dropout: Annotated[
        float, Field(ge=0, lt=1, description="dropout rate of the projection and of both hidden layers")
    ] = 0.0
    singletons: Annotated[
        float,
        Field(
            ge=0, le=1, description="probability of replacing a word that occurs once in the text by UNK in training"
        ),
    ] = 0.0
    self_normalised: Annotated[
        float,
        Field(
            ge=0,
            description="weight alpha of the self-normalisation penalty alpha (ln Z)^2 (Devlin et al. 2014); 0: no "
            "penalty, and scoring uses the exact softmax",
        ),
    ] = 0.0
    sampled_classes: SampledClasses = 0
    batch: Batch = 1024
    epochs: Annotated[int, Field(gt=0, description="maximum number of epochs")] = 100
    patience: Annotated[
        int,
        Field(
            gt=0,
            description="number of epochs without an improvement of the validation perplexity after which training "
            "stops",
        ),
    ] = 10
    held_out: Annotated[
        float, Field(ge=0, le=0.1, description="fraction of the n-grams used for validation, at most 0.1")
    ] = 0.001
    held_out_least: Annotated[
        int, Field(gt=0, description="minimum number of validation n-grams, limited to 10 % of all n-grams")
    ] = 1000
    optimizer: Optimizer = "adam"
    learning_rate: LearningRate = 3e-4
    schedule: Schedule = "constant"
    warmup: Warmup = 0
    clip: Clip = 1.0
    weight_decay: WeightDecay = 0.0
    precision: Precision = "float32"

    @abstractmethod
    def sizes(self, *vocabularies: int) -> FeedForwardSizes: ...

    def held_out_of(self, ngrams: int) -> int:
        """Return the number of n-grams to use for validation, given the total number ``ngrams``."""
        return min(max(round(ngrams * self.held_out), self.held_out_least), ngrams // 10)
