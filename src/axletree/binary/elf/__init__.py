"""ELF files: facts, and edits that keep them loadable."""
