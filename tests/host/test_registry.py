"""Backends and actions of other distributions are found wherever modules are."""

from __future__ import annotations

import sys
import zipfile
from typing import TYPE_CHECKING

from axletree.registry import entry_points

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

GROUP = "axletree.demo"
POINTS = f"[{GROUP}]\nxpu = demo:Xpu\n"


def names(place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(sys, "path", [str(place), *sys.path])
    return [point.name for point in entry_points(GROUP)]


def test_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n", encoding="utf-8")
    assert names(tmp_path, monkeypatch) == []
    (info / "entry_points.txt").write_text(POINTS, encoding="utf-8")
    assert names(tmp_path, monkeypatch) == ["xpu"]


def test_in_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "demo.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        archive.writestr("demo-1.0.dist-info/entry_points.txt", POINTS)
    assert names(path, monkeypatch) == ["xpu"]


def test_places_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(tmp_path / "missing", monkeypatch) == []
