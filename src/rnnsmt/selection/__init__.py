"""Selection of the in-domain part of a corpus (Moore and Lewis 2010; Axelrod et al. 2011)."""

ORDER = 5
"""N-gram order of all models."""
