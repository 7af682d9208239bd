"""Phrase extraction, scoring, reordering tables, phrase-table files, filtering."""
