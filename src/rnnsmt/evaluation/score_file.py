"""Score file of one output, written by ``evaluation bleu`` and read by ``evaluation table`` (JSON)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rnnsmt.base.io import InputError, read_json, write_json
from rnnsmt.bleu.multi_bleu import SIZE, BleuScore, bleu_of

Segments = tuple[tuple[int, ...], ...]
"""Nine sufficient statistics of every segment."""

FORMAT = "rnnsmt-bleu-3"


@dataclass(frozen=True)
class SacreBleu:
    """sacreBLEU of detokenised text, with the statistics needed to combine test sets."""

    score: float
    signature: str
    counts: tuple[int, ...]
    totals: tuple[int, ...]
    sys_len: int
    ref_len: int
    chrf: float | None
    """chrF of the same text; None for joint test sets."""


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
    """Report of the decoder, unchanged."""
    sentences: Segments = ()
    """Statistics of every segment; if empty, significance cannot be tested."""
    path: str = ""

    @property
    def bleu(self) -> BleuScore:
        """Tokenised BLEU."""
        return bleu_of(self.statistics)

    @property
    def unknown_words(self) -> int | None:
        """Number of source words without a translation, if the decoder reported it."""
        value = (self.decode or {}).get("unknown_words")
        return value if isinstance(value, int) else None

    @property
    def decode_seconds(self) -> float | None:
        """CPU seconds of the search without loading, if the decoder reported them."""
        value = (self.decode or {}).get("search_cpu_seconds")
        return float(value) if isinstance(value, (int, float)) else None


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
            "decode": score.decode,
            "sentences": [" ".join(map(str, numbers)) for numbers in score.sentences],
        },
    )


def read_score(path: str | Path) -> Score:
    """Read a score file.

    Raises:
        InputError: the file is missing, damaged or not a score file, or a key is missing or has an invalid value.
    """
    value = read_json(path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise InputError(f"{path}: not a score file of this version ({FORMAT}); make it with `rnnsmt evaluation bleu`")
    tokenized = _field(path, value, "tokenized", dict)
    sacre = value.get("sacrebleu")
    if sacre is not None and not isinstance(sacre, dict):
        raise InputError(f"{path}: `sacrebleu` is neither null nor a map; create the file again")
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
        sacrebleu=None if sacre is None else _read_sacrebleu(path, sacre),
        decode=decode if isinstance(decode, dict) else None,
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


def _read_sacrebleu(path: str | Path, value: dict[str, Any]) -> SacreBleu:
    """Parse and check the sacreBLEU part of a score file."""
    return SacreBleu(
        score=float(_field(path, value, "score", (int, float))),
        signature=_field(path, value, "signature", str),
        counts=_integers(path, value, "counts", 4),
        totals=_integers(path, value, "totals", 4),
        sys_len=_field(path, value, "sys_len", int),
        ref_len=_field(path, value, "ref_len", int),
        chrf=float(_field(path, value, "chrf", (int, float))),
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
