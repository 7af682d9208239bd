"""RNN Encoder-Decoder on phrase pairs (Cho et al. 2014): training, scores of phrase pairs, generation of phrases."""

from rnnsmt.rnn.operations import translate
from rnnsmt.rnn.settings import RnnSettings

__all__ = ["RnnSettings", "translate"]
