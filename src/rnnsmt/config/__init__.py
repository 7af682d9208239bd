"""Declarations of the settings of a run, and names of languages, features and systems."""
