"""The plan of a run: checks of the configuration, and the texts, systems and paths that are derived from it."""
