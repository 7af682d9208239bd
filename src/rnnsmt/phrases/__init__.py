"""Phrase extraction, scoring, reordering tables, files of phrase tables, and filtering."""
