"""Planning of a run: what the rules compute from the configuration, which is checked here."""
