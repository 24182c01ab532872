"""What a GPU backend has to say. A new one is a module here and a line in :mod:`axletree.registry`."""

from __future__ import annotations

from typing import Protocol


class Backend(Protocol):
    """One GPU world, as seen from the values of the ``gpu`` axis."""

    name: str
    """``cpu``, ``cuda``, ``rocm``."""

    driver_libraries: tuple[str, ...]
    """Patterns of SONAMEs that the driver brings, so no package may."""

    def owns(self, gpu: str) -> bool:
        """Whether a value of the ``gpu`` axis is of this world."""

    def torch_index(self, gpu: str) -> str:
        """PyTorch's own wheel index for that value, asked only where the user's own sources have nothing."""
