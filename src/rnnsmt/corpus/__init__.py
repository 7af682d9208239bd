"""From raw files to clean, tokenised, truecased text."""
