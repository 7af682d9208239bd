"""Interface to Moses: ``moses.ini`` of a new model, and alignment, training, tuning and decoding by its programs."""

from rnnsmt.moses.operations import align, decode, train, tune, write_ini

__all__ = ["align", "decode", "train", "tune", "write_ini"]
