"""Computation of scores and reordering scores of phrase pairs from an extract file, batch by batch."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from rnnsmt.align.affiliation import affiliate
from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decimals import six_digits
from rnnsmt.base.kernels.decorator import kernel
from rnnsmt.base.progress import Meter
from rnnsmt.phrases.column_files import AFFILIATIONS, COUNT_NAMES, LINKS, ORIENTATIONS, SCORE_NAMES, write_columns
from rnnsmt.phrases.extract_file import ExtractFile
from rnnsmt.phrases.lexical_table import NULL, read_lexical_table
from rnnsmt.phrases.pairs import PhrasePairs
from rnnsmt.phrases.scores import SCORED_COLUMNS, hash_lexicon, score_pairs


def score_phrases(
    extract: str,
    pairs: str,
    lex_e2f: str,
    lex_f2e: str,
    output: str,
    threads: int = 1,
    memory_mb: int = 2000,
    smoothing: str = "none",
) -> dict[str, object]:
    """Write the scores of the pairs in an extract file.

    Args:
        extract: the extract file.
        pairs: file of the same phrase pairs (``rnnsmt.phrases.pairs``).
        lex_e2f: p(source word | target word).
        lex_f2e: p(target word | source word).
        output: file of columns (``rnnsmt.phrases.column_files``).
        smoothing: ``none`` or ``kneser-ney``.

    Returns:
        The statistics of the stage.
    """
    file, store = ExtractFile(extract, threads, memory_mb), PhrasePairs(pairs)
    # the code of NULL is 0, unless the text contains the word NULL
    codes = [{NULL: 0} | packing.codes() for packing in file.packings]
    lexicons = tuple(
        hash_lexicon(*read_lexical_table(path, *words)) for path, words in ((lex_e2f, codes), (lex_f2e, codes[::-1]))
    )
    sides, nulls = file.sides(), (codes[0][NULL], codes[1][NULL])
    parameters = None if smoothing == "none" else file.smoothing
    meter = Meter("scoring", file.rows, "rows")
    n_pairs, n_sources, missing = 0, 0, 0
    types: dict[str, DTypeLike] = {LINKS: np.int64, AFFILIATIONS: np.int8}
    types |= dict.fromkeys(SCORE_NAMES, np.float32) | dict.fromkeys(COUNT_NAMES, np.uint32)
    with write_columns(output, store, types, SCORE_NAMES) as out:
        for rows, columns in file.batches(SCORED_COLUMNS):
            scored, unknown = score_pairs(rows, columns, parameters, (sides, nulls, lexicons))
            _check_end(n_pairs + len(scored.links), store, extract)
            for name, values in zip(SCORE_NAMES, six_digits(scored.scores).T, strict=True):
                out.append(name, values)
            for name, counts in zip(COUNT_NAMES, scored.counts.T, strict=True):
                out.append(name, counts)
            out.append(LINKS, scored.links)
            offsets = store.sides[1].offsets[n_pairs : n_pairs + len(scored.links) + 1]
            affiliations = np.empty(offsets[-1] - offsets[0], np.int8)
            affiliate_links(scored.links, offsets - offsets[0], affiliations)
            out.append(AFFILIATIONS, affiliations)
            n_pairs += len(scored.links)
            n_sources += len(rows.sources) - 1
            missing += unknown
            meter.add(len(columns["links"]))
        _check_end(n_pairs, store, extract, last=True)
    figures: dict[str, object] = {"phrase pairs": n_pairs, "source phrases": n_sources}
    if missing:
        figures["lookups without an entry in the lexical tables (probability 1)"] = missing
    return figures


def _check_end(pairs: int, store: PhrasePairs, extract: str, *, last: bool = False) -> None:
    """Check that an extract file has at most as many pairs as ``store``, and after the last batch exactly as many."""
    if pairs > len(store) or (last and pairs != len(store)):
        raise InputError(f"{store.path}: has other phrase pairs than {extract}; run `phrases extract` again")


@kernel()
def affiliate_links(links: Any, offsets: Any, out: Any) -> None:
    """Compute the affiliations of the target words of phrase pairs from their links.

    Args:
        links: int64 [P], links as bit masks (``rnnsmt.phrases.scores``); every pair has at least one link.
        offsets: int64 [P + 1], index in ``out`` of the first target word of each pair.
        out: int8 [target words], filled.
    """
    sources, targets = np.empty(64, np.int32), np.empty(64, np.int32)
    bounds = np.zeros(2, np.int64)
    for pair in range(links.shape[0]):
        bounds[1] = 0
        for j in range(offsets[pair + 1] - offsets[pair]):
            for i in range(8):
                if (links[pair] >> (8 * j + i)) & 1:
                    sources[bounds[1]] = i
                    targets[bounds[1]] = j
                    bounds[1] += 1
        affiliate(bounds, sources, targets, offsets[pair : pair + 2], out)


class OrientationCounts(NamedTuple):
    """Columns of an extract file, [N]: total counts over all alignments; a row is a pair with one of its alignments."""

    joint: Any
    previous_mono: Any
    previous_swap: Any
    next_mono: Any
    next_swap: Any


def score_orientations(
    extract: str, pairs: str, output: str, smoothing: float = 0.5, threads: int = 1, memory_mb: int = 2000
) -> dict[str, object]:
    """Write the reordering scores of the pairs in an extract file.

    The scores are the probabilities (count + smoothing) / (total + 3 · smoothing) of the orientations monotone, swap
    and discontinuous, with respect to the previous and the next phrase (Koehn et al. 2005;
    ``wbe-msd-bidirectional-fe`` in Moses). If a text has n alignments, counts are divided by n.

    Args:
        extract: the extract file.
        pairs: file of the same phrase pairs (``rnnsmt.phrases.pairs``).
        output: file of columns (``rnnsmt.phrases.column_files``).
        smoothing: constant added to every count.

    Returns:
        The statistics of the stage.
    """
    file, store = ExtractFile(extract, threads, memory_mb), PhrasePairs(pairs)
    alignments = file.smoothing.alignments
    meter = Meter("scoring orientations", file.rows, "rows")
    n_pairs = 0
    with write_columns(output, store, dict.fromkeys(ORIENTATIONS, np.float32), ORIENTATIONS) as out:
        for rows, columns in file.batches([*OrientationCounts._fields]):
            # sums over the rows of each pair, which differ in the phrase-internal alignment
            sums = (np.add.reduceat(columns[name].astype(np.int64), rows.pairs[:-1]) for name in columns)
            counts = OrientationCounts(*sums)
            n_pairs += len(counts.joint)
            _check_end(n_pairs, store, extract)
            total = counts.joint / alignments + 3.0 * smoothing
            shares = []
            for mono, swap in (counts[1:3], counts[3:5]):
                for share in (mono, swap, counts.joint - mono - swap):
                    shares.append((share / alignments + smoothing) / total)
            for name, values in zip(ORIENTATIONS, six_digits(np.stack(shares)), strict=True):
                out.append(name, values)
            meter.add(len(columns["joint"]))
        _check_end(n_pairs, store, extract, last=True)
    return {"phrase pairs": n_pairs}
