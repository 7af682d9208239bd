"""What the networks share: the training loop, optimiser and matrix products, and the options of their stages."""
