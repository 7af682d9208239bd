"""Tuning of feature weights for corpus BLEU: MERT (Och 2003) and batch MIRA."""
