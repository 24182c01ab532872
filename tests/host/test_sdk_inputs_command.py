"""``axletree sdk lay-out`` and ``axletree sdk fetch``."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.artifacts import BASE, make_artifact

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST = """
[sdk]
name = "demo"
module = "demo_sdk"
command = "demo-sdk"
prefix = "DEMO_SDK"
[[package]]
name = "core"
kind = "core"
dist = "demo-sdk-core"
claim = [{}]
"""


def run(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "axletree", "sdk", *map(str, arguments)]
    environment = {"AXLETREE_STORE": str(folder / "store"), "PATH": "/usr/bin:/bin", "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "demo.toml").write_text(MANIFEST)
    make_artifact(tmp_path / "in", "base_lib_generic", {"lib/a.so": b"x" * 2000, "lib/b.so": "a.so"})
    make_artifact(tmp_path / "in", "rand_lib_gfx90a", {"lib/rand.so": b"y"})
    return tmp_path


def test_laid_out_as_archives_fetched_and_laid_out_again(folder: Path) -> None:
    store = folder / "runs" / "12-linux"
    done = run(folder, "lay-out", "demo.toml", "--artifacts", "in", "--archives", "--out", store)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{store}: 2 artifacts, 3 files, 2.00 kB" in done.stdout
    done = run(
        folder, "fetch", "--from", "runs", "--run-id", "latest", "--artifact-group", "gfx90a", "--out", "got", "--json"
    )
    assert [file["filename"] for file in json.loads(done.stdout)["result"]["files"]] == [
        "base_lib_generic.tar.zst",
        "rand_lib_gfx90a.tar.zst",
    ]
    again = ("fetch", "--from", "runs", "--run-id", "12", "--artifact-group", "gfx90a", "--out", "got")
    assert "2 archives, all verified; 0 fetched (0 B), 2 already present" in run(folder, *again).stdout
    done = run(
        folder, "lay-out", "demo.toml", "--artifacts", "got", "--out", "new", "--dist-target", "gfx90a", "--json"
    )
    document = json.loads(done.stdout)["result"]
    assert [artifact["name"] for artifact in document["artifacts"]] == ["base_lib_generic", "rand_lib_gfx90a"]
    assert (folder / "new/base_lib_generic/base/stage/lib/a.so").stat().st_size == 2000
    info = (folder / "new/base_lib_generic/base/aux-overlay/stage/share/therock/dist_info.json").read_text()
    assert json.loads(info) == {"dist_amdgpu_targets": "gfx90a"}


def test_families_together_or_one_at_a_time(folder: Path) -> None:
    make_artifact(folder / "in", "rand_lib_gfx900", {"lib/rand.so": b"z"})
    both = run(folder, "lay-out", "demo.toml", "--artifacts", "in", "--out", "both")
    assert both.returncode == 0
    read = {
        name: (folder / f"both/rand_lib_{name}/rand/stage/lib/rand.so").read_bytes() for name in ("gfx900", "gfx90a")
    }
    assert read == {"gfx900": b"z", "gfx90a": b"y"}
    done = run(folder, "lay-out", "demo.toml", "--artifacts", "in", "--target", "gfx900", "--out", "out")
    assert done.returncode == 0
    assert sorted(place.name for place in (folder / "out").iterdir()) == ["base_lib_generic", "rand_lib_gfx900"]
    make_artifact(folder / "in", "more_lib_gfx900", {"lib/rand.so": b"x"})
    done = run(folder, "lay-out", "demo.toml", "--artifacts", "in", "--out", "twice")
    assert (done.returncode, done.stdout) == (2, "")
    assert "in both more_lib_gfx900 and rand_lib_gfx900, with different content" in done.stderr


def test_stage_folders(folder: Path) -> None:
    (folder / "artifact-demo.toml").write_text(f'[components.lib."rand_lib_gfx90a/{BASE}"]\n')
    stage = ("lay-out", "demo.toml", "--stage", "in", "--descriptor", "artifact-demo.toml", "--target", "gfx90a")
    done = run(folder, *stage, "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "out/demo_lib_gfx90a/demo/stage/lib/rand.so").read_bytes() == b"y"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("lay-out", "demo.toml", "--out", "x"), 2, "exactly one location of the SDK is required"),
        (("lay-out", "demo.toml", "--debs", "in", "--out", "x"), 2, "does not support Debian packages"),
        (("lay-out", "demo.toml", "--artifacts", "in", "--out", "in"), 2, "in exists and is not empty"),
        (("lay-out", "demo.toml", "--stage", "in", "--out", "x"), 2, "use --descriptor FILE"),
        (
            ("lay-out", "demo.toml", "--stage", "in", "--prefix", "in", "--out", "x"),
            2,
            "cannot be combined with another input",
        ),
        (
            ("lay-out", "demo.toml", "--prefix", "in", "--target", "gfx900", "--out", "x"),
            2,
            "needs --stage or --artifacts",
        ),
        (("lay-out", "demo.toml", "--stage", "in", "--descriptor", "demo.toml", "--out", "x"), 2, "--artifact NAME"),
        (
            ("lay-out", "demo.toml", "--artifacts", "in", "--dist-target", "gpu", "--out", "x"),
            2,
            "'gpu' is not a GPU target",
        ),
        (
            ("fetch", "--from", "none", "--run-id", "latest", "--artifact-group", "g", "--out", "x"),
            3,
            "none: the file cannot be read",
        ),
        (
            ("fetch", "--from", "in", "--run-id", "7", "--artifact-group", "gfx900", "--out", "x"),
            3,
            "has no run 7-linux",
        ),
        (
            ("fetch", "--from", "in", "--run-id", "7", "--artifact-group", "../g", "--out", "x"),
            2,
            "not a valid artifact group",
        ),
        (
            ("fetch", "--from", "in", "--run-id", "7", "--artifact-group", "g", "--target", "dev", "--out", "x"),
            2,
            "'dev' is neither a GPU",
        ),
    ],
)
def test_what_cannot_be_done_is_said(folder: Path, arguments: tuple[str, ...], code: int, told: str) -> None:
    done = run(folder, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "x").exists()
