"""PyTorch's own build system, in both of its eras."""
