"""English-French demo corpus, whose text is part of the package."""

from rnnsmt.demo.operations import make

__all__ = ["make"]
