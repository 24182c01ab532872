"""AMD: the values ``rocm6.4``, ``rocm7.1``, ...: ``rocm`` and a version."""

from __future__ import annotations

import re


def rocm_release(gpu: str) -> str | None:
    """The ROCm release of a value of the ``gpu`` axis: ``7.1`` of ``rocm7.1``; ``None`` for other GPU worlds."""
    found = re.fullmatch(r"rocm([0-9]+(?:\.[0-9]+)*)", gpu)
    return found[1] if found else None


class Rocm:
    """ROCm builds. The driver is the kernel's; every user-space library comes from packages."""

    name = "rocm"
    driver_libraries: tuple[str, ...] = ()

    def owns(self, gpu: str) -> bool:
        """``rocm`` and a dotted version."""
        return re.fullmatch(r"rocm[0-9]+(\.[0-9]+)*", gpu) is not None

    def torch_index(self, gpu: str) -> str:
        """PyTorch's index of builds for that ROCm release."""
        return f"https://download.pytorch.org/whl/{gpu}"
