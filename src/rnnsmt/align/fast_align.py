"""fast_align (Dyer, Chahuneau and Smith 2013) in both directions, by sil-thot's implementation.

Model, settings and links are those of ``fast_align -d -o -v`` (and with ``-r``): five iterations, p0 0.08, a Dirichlet
prior of 0.01, an optimised diagonal tension. It draws no random numbers.
"""

from concurrent.futures import ThreadPoolExecutor

from rnnsmt.align.bitext import Bitext, Side
from rnnsmt.align.pharaoh import Links, from_lists

ITERATIONS = 5


def align(bitext: Bitext, threads: int = 1) -> tuple[Links, Links]:
    """Links of the forward (one source word a target word) and of the reverse direction, both source-target."""
    with ThreadPoolExecutor(max(1, min(threads, 2))) as pool:
        forward = pool.submit(_one_direction, bitext.source, bitext.target)
        reverse = pool.submit(_one_direction, bitext.target, bitext.source)
        swapped = reverse.result()
        return forward.result(), Links(swapped.offsets, swapped.target, swapped.source)


def _one_direction(condition: Side, generated: Side) -> Links:
    """Align every word of ``generated`` with a word of ``condition`` or none; links (condition, generated)."""
    import thot.alignment

    model = thot.alignment.FastAlignModel()
    model.variational_bayes = True
    pairs = [(_words(condition, s), _words(generated, s)) for s in range(len(condition.offsets) - 1)]
    for pair in pairs:
        if pair[0] and pair[1]:
            model.add_sentence_pair(*pair)
    model.start_training()
    for _ in range(ITERATIONS):
        model.train()
    model.end_training()
    return from_lists(_best(model, *pair) for pair in pairs)


def _words(side: Side, sentence: int) -> list[str]:
    """Ids as words: no word of the text can collide with the names thot reserves."""
    return [str(word) for word in side.ids[side.offsets[sentence] : side.offsets[sentence + 1]].tolist()]


def _best(model, condition: list[str], generated: list[str]) -> list[tuple[int, int]]:
    if not condition or not generated:
        return []
    matrix = model.get_best_alignment(condition, generated)[1].to_numpy()
    rows, columns = matrix.nonzero()
    return list(zip(rows.tolist(), columns.tolist(), strict=True))
