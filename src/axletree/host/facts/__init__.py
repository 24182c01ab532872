"""Probes: what a host is and has, found out by reading and by trying. None fails as a whole, none waits for ever."""
