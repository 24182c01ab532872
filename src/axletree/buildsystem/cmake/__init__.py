"""CMake: its cache, what it enabled, and the interpreter that a tree was configured for."""
