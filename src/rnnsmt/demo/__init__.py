"""The embedded bilingual corpus: a deterministic synchronous grammar that writes English-French text."""
