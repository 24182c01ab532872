"""One wheel into several."""
