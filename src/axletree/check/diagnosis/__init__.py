"""Root causes in logs: kinds of failure, found in a stream of lines, ranked."""
