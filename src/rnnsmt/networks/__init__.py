"""Code shared by all networks: training loop, optimizer, matrix products, softmax, options of their stages."""
