"""``python -m axletree``."""

from axletree.cli.main import main

main()
