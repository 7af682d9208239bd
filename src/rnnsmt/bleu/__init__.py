"""BLEU as multi-bleu.perl computes it: what tuning and evaluation share."""
