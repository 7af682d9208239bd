"""Run directories: set-up (``rnnsmt init``), execution of the workflow (``run``), and its progress (``status``)."""

from rnnsmt.project.operations import init, run, settings, status

__all__ = ["init", "run", "settings", "status"]
