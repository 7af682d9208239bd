"""The plan of a run: a configuration is checked, and texts, systems and paths follow from it."""
