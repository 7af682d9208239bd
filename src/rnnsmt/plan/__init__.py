"""Planning of a run: the checked configuration, the features of systems, and estimates of what a run needs."""
