"""What each GPU world says of itself, and that no two claim the same value."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from axletree import registry
from axletree.registry import BACKENDS, backend_of, driver_libraries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.backends.protocol import Backend

OWNED = {
    "cpu": ("cpu",),
    "cuda": ("cu118", "cu126", "cu128", "cu130", "cu1210"),
    "rocm": ("rocm6.4", "rocm7.1", "rocm7", "rocm6.4.3"),
}
NEAR_MISSES = (
    "",
    "CPU",
    "cpu2",
    "cu",
    "cu12",
    "cu12.8",
    "cuda130",
    "cu130 ",
    "cu130\n",
    "rocm",
    "rocm7.",
    "rocm-7.1",
    "xpu",
)
BROUGHT_BY_DRIVERS = ("libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1", "libnvcuvid.so.1")
BROUGHT_BY_PACKAGES = ("libcudart.so.13", "libcublas.so.13", "libnvrtc.so.13", "libnvJitLink.so.13", "libamdhip64.so.7")


@pytest.mark.parametrize(("name", "gpu"), [(name, gpu) for name, gpus in OWNED.items() for gpu in gpus])
def test_a_backend_owns_its_values(name: str, gpu: str) -> None:
    backend = backend_of(gpu)
    assert backend is not None
    assert backend.name == name


@pytest.mark.parametrize("gpu", [*NEAR_MISSES, *(gpu for gpus in OWNED.values() for gpu in gpus)])
def test_no_two_backends_own_one_value(gpu: str) -> None:
    owners = [backend.name for backend in BACKENDS if backend.owns(gpu)]
    assert len(owners) == (gpu not in NEAR_MISSES)
    assert (backend_of(gpu) is None) == (gpu in NEAR_MISSES)


def test_each_backend_has_its_cases_here() -> None:
    assert sorted(backend.name for backend in BACKENDS) == sorted(OWNED)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_backend_asks_pytorchs_own_index(backend: Backend) -> None:
    for gpu in OWNED[backend.name]:
        assert backend.torch_index(gpu) == f"https://download.pytorch.org/whl/{gpu}"


@pytest.mark.parametrize("soname", BROUGHT_BY_DRIVERS)
def test_backends_name_what_drivers_bring(soname: str) -> None:
    assert any(fnmatchcase(soname, pattern) for pattern in driver_libraries())


@pytest.mark.parametrize("soname", BROUGHT_BY_PACKAGES)
def test_backends_leave_to_packages_what_packages_bring(soname: str) -> None:
    """``libnvidia-*`` must not take in what wheels carry under ``nvidia/``."""
    assert not any(fnmatchcase(soname, pattern) for pattern in driver_libraries())


class Xpu:
    """A backend as another distribution may bring it."""

    name = "xpu"
    driver_libraries = ("libze_loader.so.*",)

    def owns(self, gpu: str) -> bool:
        return gpu == "xpu"

    def torch_index(self, gpu: str) -> str:
        return f"https://download.pytorch.org/whl/{gpu}"


class Point:
    """Its entry point."""

    def load(self) -> type[Xpu]:
        return Xpu


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An installed backend; the list holds each search for such."""
    searched: list[str] = []

    def entry_points(group: str) -> tuple[Point, ...]:
        searched.append(group)
        return (Point(),)

    monkeypatch.setattr(registry, "entry_points", entry_points)
    registry._installed.cache_clear()
    yield searched
    registry._installed.cache_clear()


def test_a_backend_of_another_distribution_counts_like_ours(lookups: list[str]) -> None:
    found = backend_of("xpu")
    assert found is not None
    assert found.name == "xpu"
    assert "libze_loader.so.*" in driver_libraries()
    assert lookups == ["axletree.backends"]


def test_our_own_backends_are_found_without_a_search(lookups: list[str]) -> None:
    assert backend_of("cpu") is not None
    assert lookups == []
