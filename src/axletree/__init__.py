"""Axletree: GPU-native Python software from source to packages that are audited, indexed, installed and tested."""

__version__ = "0.1.0"
