"""Image sources, the strict reader of their layers, and writing them out again."""
