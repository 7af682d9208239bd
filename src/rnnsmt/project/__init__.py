"""Directories of runs: configuration and profile (``rnnsmt init``), the workflow in them (``run``), its ``status``."""
