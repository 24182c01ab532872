"""What a native Python project says of how it is built, read from its files without running any of them."""
