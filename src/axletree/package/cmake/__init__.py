"""CMake package files: their syntax, and exported targets that must fit another layout."""
