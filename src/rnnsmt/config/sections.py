"""The settings of the workflow: one class per section of the configuration, with types, bounds, defaults and meaning.

Every setting is declared here only. The checks of a configuration (``rnnsmt.plan.validation``), the options of the
commands (``rnnsmt.base.fields``), the JSON schema and the table of settings in the documentation are derived from these
declarations.

A field whose default depends on the corpora is declared with ``auto``: its default is for a user's own corpora, and
``demo`` is for the demo corpus and for ``quick: true``, which should run in minutes. In a configuration, the value
``auto`` selects one of the two. The settings of a corpus are in ``corpus_entry.py``.
"""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated, Any, Literal

from rnnsmt.base.fields import Field
from rnnsmt.config.corpus_entry import CorpusEntry, Fraction, Name
from rnnsmt.config.declaration import auto, section
from rnnsmt.config.features import UnknownScore
from rnnsmt.registries import ALIGNERS, FEATURES, METRICS, OPTIMIZERS, SYMMETRIZATIONS

SystemName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_+-]*$", max_length=60)]

LstmName = Annotated[str, Field(pattern=r"^lstm(_[a-z0-9]+)*$", max_length=60)]

Preset = Literal["demo", "small", "paper"]

Program = Literal["rnnsmt", "moses"]

Aligner = Annotated[str, Field(f"alignment model; {ALIGNERS.described()}", registry=ALIGNERS)]

Symmetrization = Annotated[
    str, Field(f"symmetrisation heuristic; {SYMMETRIZATIONS.described()}", registry=SYMMETRIZATIONS)
]

Smoothing = Literal["none", "kneser-ney"]


@section
class Languages:
    """Source and target language, as ISO 639-1 codes, or ISO 639-3 codes for languages without an ISO 639-1 code."""

    source: Annotated[str, Field(description="source language")]
    target: Annotated[str, Field(description="target language")]


DemoScale = Annotated[float, Field(ge=0.01, le=1, description="fraction of the training lines of the demo corpus")]


@section
class Demo:
    """The demo corpus. It is created if the files of a corpus are in ``results/demo``."""

    scale: DemoScale = 1.0


Normalize = Annotated[bool, Field(description="normalise punctuation")]

Tokenize = Annotated[bool, Field(description="tokenise with the Moses rules")]

Escape = Annotated[bool, Field(description="escape Moses' special characters: &apos; &quot; &#124; ...")]

Lowercase = Annotated[bool, Field(description="lowercase all text")]

SentenceLength = Annotated[
    int, Field(ge=1, description="maximum number of words of a sentence; longer training pairs are rejected")
]

LengthRatio = Annotated[
    float,
    Field(
        ge=1, description="maximum ratio of the numbers of words of the two sides; other training pairs are rejected"
    ),
]


@section
class Preprocessing:
    """Preprocessing. For corpora that are already tokenised, set normalize, tokenize and truecase to false."""

    normalize: Normalize = True
    tokenize: Tokenize = True
    escape: Escape = True
    lowercase: Lowercase = False
    truecase: Annotated[bool, Field(description="truecase with the Moses method")] = True
    max_length: SentenceLength = 80
    max_ratio: LengthRatio = 9


@section
class NumberOfWords:
    """Amount of text that selection keeps."""

    words: Annotated[float, Field(gt=0, description="millions of target words")]


Amount = Literal["auto"] | Fraction | NumberOfWords


@section
class Selection:
    """Data selection: how much of the training text is kept.

    A fraction (1: no selection), ``auto`` for the fraction with the lowest perplexity on held-out in-domain text, or
    ``{words: 348}`` for the best lines with up to 348 million target words.
    """

    bitext: Annotated[Amount, Field(description="how many training pairs are kept (Axelrod et al. 2011)")] = "auto"
    mono: Annotated[
        Amount, Field(description="how much text for the language models is kept (Moore and Lewis 2010)")
    ] = "auto"
    random: Annotated[
        bool, Field(description="control experiment: whether random lines are kept instead of the best lines")
    ] = False


@section
class Engines:
    """Program for each part of the pipeline."""

    alignment: Program = "rnnsmt"
    training: Program = "rnnsmt"
    tuning: Program = "rnnsmt"
    decoding: Program = "rnnsmt"


@section
class Alignment:
    """Word alignment."""

    aligners: Annotated[
        list[Aligner],
        Field(
            min_length=1,
            description="alignment models; phrases are extracted from the alignments of all, and the counts are added; "
            + ALIGNERS.described(),
        ),
    ] = field(default_factory=lambda: ["model4", "fast_align"])
    symmetrization: Symmetrization = "grow-diag-final-and"
    external: Annotated[
        str | None,
        Field(description="file with an alignment by another program in Pharaoh format, used instead of the aligners"),
    ] = None


PhraseLength = Annotated[
    int,
    Field(
        ge=1,
        le=8,  # the links of a phrase pair are stored in 64 bits
        description="maximum number of words of a phrase",
    ),
]

PhraseSmoothing = Annotated[
    Smoothing,
    auto(
        "smoothing of the phrase probabilities; none: relative frequencies, as in Moses and in the paper; "
        "kneser-ney: Foster et al. (2006)",
        demo="none",
    ),
]


@section
class Phrases:
    """Phrase extraction."""

    max_length: PhraseLength = 7
    smoothing: PhraseSmoothing = "kneser-ney"
    export: Annotated[
        Literal["all", "baseline"],
        Field(
            description="phrase tables that are written in Moses format; all: the tables of all compared systems; "
            "baseline: the table of the baseline only; no other job waits for them"
        ),
    ] = "all"


Order = Annotated[int, Field(ge=2, le=10, description="order of the n-grams")]

Estimator = Annotated[
    Literal["auto", "lmplz", "builtin"],
    Field(description="program that estimates the model; auto: KenLM's lmplz if it is on PATH, else builtin"),
]

Pruning = Annotated[
    Sequence[Annotated[int, Field(ge=0)]],
    Field(
        description="pruning thresholds by order, starting with unigrams: n-grams with at most this count are "
        "removed; the last threshold also applies to all higher orders; thresholds must not decrease"
    ),
]


@section
class Lm:
    """The n-gram language model."""

    order: Order = 5
    estimator: Estimator = "auto"
    prune: Pruning = ()


VocabSize = Annotated[
    int,
    auto(
        "size of each vocabulary: the most frequent words, UNK and a reserved id",
        demo=1500,
        ge=3,
    ),
]

Settings = Annotated[
    dict[str, Any],
    Field(description="settings that override the preset, with the names of the options of `networks train`"),
]

NetworkPreset = Annotated[Preset, auto("preset of network sizes and training settings", demo="demo")]

Unknown = Annotated[
    UnknownScore,
    auto(
        "score of a word outside the shortlist; class: p(UNK), as in the paper; word: p(UNK) divided by the number of "
        "such words in the training text",
        demo="class",
    ),
]

Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    Field(description="device to compute the networks on; auto: a GPU if one is available, else the CPU"),
]


@section
class Rnn:
    """The RNN Encoder-Decoder."""

    vocab_size: VocabSize = 15_000
    preset: NetworkPreset = "small"
    settings: Settings = field(default_factory=dict)
    device: Device = "auto"


@section
class Cslm:
    """Continuous-space language model, with the target vocabulary of ``rnn``."""

    preset: NetworkPreset = "small"
    settings: Settings = field(default_factory=dict)
    unknown: Unknown = "word"


@section
class Nnjm:
    """Neural network joint model (Devlin et al. 2014), with the vocabularies of ``rnn``."""

    preset: NetworkPreset = "small"
    settings: Settings = field(default_factory=dict)
    unknown: Unknown = "word"


Beam = Annotated[int, Field(ge=1, description="beam size")]


@section
class Lstms:
    """LSTM encoder-decoders that translate sentences (Sutskever et al. 2014), trained if a system uses them."""

    preset: NetworkPreset = "small"
    settings: Settings = field(default_factory=dict)
    networks: Annotated[
        dict[LstmName, dict[str, Any]], Field(description="networks by name, with settings that override `settings`")
    ] = field(default_factory=lambda: {"lstm": {}, "lstm_forward": {"source_order": "forward"}})
    source_vocab_size: VocabSize = 15_000
    target_vocab_size: VocabSize = 15_000
    beam: Beam = 12
    nbest: Annotated[int, auto("length of the n-best lists to rescore", demo=100, ge=2)] = 1000
    sentences: Annotated[
        str | None,
        Field(
            description="file with tokenised source sentences whose vectors are plotted, in groups separated by empty "
            "lines"
        ),
    ] = None
    compare: Annotated[list[str], Field(description="systems in Table 2, in row order")] = field(default_factory=list)


@section
class Networks:
    """Training runs of the networks."""

    seeds: Annotated[
        int,
        Field(
            ge=1,
            description="number of training runs of each network; tuning runs use the training runs in turn; with more "
            "than one, the intervals and p-values include the variance due to training",
        ),
    ] = 1
    settings: Annotated[
        dict[str, dict[str, Any]],
        Field(description="settings that override the presets of networks of other Python packages, by network"),
    ] = field(default_factory=dict)


DistortionLimit = Annotated[int, Field(ge=-1, description="maximum distortion in words; -1: no limit")]

TableLimit = Annotated[int, Field(ge=0, description="maximum number of translations per source phrase; 0: no limit")]

PopLimit = Annotated[int, auto("maximum number of hypotheses scored per stack", demo=150, ge=1)]

StackSize = Annotated[int, auto("maximum number of hypotheses kept per stack", demo=100, ge=1)]

CslmCells = Annotated[
    int, auto("maximum number of hypotheses per stack scored by the CSLM and the joint model", demo=50, ge=1)
]


@section
class Search:
    """The decoder."""

    distortion_limit: DistortionLimit = 6
    table_limit: TableLimit = 20
    pop_limit: PopLimit = 1000
    stack: StackSize = 1000
    cslm_cells: CslmCells = 100


Optimizer = Annotated[str, Field(f"optimizer; {OPTIMIZERS.described()}", registry=OPTIMIZERS)]

NbestSize = Annotated[int, auto("number of distinct translations in an n-best list", demo=50, ge=2)]

Restarts = Annotated[int, auto("random restarts per iteration", demo=8, ge=0)]

Iterations = Annotated[
    int | None,
    auto(
        "number of iterations; mert: the maximum, a run ends earlier when the weights no longer change; mert-averaged "
        "and mira: the exact number, the weights of the second half of the iterations are averaged; a larger number "
        "extends a finished run (default: the number of the optimizer)",
        demo=8,
        ge=1,
    ),
]


@section
class Tuning:
    """Tuning of the weights on the dev set. Every system is tuned separately."""

    runs: Annotated[
        int, Field(ge=1, le=100, description="number of independent tuning runs; run n has the seed `seed` + n")
    ] = 3
    optimizer: Optimizer = "mert"
    nbest: NbestSize = 100
    restarts: Restarts = 20
    iterations: Iterations = None

    def __post_init__(self) -> None:
        """Set ``iterations`` to the default of the optimizer if it is None."""
        if self.iterations is None:
            object.__setattr__(self, "iterations", default_iterations(self.optimizer))


def default_iterations(optimizer: str) -> int:
    """Return the default number of iterations of an optimizer; for ``mert``, it is the same as in mert-moses.pl."""
    return OPTIMIZERS[optimizer].iterations


# There is one class for all kinds of systems, as there is one CorpusEntry for all roles: if a key is misspelt, the kind
# of the entry is unknown; and an entry may contain keys of other kinds with the value null, since null removes a key of
# the configuration with which the entry is merged.
@section
class SystemEntry:
    """A system: the baseline with added features, LSTMs, or a network that rescores another system's n-best lists."""

    features: Annotated[
        list[str] | None,
        Field(
            description="features added to the baseline (columns of the phrase table, or networks in the search); "
            f"{FEATURES.described()}; or features of other Python packages"
        ),
    ] = None
    network: Annotated[
        str | None, Field(description="network that translates or rescores: one of seq2seq.networks, or cslm")
    ] = None
    rescores: Annotated[
        str | None, Field(description="system whose n-best lists are rescored; null: the LSTMs translate alone")
    ] = None
    weight: Annotated[
        Literal["even", "tuned"] | None,
        Field(
            description="weight of the network's score; even: same as the system's score; tuned: tuned on the dev set"
        ),
    ] = None
    ensemble: Annotated[
        int | None, Field(ge=1, description="number of networks whose probabilities are averaged; default: 1")
    ] = None
    beam: Annotated[
        int | None, Field(ge=1, description="beam size of LSTMs that translate alone; default: seq2seq.beam")
    ] = None


Metrics = Annotated[
    Sequence[Annotated[str, Field(registry=METRICS)]],
    Field(description="metrics of the detokenised text, besides sacreBLEU", min_length=0),
]


@section
class Evaluation:
    """Result tables."""

    metrics: Metrics = tuple(METRICS)
    joint: Annotated[
        dict[Name, list[str]],
        Field(description="additional rows for several test sets scored as one: name -> names of the test sets"),
    ] = field(default_factory=dict)
    paper: Annotated[
        bool,
        Field(
            description="whether the published results on WMT 2014 English-French are shown beside dev and test sets"
        ),
    ] = False
    figures: Annotated[
        bool, Field(description="whether figures are made, which require matplotlib and scikit-learn")
    ] = True


@section
class Config:
    """The configuration of a run."""

    languages: Languages
    data_dir: Annotated[str | None, Field(description="directory of the corpus files; null: the run directory")] = None
    cluster: Annotated[
        bool,
        Field(
            description="whether jobs run on other machines than snakemake itself; profiles of clusters set it to true"
        ),
    ] = False
    job_hours: Annotated[
        int,
        Field(
            ge=1,
            description="maximum time limit of a job on a cluster, in hours; alignment, training and tuning save a "
            "checkpoint before this limit and resume in the next attempt",
        ),
    ] = 24
    quick: Annotated[
        bool,
        Field(
            description="whether every `auto` selects the value for the demo corpus, for a trial of a few minutes on a "
            "few thousand lines of your own corpora"
        ),
    ] = False
    seed: Annotated[int, Field(ge=0, description="random seed; tuning run n has the seed `seed` + n")] = 1
    engine: Annotated[
        Program | Engines,
        Field(description="program for alignment, training, tuning and decoding: one name for all, or a map of names"),
    ] = "rnnsmt"
    moses_home: Annotated[
        str | None, Field(description="directory of a Moses installation; required for engine: moses")
    ] = None
    corpora: Annotated[list[CorpusEntry], Field(min_length=1)]
    demo: Demo = field(default_factory=Demo)
    text: Preprocessing = field(default_factory=Preprocessing)
    selection: Selection = field(default_factory=Selection)
    alignment: Alignment = field(default_factory=Alignment)
    phrases: Phrases = field(default_factory=Phrases)
    lm: Lm = field(default_factory=Lm)
    rnn: Rnn = field(default_factory=Rnn)
    cslm: Cslm = field(default_factory=Cslm)
    nnjm: Nnjm = field(default_factory=Nnjm)
    seq2seq: Lstms = field(default_factory=Lstms)
    networks: Networks = field(default_factory=Networks)
    search: Search = field(default_factory=Search)
    tuning: Tuning = field(default_factory=Tuning)
    systems: Annotated[dict[SystemName, SystemEntry], Field(min_length=1)]
    compare: Annotated[list[str], Field(min_length=1, description="systems in the table, in row order")]
    evaluation: Evaluation = field(default_factory=Evaluation)
