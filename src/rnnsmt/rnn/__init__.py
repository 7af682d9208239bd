"""The RNN Encoder-Decoder of Cho et al. (2014): model, data, training, scoring, sampling."""
