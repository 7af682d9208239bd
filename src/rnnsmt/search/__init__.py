"""The decoder: Moses' model, cube pruning, n-best lists."""
