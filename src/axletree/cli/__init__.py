"""The command line: parse arguments, call ``app``, print with ``view``, map an error to an exit code."""
