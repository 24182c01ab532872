"""Fixtures for all tests, and the guard that keeps ``tests/pure`` pure."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from support import purity

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

TESTS = Path(__file__).parent

# No example database (pure tests write nothing) and no deadline (a busy machine fails no test).
settings.register_profile("axletree", database=None, deadline=None)
settings.load_profile("axletree")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Guard the call of a pure test. Its fixtures stay free: what they read or run is the test's input."""
    if not item.path.is_relative_to(TESTS / "pure"):
        with without_compiler_skipped():
            return (yield)
    with purity.guarded():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Fixtures compile, too."""
    with without_compiler_skipped():
        return (yield)


@contextmanager
def without_compiler_skipped() -> Generator[None]:
    """Skip the test where there is no compiler; ``scripts/setup tests`` lets people do without."""
    try:
        yield
    except FileNotFoundError as error:
        if error.filename not in {"cc", "c++", "gcc", "g++"}:
            raise
        pytest.skip(f"needs {error.filename}")


@pytest.fixture
def isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own, with the store, caches and settings inside."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name, folder in (
        ("XDG_CACHE_HOME", ".cache"),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("AXLETREE_STORE", "store"),
    ):
        monkeypatch.setenv(name, str(home / folder))
    return home


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """``golden(name, text)``: the text is what ``tests/golden/NAME`` holds.

    With ``AXLETREE_UPDATE_GOLDEN=1`` the file is written instead; read the diff before committing it.
    """

    def check(name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if os.environ.get("AXLETREE_UPDATE_GOLDEN") == "1":
            with purity.lifted():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {name}: run the test once with AXLETREE_UPDATE_GOLDEN=1"
        assert text == path.read_text(encoding="utf-8"), f"differs from tests/golden/{name}"

    return check
