"""Minimum error rate training (Och 2003)."""
