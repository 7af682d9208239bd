"""Interface to Moses: ``moses.ini``, n-best lists, and Moses' own programs."""

from rnnsmt.moses.operations import add_feature, align, decode, train, tune, write_ini

__all__ = ["add_feature", "align", "decode", "train", "tune", "write_ini"]
