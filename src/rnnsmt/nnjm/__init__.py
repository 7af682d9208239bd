"""The neural network joint model of Devlin et al. (2014): a language model that sees the source words around a word."""
