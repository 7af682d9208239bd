"""A run of the workflow, seen from beside it."""
