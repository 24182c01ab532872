"""No GPU: the value ``cpu``."""

from __future__ import annotations


class Cpu:
    """Builds that need no GPU runtime."""

    name = "cpu"
    driver_libraries: tuple[str, ...] = ()

    def owns(self, gpu: str) -> bool:
        """``cpu`` and nothing else."""
        return gpu == "cpu"

    def torch_index(self, gpu: str) -> str:
        """PyTorch's index of CPU builds."""
        return f"https://download.pytorch.org/whl/{gpu}"
