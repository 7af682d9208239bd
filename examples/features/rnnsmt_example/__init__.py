"""A score column and a metric for rnnsmt, one file each."""
