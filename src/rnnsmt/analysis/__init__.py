"""Pictures of what was learnt: learning curves, MERT, scores of phrase pairs."""
