"""Wheels: names, metadata, RECORD, reading, writing."""
