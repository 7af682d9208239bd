"""Extraction of the phrase pairs that are consistent with word alignments, from several corpora in bounded memory."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rnnsmt.base.errors import InputError
from rnnsmt.base.kernels.decorator import INNER, kernel
from rnnsmt.base.kernels.strings import Interner
from rnnsmt.base.progress import Meter, say
from rnnsmt.base.writing import check_name, scratch_directory
from rnnsmt.phrases.aligned_text import AlignedBlock, TextStats, read_aligned_blocks
from rnnsmt.phrases.extract_file import connect, key_names, write_extract
from rnnsmt.phrases.packing import Packing

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EXTRACTED_TOKENS = 50_000
"""Total number of source and target words from which phrase pairs are extracted at a time. About two pairs are
extracted per word, and each takes a few hundred bytes."""


def extract_phrases(
    sources: Sequence[str],
    targets: Sequence[str],
    alignments: Sequence[str],
    output: str,
    max_length: int = 7,
    threads: int = 1,
    memory_mb: int = 2000,
) -> dict[str, object]:
    """Extract, count and sort the phrase pairs of the corpora.

    There are two passes. The first pass numbers the words and writes the text as numbers to a temporary file. The
    second pass renumbers the words in byte order and extracts phrase pairs, block by block, into duckdb, which counts
    and sorts them. If memory is insufficient, duckdb uses temporary files in a scratch directory.

    Args:
        sources, targets, alignments: files; the n-th files are parallel.
        output: the extract file.
        max_length: maximum number of words of a phrase.
        threads: number of threads of duckdb.
        memory_mb: memory limit of the process in MB.

    Returns:
        The statistics of the stage.
    """
    check_name(output)
    with scratch_directory(output) as scratch:
        figures = TextStats()
        source_words, target_words = Interner(), Interner()
        with (scratch / "spool").open("w+b") as spool:
            meter = Meter("reading", unit="sentence pairs")
            files = sources, targets, alignments
            for block in read_aligned_blocks(*files, source_words, target_words, figures, EXTRACTED_TOKENS):
                _save(spool, block)
                meter.add(block.sentences)
            spool.seek(0)
            words = source_words.strings(), target_words.strings()
            packings = Packing(words[0], max_length), Packing(words[1], max_length)
            codes = _codes(packings[0], words[0]), _codes(packings[1], words[1])
            del source_words, target_words, words
            with connect(str(scratch), threads, memory_mb) as connection:
                occurrences = _insert_occurrences(connection, spool, packings, codes, max_length, figures.sentences)
                if not occurrences:
                    raise InputError(
                        f"{alignments[0]}: no phrase pair is consistent with these links; is this the right alignment?"
                    )
                say(f"counting {occurrences:,} occurrences")
                rows = write_extract(connection, packings, max_length, _alignments_of_a_text(sources, targets), output)
    return figures.as_dict() | {"occurrences": occurrences, "distinct pairs with links": rows}


def _codes(packing: Packing, words: list[bytes]) -> NDArray[np.int64]:
    """Return the codes of V words, int64 [V]; see ``Packing``."""
    code_of = packing.codes()
    return np.array([code_of[word] for word in words], np.int64)


_ARRAYS = ("source", "target", "links", "source_offsets", "target_offsets", "link_offsets")


def _save(spool: BinaryIO, block: AlignedBlock) -> None:
    for name in _ARRAYS:
        np.save(spool, getattr(block, name))


def _load(spool: BinaryIO, sentences: int) -> Iterator[AlignedBlock]:
    while sentences > 0:
        block = AlignedBlock(*(np.load(spool) for _ in _ARRAYS))
        sentences -= block.sentences
        yield block


def _insert_occurrences(
    connection: "DuckDBPyConnection",
    spool: BinaryIO,
    packings: tuple[Packing, Packing],
    codes: tuple[NDArray[np.int64], NDArray[np.int64]],
    max_length: int,
    sentences: int,
) -> int:
    """Extract phrase pairs from all blocks in ``spool`` into the table ``occurrences``; return the number of rows."""
    names = key_names(packings)
    columns = ", ".join(f"{name} BIGINT" for name in names)
    connection.execute(f"CREATE TABLE occurrences ({columns}, links BIGINT, orientation TINYINT)")
    meter = Meter("extracting", sentences, "sentence pairs")
    total = 0
    for block in _load(spool, sentences):
        offsets = block.source_offsets, block.target_offsets, block.link_offsets
        # an estimate; if there are more pairs, extract_block is called again with the number of pairs that it returned
        capacity = 8 * (len(block.source) + len(block.target))
        while True:
            spans, bits = np.empty((capacity, 4), np.int32), np.empty(capacity, np.int64)
            orientations = np.empty(capacity, np.int8)
            n_pairs = extract_block(*offsets, block.links, max_length, spans, bits, orientations)
            if n_pairs <= capacity:
                break
            capacity = n_pairs
        spans = spans[:n_pairs]
        keys = [
            *packings[0].pack(block.source, codes[0], spans, 0),
            *packings[1].pack(block.target, codes[1], spans, 1),
        ]
        columns_of_block = dict(zip(names, keys, strict=True))
        columns_of_block |= {"links": bits[:n_pairs], "orientation": orientations[:n_pairs]}
        connection.execute("INSERT INTO occurrences SELECT * FROM columns_of_block")
        total += n_pairs
        meter.add(block.sentences)
    return total


def _alignments_of_a_text(sources: Sequence[str], targets: Sequence[str]) -> int:
    """Return the number of alignments of each text, or 1 if the texts have different numbers of alignments."""
    texts = list(zip(sources, targets, strict=True))
    numbers = {texts.count(text) for text in texts}
    return numbers.pop() if len(numbers) == 1 else 1


MONO, SWAP, OTHER = 0, 1, 2
"""Orientations of the word-based model: monotone, swap, and other (discontinuous)."""


@kernel(**INNER)
def _index_links(
    links: Any, begin: int, end: int, n_source: int, n_target: int, row: Any, first_target: Any, last_target: Any
) -> None:
    """Index the links of a sentence pair by target and by source word.

    Args:
        links: int32 [L, 2], source and target position of each link, as in ``AlignedBlock``.
        begin, end: range of the links of the sentence pair.
        n_source, n_target: number of source words and of target words.
        row: int64 [n_target + 3 or more], filled: the links of target word j are ``links[row[j + 1]:row[j + 2]]``, also
            for j = -1 and j = n_target, which have no links.
        first_target, last_target: int64 [n_source or more], filled with the first and the last target word to which
            each source word is linked; n_target and -1 for source words without links.
    """
    for i in range(n_source):
        first_target[i] = n_target
        last_target[i] = -1
    at = begin
    row[0] = at
    for j in range(n_target):
        row[j + 1] = at
        while at < end and links[at, 1] == j:
            i = links[at, 0]
            first_target[i] = min(first_target[i], j)
            last_target[i] = j
            at += 1
    row[n_target + 1] = at
    row[n_target + 2] = at


@kernel(**INNER)
def _is_consistent(first_target: Any, last_target: Any, first_f: int, last_f: int, start_e: int, end_e: int) -> bool:
    """Return whether all links of the source words ``first_f`` to ``last_f`` are in the target span.

    Args:
        first_target, last_target: as filled by ``_index_links``.
        start_e, end_e: first and last target word of the span.
    """
    for i in range(first_f, last_f + 1):
        if last_target[i] >= 0 and (first_target[i] < start_e or last_target[i] > end_e):
            return False
    return True


@kernel(**INNER)
def _first_unlinked(last_target: Any, first: int, least: int) -> int:
    """Return the first of the unlinked words directly before ``first``, but at least ``least``; ``first`` if none."""
    while first > least and last_target[first - 1] < 0:
        first -= 1
    return first


@kernel(**INNER)
def _last_unlinked(last_target: Any, last: int, most: int) -> int:
    """Return the last of the unlinked words directly after ``last``, but at most ``most``; ``last`` if none."""
    while last < most and last_target[last + 1] < 0:
        last += 1
    return last


@kernel(**INNER)
def _links_inside(links: Any, begin: int, end: int, start_f: int, start_e: int) -> Any:
    """Return the links ``begin`` to ``end - 1`` as a bit mask, see ``rnnsmt.phrases.scores``.

    Args:
        start_f, start_e: first word of the source phrase and of the target phrase.
    """
    inside = np.int64(0)
    for link in range(begin, end):
        inside |= np.int64(1) << np.int64(8 * (links[link, 1] - start_e) + links[link, 0] - start_f)
    return inside


@kernel(**INNER)
def _has_link(links: Any, row: Any, i: int, j: int, n_source: int, n_target: int) -> bool:
    """Return whether source position i is linked to target position j.

    The positions before the first words, (-1, -1), count as linked, and so do the positions after the last words,
    (n_source, n_target). All other positions outside the sentence pair count as unlinked.
    """
    if i < 0 or j < 0:
        return i == -1 and j == -1
    if i >= n_source or j >= n_target:
        return i == n_source and j == n_target
    for link in range(row[j + 1], row[j + 2]):  # noqa: SIM110 (numba)
        if links[link, 0] == i:
            return True
    return False


@kernel(**INNER)
def _orientation(monotone: bool, swapped: bool) -> int:
    """Return the orientation, given whether the links that indicate MONO and SWAP exist; see ``extract_block``."""
    if monotone and not swapped:
        return MONO
    if swapped and not monotone:
        return SWAP
    return OTHER


@kernel()
def extract_block(
    source_offsets: Any,
    target_offsets: Any,
    link_offsets: Any,
    links: Any,
    max_length: int,
    spans: Any,
    bits: Any,
    orientations: Any,
) -> int:
    """Extract all phrase pairs of S sentence pairs (Koehn, Och and Marcu 2003).

    A pair has at least one link, and no link connects a word inside to a word outside. Source phrases are extended by
    unlinked words at their borders in all possible ways. Each phrase has at most ``max_length`` (≤ 8) words. Order and
    limits are the same as in ``extract`` of Moses.

    Args:
        source_offsets, target_offsets, link_offsets, links: as in ``AlignedBlock``.
        max_length: maximum number of words of a phrase.
        spans: int32 [N, 4], filled with four numbers for each pair: first word of the source phrase (index in the flat
            array), its length, first word of the target phrase, and its length.
        bits: int64 [N], filled with the links of each pair as a bit mask (``rnnsmt.phrases.scores``).
        orientations: int8 [N], filled with ``3 * previous + next``; both are MONO, SWAP or OTHER in the word-based
            model (Koehn et al. 2005; ``wbe-msd`` in Moses). ``previous`` depends on the target word before the target
            phrase: it is MONO if this word is linked to the source word before the source phrase, SWAP if it is linked
            to the source word after the source phrase, and OTHER if it is linked to neither or both. ``next`` depends
            on the target word after the target phrase: it is MONO if this word is linked to the source word after the
            source phrase, and SWAP if it is linked to the source word before the source phrase.

    Returns:
        The number of pairs. If it exceeds N, only the first N pairs are stored.
    """
    n_pairs = 0
    longest_source, longest_target = np.diff(source_offsets).max(), np.diff(target_offsets).max()
    first_target, last_target = np.empty(longest_source, np.int64), np.empty(longest_source, np.int64)
    row = np.empty(longest_target + 3, np.int64)
    for s in range(source_offsets.shape[0] - 1):
        n_source, n_target = source_offsets[s + 1] - source_offsets[s], target_offsets[s + 1] - target_offsets[s]
        _index_links(links, link_offsets[s], link_offsets[s + 1], n_source, n_target, row, first_target, last_target)
        for start_e in range(n_target):
            # min_f, max_f: source span of the links of the target span; it grows with end_e
            min_f, max_f = n_source, -1
            for end_e in range(start_e, min(n_target, start_e + max_length)):
                for link in range(row[end_e + 1], row[end_e + 2]):
                    min_f = min(min_f, links[link, 0])
                    max_f = max(max_f, links[link, 0])
                if max_f < 0:
                    continue
                if max_f - min_f >= max_length:
                    break
                if not _is_consistent(first_target, last_target, min_f, max_f, start_e, end_e):
                    continue
                # extend the source span over unlinked words, first on the left, then on the right
                least = _first_unlinked(last_target, min_f, max(0, max_f - max_length + 1))
                for start_f in range(min_f, least - 1, -1):
                    most = _last_unlinked(last_target, max_f, min(n_source, start_f + max_length) - 1)
                    for end_f in range(max_f, most + 1):
                        if n_pairs < bits.shape[0]:
                            spans[n_pairs, 0] = source_offsets[s] + start_f
                            spans[n_pairs, 1] = end_f - start_f + 1
                            spans[n_pairs, 2] = target_offsets[s] + start_e
                            spans[n_pairs, 3] = end_e - start_e + 1
                            bits[n_pairs] = _links_inside(links, row[start_e + 1], row[end_e + 2], start_f, start_e)
                            left = _has_link(links, row, start_f - 1, start_e - 1, n_source, n_target)
                            right = _has_link(links, row, end_f + 1, start_e - 1, n_source, n_target)
                            previous = _orientation(left, right)
                            left = _has_link(links, row, start_f - 1, end_e + 1, n_source, n_target)
                            right = _has_link(links, row, end_f + 1, end_e + 1, n_source, n_target)
                            orientations[n_pairs] = 3 * previous + _orientation(right, left)
                        n_pairs += 1
    return n_pairs
