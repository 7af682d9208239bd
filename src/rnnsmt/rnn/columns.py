"""Score columns that the paper adds to the phrase table: score of the RNN Encoder-Decoder, and word penalty."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rnnsmt.base.errors import InputError
from rnnsmt.phrases.columns import ColumnInputs, ScoreColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RnnScore(ScoreColumn):
    """log p(target | source) of the RNN Encoder-Decoder (Cho et al. 2014, section 3.1).

    The score is a natural logarithm; it includes EOS and is not normalised by length. It differs by less than 1e-4 from
    the score that is computed for the pair alone. Matrix products are computed in full float32 precision.
    """

    label = "RNN"
    network = "rnn"
    title = "RNN Encoder–Decoder"
    uses_vocabularies = True

    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[Any]]":
        """Yield the scores of the pairs."""
        from rnnsmt.networks.options import need_torch

        need_torch()

        from rnnsmt.networks.devices import set_up_device
        from rnnsmt.rnn.model import load_model_of
        from rnnsmt.rnn.pairs import Pairs
        from rnnsmt.rnn.phrase_scores import score_batches

        if inputs.vocabularies is None or inputs.model is None:
            raise InputError("--vocabularies and --model: are required for the feature rnn")
        pairs, setup = Pairs.of(inputs.pairs, inputs.vocabularies), set_up_device(inputs.device, 1)
        network = load_model_of(pairs.vocabularies, inputs.vocabularies, inputs.model, setup)
        return score_batches(network, pairs, inputs.begin, inputs.end, setup.device, inputs.threads)


class WordsOutsideShortlist(ScoreColumn):
    """The word penalty (WP) of the paper: the number of target words outside the vocabulary (shortlist) of the network.

    It differs from the WordPenalty of Moses, which counts all words. Source words that are not in the phrase table are
    copied to the output by the decoder and are not counted. Their number is the same in every translation of a
    sentence, so counting them would not change any ranking.
    """

    label = "WP"
    weight = 0.0
    uses_vocabularies = True

    def scores(self, inputs: ColumnInputs) -> "Iterator[NDArray[Any]]":
        """Yield the counts of the pairs."""
        from rnnsmt.rnn.pairs import Pairs, words_outside

        if inputs.vocabularies is None:
            raise InputError("--vocabularies: is required for the feature wp")
        return words_outside(Pairs.of(inputs.pairs, inputs.vocabularies), inputs.begin, inputs.end)
