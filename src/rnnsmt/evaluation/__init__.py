"""BLEU, significance, Table 1."""
