"""Values every layer shares: digests, trees, findings, errors, events. Pure: no files, processes, sockets or clock."""
