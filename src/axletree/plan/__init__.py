"""Targets -> graph of stages, their keys, why one runs again, what may start now. Pure."""
