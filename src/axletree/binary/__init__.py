"""Bytes -> facts: zip archives and ELF files, read from buffers, never unpacked. Pure."""
