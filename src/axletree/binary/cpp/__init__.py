"""C++ names from mangled ones."""
