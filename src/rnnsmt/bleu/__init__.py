"""BLEU as computed by multi-bleu.perl, shared by tuning and evaluation."""
