"""The code that touches the machine: files, processes, network, interpreters, clients."""
