"""SDK trees on this machine: artifact folders and archives, install prefixes, Debian packages; launchers."""
