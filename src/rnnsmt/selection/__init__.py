"""Selection of the in-domain part of a corpus (Moore and Lewis 2010; Axelrod et al. 2011)."""

from rnnsmt.selection.operations import ORDER, PoolFiles, models, score, select

__all__ = ["ORDER", "PoolFiles", "models", "score", "select"]
