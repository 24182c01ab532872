"""``axletree sdk upload``: TheRock's layout in a folder, verified and whole; pip and uv install by what it prints."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from axletree.cli.main import main
from support.gizmo_sdk import MANIFEST, make_gizmo

PLACE = "123-linux/python/gfx9-all"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gizmo")
    (root / "m.toml").write_text(MANIFEST)
    words = ["sdk", "build", str(root / "m.toml"), "--prefix", str(make_gizmo(root / "prefix")), "--level", "1"]
    for name, flavour in (("both", "both"), ("sdist", "sdist")):
        with pytest.raises(SystemExit) as ended:
            main([*words, "--out", str(root / name), "--selector", flavour])
        assert ended.value.code == 0
    return root


@pytest.fixture
def dist(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built / "both", tmp_path / "dist"))


def upload(dist: Path, store: Path | str, *options: str, run: str = "123", group: str = "gfx9-all") -> int:
    words = ["--from", str(dist), "--to", str(store), "--run-id", run, "--artifact-group", group]
    with pytest.raises(SystemExit) as ended:
        main(["sdk", "upload", *words, *options])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def wheels(folder: Path) -> set[str]:
    return {path.name.partition("-2.5")[0] for path in folder.iterdir() if path.suffix in {".whl", ".gz"}}


def follow(command: str, folder: Path, **more: str) -> set[str]:
    """What a command that was printed installs; options of pip itself stay before ``install``."""
    words = [word for word in shlex.split(command) if "=" not in word or "@" in word or "[" in word]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "GIZMO_"))}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "PIP_CACHE_DIR": str(folder / "p"), "UV_CACHE_DIR": str(folder / "u")}
    site = folder / "site"
    done = subprocess.run(
        [sys.executable, "-m", *words, "--target", site],
        env=environ | {"UV_NO_CONFIG": "1"} | more,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {path.name.partition("-")[0] for path in site.glob("*.dist-info")}


def commands(page: str) -> list[str]:
    return [line.strip() for line in page.splitlines() if line.strip().startswith(("pip ", "uv ", "PIP_CONFIG_FILE="))]


def test_the_layout_and_the_commands(dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "a store"
    assert upload(dist, store) == 0
    printed = capsys.readouterr().out
    place = store / PLACE
    assert wheels(place) == wheels(dist)
    assert wheels(place / "at-install") == {"gizmo"}
    shown = commands((place / "install.md").read_text())
    assert shown == commands(printed)
    assert len(shown) == 6
    shared = {"gizmo", "gizmo_core", "gizmo_libraries", "gizmo_devel"}
    for number in (0, 1):
        made = follow(shown[number], tmp_path / f"wheel-{number}")
        assert made == shared | {"gizmo_libraries_gfx9_0"}
    made = follow(shown[2], tmp_path / "other")
    assert made == shared | {"gizmo_device_gfx1030"}
    for number in (3, 4):
        made = follow(shown[number], tmp_path / f"sdist-{number}", GIZMO_FORCE_GFX_ARCH="gfx1030")
        assert made == shared | {"gizmo_device_gfx1030"}


def test_a_second_time_changes_nothing(dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    assert upload(dist, store, "--dry-run", "--json") == 0
    report = json.loads(capsys.readouterr().out)["result"]
    assert {each["state"] for each in report["files"]} == {"new"}
    assert report["dry_run"]
    assert not store.exists()
    assert upload(dist, store) == 0
    before = content(store)
    capsys.readouterr()
    assert upload(dist, store, "--json") == 0
    assert content(store) == before
    assert {each["state"] for each in json.loads(capsys.readouterr().out)["result"]["files"]} == {"there"}


def test_what_a_killed_upload_left_is_completed(dist: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert upload(dist, store) == 0
    whole = content(store)
    place = store / PLACE
    for left in ("simple/gizmo-core/index.json", "simple/index.html", "index.html", "install.md"):
        (place / left).unlink()
    (place / "gizmo_devel-2.5-py3-none-any.whl").unlink()
    owner = place / ".staging.0123456789abcdef.axletree-part"
    owner.touch()
    (place / f"{owner.name}.d").mkdir()
    (place / f"{owner.name}.d/half.whl").write_bytes(b"half")
    assert upload(dist, store) == 0
    assert content(store) == whole


def test_an_index_for_each_family(dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    assert upload(dist, store, "--per-family") == 0
    assert "leaving out the selector's sdist" in capsys.readouterr().out
    place = store / PLACE
    assert wheels(place / "generic") == {"gizmo_core", "gizmo_libraries", "gizmo_devel"}
    family = {"gizmo_libraries_gfx9_0", "gizmo_device_gfx900", "gizmo_device_gfx906"}
    assert wheels(place / "gfx9_0") == {"gizmo", *family}
    assert wheels(place / "gfx1030") == {"gizmo", "gizmo_device_gfx1030"}
    page = (place / "gfx1030/simple/gizmo-core/index.html").read_text()
    assert 'href="../../../generic/gizmo_core-2.5-' in page
    by_family = [each for each in commands((place / "install.md").read_text()) if "/gfx1030/" in each]
    shared = {"gizmo", "gizmo_core", "gizmo_libraries", "gizmo_devel"}
    for number, command in enumerate(by_family):
        assert follow(command, tmp_path / f"site-{number}") == shared | {"gizmo_device_gfx1030"}
    told: Any = json.loads((tmp_path / "site-0/site/gizmo_sdk/_sdk.json").read_text())
    assert told["default_family"] == "gfx1030"
    assert {target for targets in told["families"].values() for target in targets} == {"gfx1030"}
    before = content(store)
    assert upload(dist, store, "--per-family") == 0
    assert content(store) == before


def test_other_content_is_an_error(dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    assert upload(dist, store) == 0
    wheel = next((store / PLACE).glob("gizmo_core-*.whl"))
    wheel.write_bytes(wheel.read_bytes() + b"x")
    before = content(store)
    assert upload(dist, store) == 2
    assert "the file is already in the store with different content" in capsys.readouterr().err
    assert content(store) == before


def test_a_package_that_was_damaged(dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = next(dist.glob("gizmo_devel-*.whl"))
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.comment = b"changed"
    assert upload(dist, tmp_path / "store") == 2
    assert "does not match its index" in capsys.readouterr().err
    wheel.write_bytes(b"nothing of a wheel")
    assert upload(dist, tmp_path / "store") == 2
    assert wheel.name in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("built_as", ["both", "sdist"])
def test_a_package_that_is_missing(
    built_as: str, built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dist = Path(shutil.copytree(built / built_as, tmp_path / "dist"))
    next(dist.glob("gizmo_device_gfx906-*.whl")).unlink()
    assert upload(dist, tmp_path / "store") == 2
    said = capsys.readouterr().err
    assert "gizmo 2.5: the wheel requires gizmo-device-gfx906==2.5, but this release does not contain it" in said
    assert not (tmp_path / "store").exists()


def test_the_sdist_alone(built: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "store"
    assert upload(built / "sdist", store) == 0
    assert "install it for the host's GPUs" in capsys.readouterr().out
    assert "gizmo" in wheels(store / PLACE)
    assert upload(built / "sdist", store, "--per-family", group="other") == 2
    assert "--per-family needs the selector as a wheel" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"store": "https://user:secret@h.example/x"}, "is not a folder"),
        ({"run": "../../etc"}, "--run-id"),
        ({"group": "a/b"}, "--artifact-group"),
        ({"group": ".hidden"}, "--artifact-group"),
    ],
)
def test_bad_usage(
    options: dict[str, str], told: str, dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert upload(dist, **{"store": tmp_path / "store", **options}) == 2  # type: ignore[arg-type]
    said = capsys.readouterr().err
    assert told in said
    assert "secret" not in said
    assert not (tmp_path / "store").exists()


def test_other_inputs(dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert upload(dist, tmp_path / "store", "--platform", "windows") == 2
    assert "the wheel is not built for windows" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert upload(tmp_path / "empty", tmp_path / "store") == 2
    assert "does not contain an SDK's selector" in capsys.readouterr().err
    assert upload(dist, tmp_path / "store", "--url", "https://user:secret@h.example/x/") == 0
    page = (tmp_path / "store" / PLACE / "install.md").read_text()
    assert "'gizmo-core @ https://****@h.example/x/123-linux/python/gfx9-all/gizmo_core-2.5-py3-" in page
    assert "--find-links 'https://****@h.example/x/123-linux/python/gfx9-all/at-install/index.html' " in page
    assert "secret" not in page
