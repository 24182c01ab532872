"""NVIDIA: the values ``cu126``, ``cu130``, ...: ``cu``, major version, one digit of minor version."""

from __future__ import annotations

import re


def cuda_release(gpu: str) -> str | None:
    """The CUDA release of a value of the ``gpu`` axis: ``13.0`` of ``cu130``; ``None`` for other GPU worlds."""
    found = re.fullmatch(r"cu([0-9]{2,})([0-9])", gpu)
    return f"{found[1]}.{found[2]}" if found else None


class Cuda:
    """CUDA builds."""

    name = "cuda"
    driver_libraries: tuple[str, ...] = ("libcuda.so.*", "libnvidia-*.so.*", "libnvcuvid.so.*")

    def owns(self, gpu: str) -> bool:
        """``cu`` and at least three digits."""
        return re.fullmatch(r"cu[0-9]{3,}", gpu) is not None

    def torch_index(self, gpu: str) -> str:
        """PyTorch's index of builds for that CUDA release."""
        return f"https://download.pytorch.org/whl/{gpu}"
