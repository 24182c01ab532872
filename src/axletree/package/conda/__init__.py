"""Conda packages as values: what goes into one, its ``info/`` files, its archive, and what one that exists holds."""
