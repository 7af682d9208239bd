"""Interface to Moses: ``moses.ini``, n-best lists, and Moses' own programs."""

from rnnsmt.moses.operations import align, decode, train, tune, write_ini

__all__ = ["align", "decode", "train", "tune", "write_ini"]
