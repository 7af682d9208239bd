"""Code shared by all networks: training loop, optimiser, matrix products, softmax, options of their stages."""
