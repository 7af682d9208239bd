"""Evaluation: BLEU, significance tests, Table 1."""
