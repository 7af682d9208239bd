"""Scores of the output of a system on a test set, their file (JSON), joint test sets, and oracles of n-best lists.

A score is tokenised BLEU as computed by multi-bleu.perl, and sacreBLEU (Post 2018), chrF, chrF++ and TER of the
detokenised text. ``evaluation bleu`` writes score files, ``evaluation table`` reads them.

The oracle BLEU of n-best lists is the BLEU of the translations that are selected with knowledge of the reference.

* The *sentence oracle* selects the translation with the highest smoothed sentence BLEU (``bleu.batch.sentence_bleu``).
* The *corpus oracle* begins with it and exchanges the translation of one sentence at a time for the one that gives the
  highest corpus BLEU, until no exchange increases it: a local optimum, hence a lower bound of the best corpus BLEU.

Among translations with equal BLEU, the first one in the list is selected.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.io import InputError, read_json, read_lines, write_json
from rnnsmt.base.progress import say, track
from rnnsmt.bleu.batch import BatchBleu, bleu_of_many, sentence_bleu
from rnnsmt.bleu.multi_bleu import SIZE, BleuScore, bleu_of, corpus_statistics, read_texts
from rnnsmt.evaluation.text_metrics import METRICS, MetricScore, in_words, joint_metrics, number, score_texts
from rnnsmt.moses.nbest import read_nbest

FORMAT = "rnnsmt-bleu-4"
"""Format of score files."""

OLD_FORMATS = ("rnnsmt-bleu-3",)
"""Earlier formats that can be read; they have no metrics other than BLEU."""

TOLERANCE = 1e-4
"""Maximum rounding difference between a score in a file and the score computed from its statistics."""

Segments = tuple[tuple[int, ...], ...]
"""Nine sufficient statistics of every segment."""


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
    segments: int
    references: int
    statistics: tuple[int, ...]
    """Summed sufficient statistics of ``multi_bleu``."""
    sacrebleu: SacreBleu | None
    decode: dict[str, Any] | None
    """Report of the decoder without its times."""
    sentences: Segments = ()
    """Statistics of every segment; if empty, significance cannot be tested."""
    path: str = ""
    metrics: Mapping[str, MetricScore] = field(default_factory=dict)
    """chrF, chrF++ and TER of the detokenised text, by the names of ``METRICS``."""

    @property
    def bleu(self) -> BleuScore:
        """Return tokenised BLEU."""
        return bleu_of(self.statistics)

    @property
    def unknown_words(self) -> int | None:
        """Return the number of source words without a translation, if the decoder reported it."""
        value = (self.decode or {}).get("unknown_words")
        return value if isinstance(value, int) else None


Runs = dict[int, Score]
"""Scores of one system on one test set by number of the run."""

Scores = dict[tuple[str, str], Runs]
"""Scores by system and test set."""


def score_output(
    system: str,
    test_set: str,
    run: int,
    hypothesis: str,
    references: list[str],
    plain_hypothesis: str | None = None,
    plain_references: list[str] | None = None,
    lowercase: bool = False,
    decode_report: str | None = None,
    lang: str | None = None,
) -> Score:
    """Score a tokenised output and, if given, the same output detokenised.

    Args:
        hypothesis, references: files, one tokenised segment per line.
        plain_hypothesis, plain_references: the same, not tokenised, for sacreBLEU, chrF and TER.
        lowercase: ignore case in sacreBLEU, chrF and chrF++.
        decode_report: report of the decoder, which is copied to the score file without its times.
        lang: two-letter code of the output, which selects the tokeniser of sacreBLEU.
    """
    hypotheses, texts = read_texts(hypothesis, references)
    segments = corpus_statistics(hypotheses, texts)
    plain, metrics = None, {}
    if plain_hypothesis is not None:
        plain_hypotheses, plain_texts = read_texts(plain_hypothesis, plain_references or [])
        if len(plain_hypotheses) != len(hypotheses):
            raise InputError(
                f"{plain_hypothesis} has {len(plain_hypotheses)} lines, but {hypothesis} has {len(hypotheses)}; "
                "both must contain the same output"
            )
        plain = sacre_bleu(plain_hypotheses, plain_texts, lowercase, lang)
        metrics = score_texts(plain_hypotheses, plain_texts, lowercase)
    return Score(
        system=system,
        test_set=test_set,
        run=run,
        segments=len(hypotheses),
        references=len(texts),
        statistics=tuple(segments.sum(axis=0).tolist()),
        sacrebleu=plain,
        decode=_read_report(decode_report),
        metrics=metrics,
        sentences=tuple(map(tuple, segments.tolist())),
    )


def _read_report(path: str | None) -> dict[str, Any] | None:
    """Read the report of the decoder, without the times that reports of earlier versions have."""
    if path is None:
        return None
    report = read_json(path)
    if not isinstance(report, dict):
        raise InputError(
            f"{path}: is not a report of the decoder (a JSON object); create it with `rnnsmt search decode --report`"
        )
    return {name: value for name, value in report.items() if "seconds" not in name}


def sacre_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False, lang: str | None = None
) -> SacreBleu:
    """Score plain text with sacreBLEU.

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


def _metric(lowercase: bool, lang: str | None) -> Any:
    """Return BLEU of sacreBLEU; with 13a tokenisation and a warning if the tokeniser of the language is missing."""
    from sacrebleu.metrics import BLEU

    try:
        return BLEU(lowercase=lowercase, trg_lang=lang or "")
    except RuntimeError:
        say(
            f"warning: sacreBLEU's tokeniser for the language {lang} is not installed (pip install "
            f"'sacrebleu[{lang}]'); 13a is used, which does not separate words that are written without spaces; chrF "
            "does not depend on it"
        )
        return BLEU(lowercase=lowercase)


def write_score(path: str | Path, score: Score) -> None:
    """Write a score file atomically."""
    bleu = score.bleu
    write_json(
        path,
        {
            "format": FORMAT,
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
                "statistics": list(score.statistics),
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
            "sentences": [" ".join(map(str, numbers)) for numbers in score.sentences],
        },
    )


def read_score(path: str | Path) -> Score:
    """Read a score file."""
    value = read_json(path)
    if not isinstance(value, dict) or value.get("format") not in (FORMAT, *OLD_FORMATS):
        raise InputError(
            f"{path}: not a score file of this version ({FORMAT}); create it with `rnnsmt evaluation bleu`"
        )
    tokenized = _field(path, value, "tokenized", dict)
    sacre = value.get("sacrebleu")
    if sacre is not None and not isinstance(sacre, dict):
        raise InputError(f"{path}: `sacrebleu` is neither null nor an object; create the file again")
    decode = value.get("decode")
    segments = _field(path, value, "segments", int)
    summed = _integers(path, tokenized, "statistics", SIZE)
    return Score(
        system=_field(path, value, "system", str),
        test_set=_field(path, value, "test_set", str),
        run=_field(path, value, "run", int),
        segments=segments,
        references=_field(path, value, "references", int),
        statistics=summed,
        sacrebleu=None if sacre is None else _sacre_bleu_field(path, sacre),
        decode=decode if isinstance(decode, dict) else None,
        metrics=_metrics(path, value, segments) if value["format"] == FORMAT else {},
        sentences=_sentences(path, value, segments, summed),
        path=str(path),
    )


def _sentences(path: str | Path, value: dict[str, Any], segments: int, summed: tuple[int, ...]) -> Segments:
    """Return the statistics of every segment after checking that they add up to those of the text."""
    lines: Sequence[Any] = _field(path, value, "sentences", list)
    try:
        rows = tuple(tuple(map(int, line.split())) for line in lines)
    except (ValueError, AttributeError):
        rows = ((),)
    whole = len(rows) == segments and all(len(row) == SIZE and min(row) >= 0 for row in rows)
    if rows and not (whole and tuple(map(sum, zip(*rows, strict=True))) == summed):
        raise InputError(f"{path}: `sentences` does not add up to the statistics of the text; create the file again")
    return rows


def _metrics(path: str | Path, value: dict[str, Any], segments: int) -> dict[str, MetricScore]:
    """Return the metrics other than BLEU after checking that statistics and scores agree."""
    metrics = {}
    for name, entry in _field(path, value, "metrics", dict).items():
        if name not in METRICS or not isinstance(entry, dict):
            raise InputError(f"{path}: `metrics` has an unknown entry, {name}; create the file again")
        lines: Sequence[Any] = _field(path, entry, "sentences", list)
        score = float(_field(path, entry, "score", (int, float)))
        try:
            rows = tuple(tuple(map(number, line.split())) for line in lines)
        except (ValueError, AttributeError):
            rows = ()
        size = METRICS[name].size
        whole = len(rows) == segments and all(len(row) == size and 0 <= min(row) <= max(row) < inf for row in rows)
        if not whole or abs(METRICS[name].of_many(np.array(rows).sum(0)) - score) > TOLERANCE:
            raise InputError(
                f"{path}: `metrics.{name}` does not match the scores of its sentences; create the file again"
            )
        metrics[name] = MetricScore(score, _field(path, entry, "signature", str), rows)
    return metrics


def _sacre_bleu_field(path: str | Path, value: dict[str, Any]) -> SacreBleu:
    return SacreBleu(
        score=float(_field(path, value, "score", (int, float))),
        signature=_field(path, value, "signature", str),
        counts=_integers(path, value, "counts", 4),
        totals=_integers(path, value, "totals", 4),
        sys_len=_field(path, value, "sys_len", int),
        ref_len=_field(path, value, "ref_len", int),
    )


def _field(path: str | Path, value: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """Return the value of a key after checking its type."""
    if key not in value:
        raise InputError(f"{path}: the key `{key}` is missing; create the file again with `rnnsmt evaluation bleu`")
    if not isinstance(value[key], kind) or isinstance(value[key], bool):
        raise InputError(f"{path}: `{key}` has the wrong type; create the file again with `rnnsmt evaluation bleu`")
    return value[key]


def _integers(path: str | Path, value: dict[str, Any], key: str, length: int) -> tuple[int, ...]:
    """Return a list of ``length`` non-negative integers."""
    numbers: Sequence[Any] = _field(path, value, key, list)
    if len(numbers) != length or any(type(number) is not int or number < 0 for number in numbers):
        raise InputError(f"{path}: `{key}` is not a list of {length} counts; create the file again")
    return tuple(numbers)


def group(scores: Iterable[Score]) -> Scores:
    """Sort scores by system and test set."""
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
                f"{system} has runs {_numbers(numbers)} on {other}, but {_numbers(runs)} on {test_set}; "
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


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(values)))


def add_joint(scores: Scores, name: str, parts: Sequence[str]) -> None:
    """Add a test set that joins others: corpus BLEU from summed statistics, for every run of every system."""
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
        segments=sum(piece.segments for piece in pieces),
        statistics=tuple(map(sum, zip(*(piece.statistics for piece in pieces), strict=True))),
        sacrebleu=joint_sacre_bleu(sacre, f"--joint {name}") if len(sacre) == len(pieces) else None,
        decode={"unknown_words": sum(unknown)} if len(unknown) == len(pieces) else None,
        metrics=joint_metrics([piece.metrics for piece in pieces]),
        sentences=tuple(chain.from_iterable(piece.sentences for piece in pieces))
        if all(piece.sentences for piece in pieces)
        else (),
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


PASSES = 20
"""Maximum number of passes over the sentences; two to four are usual."""

LEAST = 1e-9
"""Minimum increase of BLEU (percent) for which a translation is exchanged, larger than rounding errors."""


class Oracle(NamedTuple):
    """Oracles of n-best lists that are truncated to a number of translations.

    Attributes:
        size: number of translations, or 0 for whole lists.
        sentence: corpus BLEU (percent) of the sentence oracle.
        corpus: BLEU of the corpus oracle.
        translations: texts that the corpus oracle selects, one of each sentence.
    """

    size: int
    sentence: float
    corpus: float
    translations: list[str]


def read_nbest_texts(path: str | Path, sentences: int) -> list[list[str]]:
    """Read the translations of every sentence; a sentence without a line has an empty one."""
    texts: list[list[str]] = [[] for _ in range(sentences)]
    for candidate in track(read_nbest(path)[1], "reading", unit="translations"):
        if candidate.sentence >= sentences:
            raise InputError(
                f"{path}: has sentence {candidate.sentence}, but the references have only {sentences} (0-based)"
            )
        texts[candidate.sentence].append(candidate.text)
    return [candidates or [""] for candidates in texts]


def read_references(paths: Sequence[str | Path]) -> list[list[str]]:
    """Read references of equal length."""
    references = [list(read_lines(path)) for path in paths]
    for path, lines in zip(paths, references, strict=True):
        if len(lines) != len(references[0]):
            raise InputError(f"{path}: has {len(lines)} lines, but {paths[0]} has {len(references[0])}")
    return references


def oracles(
    texts: Sequence[Sequence[str]], references: Sequence[Sequence[str]], sizes: Sequence[int]
) -> tuple[float, list[Oracle]]:
    """Compute oracles.

    Args:
        texts: translations of every sentence, best first.
        references: one list of texts for each set of references.
        sizes: numbers of translations to which the lists are truncated; 0: whole lists.

    Returns:
        BLEU (percent) of the first translations, and an oracle for each of ``sizes``.
    """
    statistics = BatchBleu(references).statistics(texts)
    begins = np.concatenate([[0], np.cumsum([len(translations) for translations in texts])])
    flat = [text for translations in texts for text in translations]
    first = float(bleu_of_many(statistics[begins[:-1]].sum(0)))
    results = []
    for size in sizes:
        ends = np.minimum(begins[:-1] + (size or len(flat)), begins[1:])
        ranges = [slice(begin, end) for begin, end in zip(begins[:-1].tolist(), ends.tolist(), strict=True)]
        by_sentence = sentence_bleu(statistics)
        chosen = np.array([rows.start + int(by_sentence[rows].argmax()) for rows in ranges], np.int64)
        sentence = float(bleu_of_many(statistics[chosen].sum(0)))
        corpus = _climb(statistics, ranges, chosen)
        results.append(Oracle(size, sentence, corpus, [flat[index] for index in chosen]))
    return first, results


def _climb(statistics: NDArray[np.int32], ranges: Sequence[slice], chosen: NDArray[np.int64]) -> float:
    """Exchange translations as long as corpus BLEU increases; return corpus BLEU.

    Args:
        statistics: [translations, 9].
        ranges: the translations of every sentence.
        chosen: [sentences], the selected translations, updated in place.
    """
    total = statistics[chosen].astype(np.int64).sum(0)
    best = float(bleu_of_many(total))
    for _ in range(PASSES):
        changed = False
        for sentence, rows in enumerate(ranges):
            if rows.stop - rows.start == 1:
                continue
            without = total - statistics[chosen[sentence]]
            values = bleu_of_many(without + statistics[rows])
            index = int(values.argmax())
            if values[index] > best + LEAST:
                best, changed = float(values[index]), True
                chosen[sentence] = rows.start + index
                total = without + statistics[chosen[sentence]]
        if not changed:
            break
    return best
