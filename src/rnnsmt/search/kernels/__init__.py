"""What numba compiles."""
