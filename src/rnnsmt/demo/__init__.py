"""English-French demo corpus, whose text is part of the package."""
