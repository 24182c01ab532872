"""Shared libraries between packages: who brings them, how loaders find them."""
