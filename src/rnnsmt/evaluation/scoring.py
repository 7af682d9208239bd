"""Scoring of one output: tokenised BLEU as by multi-bleu.perl, and sacreBLEU of the detokenised text."""

from typing import Any

from rnnsmt.base.io import InputError, read_json
from rnnsmt.bleu.multi_bleu import corpus_statistics
from rnnsmt.bleu.texts import read_texts
from rnnsmt.evaluation.sacre import sacre_bleu
from rnnsmt.evaluation.score_file import Score


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
) -> Score:
    """Score a tokenised output and, if given, the same output detokenised.

    Args:
        system, test_set, run: names of system and test set, number of the run.
        hypothesis, references: files, one tokenised segment per line.
        plain_hypothesis, plain_references: the same as running text, for sacreBLEU.
        lowercase: score without case in sacreBLEU.
        decode_report: report of the decoder, which is copied to the score file.

    Raises:
        InputError: files have different numbers of lines or no words, or the report is invalid.
    """
    hypotheses, texts = read_texts(hypothesis, references)
    segments = corpus_statistics(hypotheses, texts)
    plain = None
    if plain_hypothesis is not None:
        plain_hypotheses, plain_texts = read_texts(plain_hypothesis, plain_references or [])
        if len(plain_hypotheses) != len(hypotheses):
            raise InputError(
                f"{plain_hypothesis} has {len(plain_hypotheses)} lines, but {hypothesis} has {len(hypotheses)}; "
                "both must contain the same output"
            )
        plain = sacre_bleu(plain_hypotheses, plain_texts, lowercase)
    return Score(
        system=system,
        test_set=test_set,
        run=run,
        segments=len(hypotheses),
        references=len(texts),
        statistics=tuple(segments.sum(axis=0).tolist()),
        sacrebleu=plain,
        decode=_read_report(decode_report),
        sentences=tuple(map(tuple, segments.tolist())),
    )


def _read_report(path: str | None) -> dict[str, Any] | None:
    """Read the report of the decoder."""
    if path is None:
        return None
    report = read_json(path)
    if not isinstance(report, dict):
        raise InputError(f"{path}: not a decoder's report (a JSON map); make it with `rnnsmt search decode --report`")
    return report
