"""``python -m rocm_sdk``, and the console script ``rocm-sdk``."""

from __future__ import annotations

import sys

from ._cli import main as run


def main() -> None:
    """Run the command and exit."""
    sys.exit(run())


if __name__ == "__main__":
    main()
