"""Directories of runs: configuration and profile (``rnnsmt init``), the workflow in them (``run``), its ``status``."""

from rnnsmt.project.operations import init, run, settings, status

__all__ = ["init", "run", "settings", "status"]
