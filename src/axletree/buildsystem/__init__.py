"""What is known of build systems: CMake's cache, ninja's log, and how projects hand their settings on. Pure."""
