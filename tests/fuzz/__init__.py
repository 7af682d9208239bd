"""Harnesses that damage files; ``python -m tests.fuzz.damage --help``."""
