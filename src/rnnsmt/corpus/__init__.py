"""Corpus preparation: from raw files to clean, tokenised, truecased text."""
