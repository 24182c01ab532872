"""Dependency drift: what upstream has, requires and tests with, beside what a recipe asks for and a channel offers."""
