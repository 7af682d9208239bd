"""sacreBLEU (Post 2018) with its signature, and its combination over several test sets."""

from collections.abc import Sequence

from rnnsmt.base.io import InputError
from rnnsmt.evaluation.score_file import SacreBleu


def sacre_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]], lowercase: bool = False) -> SacreBleu:
    """Score plain text with sacreBLEU and chrF (Popović 2015).

    BLEU has sacreBLEU's defaults (13a tokenisation, exponential smoothing), and is case-sensitive unless ``lowercase``.
    """
    from sacrebleu.metrics import BLEU, CHRF

    metric, texts = BLEU(lowercase=lowercase), [list(reference) for reference in references]
    score = metric.corpus_score(list(hypotheses), texts)
    return SacreBleu(
        score=float(score.score),
        signature=str(metric.get_signature()),
        counts=tuple(int(count) for count in score.counts),
        totals=tuple(int(total) for total in score.totals),
        sys_len=int(score.sys_len),
        ref_len=int(score.ref_len),
        chrf=float(CHRF(lowercase=lowercase).corpus_score(list(hypotheses), texts).score),
    )


def joint_sacre_bleu(parts: Sequence[SacreBleu], where: str) -> SacreBleu:
    """Return sacreBLEU of several test sets as one corpus; chrF cannot be computed from the statistics of the parts.

    Raises:
        InputError: the parts were scored with different signatures.
    """
    from sacrebleu.metrics import BLEU

    signatures = sorted({part.signature for part in parts})
    if len(signatures) > 1:
        raise InputError(
            f"{where}: sacreBLEU signatures differ ({'; '.join(signatures)}); score all parts with the same settings"
        )
    counts = [sum(column) for column in zip(*(part.counts for part in parts), strict=True)]
    totals = [sum(column) for column in zip(*(part.totals for part in parts), strict=True)]
    sys_len, ref_len = sum(part.sys_len for part in parts), sum(part.ref_len for part in parts)
    score = BLEU.compute_bleu(counts, totals, sys_len, ref_len, smooth_method="exp")
    return SacreBleu(float(score.score), signatures[0], tuple(counts), tuple(totals), sys_len, ref_len, None)
