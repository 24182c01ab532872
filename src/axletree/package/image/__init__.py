"""Container images as values: OCI layouts, docker archives, and what a layer may contain."""
