"""One use case a module: wires pure parts to ports, returns values, prints nothing."""
