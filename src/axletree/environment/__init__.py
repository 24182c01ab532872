"""Environments as values: what they set and why, in which order tools look, how shells switch, what tools say of it."""
