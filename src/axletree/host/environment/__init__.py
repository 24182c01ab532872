"""Environments on this machine: made, found, and asked of its compilers, linkers and loader."""
