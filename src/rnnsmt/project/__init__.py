"""Directories of runs: their configuration and profile (``rnnsmt init``), and the workflow in them (``rnnsmt run``)."""
