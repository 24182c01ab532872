"""A CPython as files: which of them an interpreter needs, and how they change to run in another place and system."""
