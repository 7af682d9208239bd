"""Scores of the output of a system on a test set, their file (JSON), and joint test sets.

A score contains tokenised BLEU as computed by multi-bleu.perl, and sacreBLEU (Post 2018) and other metrics of the
detokenised text. ``evaluation score`` writes score files, ``evaluation table`` reads them.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.paths import StrPath
from rnnsmt.base.progress import warn
from rnnsmt.base.reading import read_json, read_references
from rnnsmt.base.writing import write_json
from rnnsmt.bleu.multi_bleu import BleuScore, bleu_of
from rnnsmt.config.languages import WITHOUT_SPACES
from rnnsmt.evaluation.metrics import MetricScore, in_words, joint_metrics, score_texts
from rnnsmt.formats.nbest import SEGMENTATION_MARK
from rnnsmt.registries import METRICS

FORMATS = ("rnnsmt-bleu-4", "rnnsmt-bleu-3")
"""Formats of score files that can be read; the first one is written. The second has no metrics other than BLEU."""


@dataclass(frozen=True)
class SacreBleu:
    """sacreBLEU of detokenised text, with the statistics needed to combine test sets."""

    score: float
    signature: str
    counts: tuple[int, ...]
    totals: tuple[int, ...]
    sys_len: int
    ref_len: int


@dataclass(frozen=True)
class Score:
    """Scores of one system's output on one test set in one run."""

    system: str
    test_set: str
    run: int
    references: int
    """Number of references."""
    sentences: NDArray[np.int64]
    """``[S, 9]``, BLEU statistics of every segment, in the order of ``bleu.multi_bleu``."""
    sacrebleu: SacreBleu | None
    decode: dict[str, Any] | None
    """Report of the decoder without its times."""
    path: str = ""
    metrics: Mapping[str, MetricScore] = field(default_factory=dict)
    """Other metrics of the detokenised text, by the names of ``METRICS``."""

    @property
    def segments(self) -> int:
        """Return the number of segments."""
        return len(self.sentences)

    @property
    def bleu(self) -> BleuScore:
        """Return tokenised BLEU."""
        return bleu_of(self.sentences.sum(0))

    @property
    def unknown_words(self) -> int | None:
        """Return the number of source words without a translation, if the decoder reported it."""
        return (self.decode or {}).get("unknown_words")


Runs = dict[int, Score]
"""Scores of one system on one test set, by run number."""

Scores = dict[tuple[str, str], Runs]
"""Scores by system and test set."""


def score_output(
    system: str,
    test_set: str,
    run: int,
    hypothesis: StrPath,
    references: Sequence[str],
    plain_hypothesis: str | None = None,
    plain_references: Sequence[str] | None = None,
    lowercase: bool = False,
    decode_report: str | None = None,
    lang: str | None = None,
    metrics: Sequence[str] = tuple(METRICS),
) -> Score:
    """Score a tokenised output and, optionally, the same output in detokenised form.

    Args:
        hypothesis, references: files, one tokenised segment per line.
        plain_hypothesis, plain_references: the same texts, not tokenised, for sacreBLEU and ``metrics``.
        lowercase: ignore case in sacreBLEU, and in metrics that support it.
        decode_report: report of the decoder, which is copied to the score file without its times.
        lang: language of the output, two-letter code; selects the tokeniser of sacreBLEU.
        metrics: names of metrics other than BLEU.

    Raises:
        InputError: the texts are empty or differ in length, or the output contains phrase boundaries of Moses.
    """
    from rnnsmt.bleu.batch import corpus_statistics

    hypotheses, texts = read_references(str(hypothesis), list(references))
    for number, line in enumerate(hypotheses, 1):
        if mark := SEGMENTATION_MARK.search(line):
            raise InputError(
                f"{hypothesis}, line {number}: contains {mark[0][:40]}, which Moses writes with -t; decode without it"
            )
    plain, others = None, {}
    if plain_hypothesis is not None:
        plain_hypotheses, plain_texts = read_references(plain_hypothesis, list(plain_references or []))
        if len(plain_hypotheses) != len(hypotheses):
            raise InputError(
                f"{plain_hypothesis} has {len(plain_hypotheses)} lines, but {hypothesis} has {len(hypotheses)}; "
                "both must contain the same output"
            )
        plain = sacre_bleu(plain_hypotheses, plain_texts, lowercase, lang)
        others = score_texts(plain_hypotheses, plain_texts, lowercase, metrics)
        _tell_without_spaces(lang, plain.signature, metrics)
    return Score(
        system=system,
        test_set=test_set,
        run=run,
        references=len(texts),
        sentences=corpus_statistics(hypotheses, texts),
        sacrebleu=plain,
        decode=None if decode_report is None else _read_report(decode_report),
        metrics=others,
    )


def _read_report(path: str) -> dict[str, Any]:
    """Read the report of the decoder without its times, so that equal runs give equal files."""
    return {name: value for name, value in read_json(path).items() if "seconds" not in name}


def sacre_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False, lang: str | None = None
) -> SacreBleu:
    """Score detokenised text with sacreBLEU.

    The settings are sacreBLEU's defaults: exponential smoothing, and its tokeniser for the language, which is 13a
    except for Chinese (``zh``), Japanese (``ja-mecab``) and Korean (``ko-mecab``). Case is ignored if ``lowercase``.
    """
    metric, texts = _metric(lowercase, lang), [list(reference) for reference in references]
    score = metric.corpus_score(list(hypotheses), texts)
    return SacreBleu(
        score=float(score.score),
        signature=str(metric.get_signature()),
        counts=tuple(int(count) for count in score.counts),
        totals=tuple(int(total) for total in score.totals),
        sys_len=int(score.sys_len),
        ref_len=int(score.ref_len),
    )


def _tell_without_spaces(lang: str | None, signature: str, metrics: Sequence[str]) -> None:
    """Print a warning about the metrics that need spaces between words, for a language that is written without them."""
    labels = [METRICS[name].label for name in metrics if METRICS[name].separates_words]
    if "tok:13a" in signature:
        labels.insert(0, "sacreBLEU with 13a")
    if lang in WITHOUT_SPACES and labels:
        named = f"{', '.join(labels[:-1])} and {labels[-1]} separate" if len(labels) > 1 else f"{labels[0]} separates"
        warn(
            f"{lang} is written without spaces between words, and {named} words only at spaces and "
            "punctuation; use chrF, or segment output and reference in the same way"
        )


def _metric(lowercase: bool, lang: str | None) -> Any:
    """Return sacreBLEU's BLEU; if the tokeniser of the language is not installed, it uses 13a, after a warning."""
    from sacrebleu.metrics import BLEU

    try:
        return BLEU(lowercase=lowercase, trg_lang=lang or "")
    except RuntimeError:
        warn(
            f"sacreBLEU's tokeniser for the language {lang} is not installed (pip install "
            f"'sacrebleu[{lang}]'); 13a is used"
        )
        return BLEU(lowercase=lowercase)


def write_score(path: StrPath, score: Score) -> None:
    """Write a score file atomically."""
    bleu = score.bleu
    write_json(
        path,
        {
            "format": FORMATS[0],
            "system": score.system,
            "test_set": score.test_set,
            "run": score.run,
            "segments": score.segments,
            "references": score.references,
            "tokenized": {
                "bleu": round(bleu.bleu, 6),
                "precisions": [round(precision, 6) for precision in bleu.precisions],
                "brevity_penalty": round(bleu.brevity_penalty, 6),
                "length_ratio": round(bleu.length_ratio, 6),
                "hypothesis_length": bleu.hypothesis_length,
                "reference_length": bleu.reference_length,
                "statistics": score.sentences.sum(0).tolist(),
            },
            "sacrebleu": None if score.sacrebleu is None else asdict(score.sacrebleu),
            "metrics": {
                name: {
                    "score": metric.score,
                    "signature": metric.signature,
                    "sentences": in_words(metric.sentences),
                }
                for name, metric in score.metrics.items()
            },
            "decode": score.decode,
            "sentences": in_words(score.sentences),
        },
    )


def read_score(path: StrPath) -> Score:
    """Read a score file.

    Raises:
        InputError: it is not a score file.
    """
    value = read_json(path)
    if not isinstance(value, dict) or value.get("format") not in FORMATS:
        raise InputError(
            f"{path}: not a score file of this version ({FORMATS[0]}); create it with `rnnsmt evaluation score`"
        )
    sacre: SacreBleu | None = None
    if given := value["sacrebleu"]:
        own = {name: given[name] for name in SacreBleu.__dataclass_fields__}  # format 3 has further entries
        sacre = SacreBleu(**own | {name: tuple(own[name]) for name in ("counts", "totals")})
    return Score(
        system=value["system"],
        test_set=value["test_set"],
        run=value["run"],
        references=value["references"],
        sentences=_numbers(value["sentences"]).astype(np.int64),
        sacrebleu=sacre,
        decode=value["decode"],
        metrics={
            name: MetricScore(metric["score"], metric["signature"], _numbers(metric["sentences"]))
            for name, metric in value.get("metrics", {}).items()
        },
        path=str(path),
    )


def _numbers(lines: Sequence[str]) -> NDArray[np.float64]:
    """Parse the statistics of every segment, which ``in_words`` wrote."""
    return np.fromstring(" ".join(lines), sep=" ").reshape(len(lines), -1)


def group(scores: Iterable[Score]) -> Scores:
    """Group scores by system and test set.

    Raises:
        InputError: two scores are of the same run, or the scores are of different runs, texts or settings.
    """
    grouped: Scores = defaultdict(dict)
    for score in scores:
        runs = grouped[score.system, score.test_set]
        if score.run in runs:
            raise InputError(
                f"{score.path}: run {score.run} of {score.system} on {score.test_set} is already in "
                f"{runs[score.run].path}; specify every score file once"
            )
        runs[score.run] = score
    _check_runs(grouped)
    _check_test_sets(grouped)
    return dict(grouped)


def _check_runs(grouped: Scores) -> None:
    first: dict[str, tuple[str, list[int]]] = {}
    for (system, test_set), runs in grouped.items():
        other, numbers = first.setdefault(system, (test_set, sorted(runs)))
        if sorted(runs) != numbers:
            raise InputError(
                f"{system} has runs {numbers} on {other}, but {sorted(runs)} on {test_set}; "
                "every test set needs score files from the same runs"
            )


def _check_test_sets(grouped: Scores) -> None:
    first: dict[str, Score] = {}
    for (_, test_set), runs in grouped.items():
        for score in runs.values():
            other = first.setdefault(test_set, score)
            if (score.segments, score.references) != (other.segments, other.references):
                raise InputError(
                    f"{score.path}: {test_set} has {score.segments} segments and {score.references} reference(s), "
                    f"but {other.segments} and {other.references} in {other.path}; score all systems on the same text"
                )
            if _signature(score) != _signature(other):
                raise InputError(
                    f"{score.path}: sacreBLEU signature {_signature(score)} on {test_set}, but {_signature(other)} in "
                    f"{other.path}; score all runs with the same settings"
                )


def _signature(score: Score) -> str | None:
    """Return the signatures of all sacreBLEU metrics of a score, which must be the same for all runs."""
    if score.sacrebleu is None:
        return None
    return " and ".join([score.sacrebleu.signature, *(metric.signature for metric in score.metrics.values())])


def add_joint(scores: Scores, name: str, parts: Sequence[str]) -> None:
    """Add a joint test set: the scores of ``parts`` as one corpus, from summed statistics, for every run and system.

    Raises:
        InputError: the name is used, or ``parts`` are not two or more different test sets that every system has.
    """
    known = {test_set for _, test_set in scores}
    if name in known:
        raise InputError(f"--joint {name}: there is already a test set with this name; choose another name")
    if len(parts) < 2 or len(set(parts)) < len(parts):
        raise InputError(f"--joint {name}={'+'.join(parts)}: two or more different test sets are required")
    for test_set in parts:
        if test_set not in known:
            raise InputError(
                f"--joint {name}: no score file for the test set {test_set}; available: {', '.join(sorted(known))}"
            )
    for system in sorted({system for system, _ in scores}):
        pieces = []
        for test_set in parts:
            if (system, test_set) not in scores:
                raise InputError(f"--joint {name}: {system} has no score on {test_set}; score it on this test set too")
            pieces.append(scores[system, test_set])
        scores[system, name] = {run: _join(name, [piece[run] for piece in pieces]) for run in pieces[0]}


def _join(name: str, pieces: Sequence[Score]) -> Score:
    sacre = [piece.sacrebleu for piece in pieces if piece.sacrebleu is not None]
    unknown = [piece.unknown_words for piece in pieces if piece.unknown_words is not None]
    return replace(
        pieces[0],
        test_set=name,
        sentences=np.concatenate([piece.sentences for piece in pieces]),
        sacrebleu=joint_sacre_bleu(sacre, f"--joint {name}") if len(sacre) == len(pieces) else None,
        decode={"unknown_words": sum(unknown)} if len(unknown) == len(pieces) else None,
        metrics=joint_metrics([piece.metrics for piece in pieces]),
    )


def joint_sacre_bleu(parts: Sequence[SacreBleu], where: str) -> SacreBleu:
    """Return sacreBLEU of several test sets as one corpus."""
    from sacrebleu.metrics import BLEU

    signatures = sorted({component.signature for component in parts})
    if len(signatures) > 1:
        raise InputError(
            f"{where}: sacreBLEU signatures differ ({'; '.join(signatures)}); score all parts with the same settings"
        )
    counts = [sum(column) for column in zip(*(component.counts for component in parts), strict=True)]
    totals = [sum(column) for column in zip(*(component.totals for component in parts), strict=True)]
    sys_len, ref_len = sum(component.sys_len for component in parts), sum(component.ref_len for component in parts)
    score = BLEU.compute_bleu(counts, totals, sys_len, ref_len, smooth_method="exp")
    return SacreBleu(float(score.score), signatures[0], tuple(counts), tuple(totals), sys_len, ref_len)
