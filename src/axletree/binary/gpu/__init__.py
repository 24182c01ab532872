"""GPU code in host files: fat binaries, offload bundles."""
