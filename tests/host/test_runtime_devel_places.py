"""Devel trees where the site directory is read-only, lies on a union file system, or packages lie elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree_runtime import _devel
from axletree_runtime._sdk import SdkError
from support.devel_sdk import ROOT, expand, loaded, records, snapshot
from support.small_sdk import Site, make_site

if TYPE_CHECKING:
    from collections.abc import Iterator

LOADED = """
import ctypes, os, sys
for name in ("libamd_comgr.so.3", "libhiprand.so.1"):
    package = "core" if "comgr" in name else "libraries"
    one, other = [ctypes.CDLL(os.path.join(sys.argv[1], folder, "lib", name))._handle
                  for folder in (f"_rocm_sdk_{package}", sys.argv[2])]
    print(one == other)
"""
"""Whether libraries are loaded once, though they are asked for in their package and in the devel tree."""


def isolated(script: str, *arguments: str | Path, **variables: str) -> list[str]:
    """Lines that a script prints in a mount namespace of its own."""
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", script, "sh", *map(str, arguments)]
    if shutil.which("unshare") is None or subprocess.run([*command[:4], "true"], check=False).returncode:
        pytest.skip("needs a mount namespace")
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ROCM_SDK")}
    env = {**kept, "PYTHONDONTWRITEBYTECODE": "1", "ROCM_SDK_DISABLE_DETECTION": "1", "PY": sys.executable, **variables}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if "mount: " in done.stderr:
        pytest.skip(f"this host does not let mount: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


READ_ONLY = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; export PYTHONPATH="$1"\n'


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return make_site(tmp_path)


def test_a_read_only_site_gets_its_tree_in_the_user_s_cache(site: Site, tmp_path: Path) -> None:
    before = snapshot(site.folder)
    ask = """
    "$PY" -m rocm_sdk init --quiet; "$PY" -m rocm_sdk path --root
    "$PY" -c 'from rocm_sdk._sdk import find_root, this_sdk; print(find_root(this_sdk())[0])'
    "$PY" -m rocm_sdk repair
    "$PY" -c 'from rocm_sdk import _devel; from rocm_sdk._sdk import this_sdk; s = _devel.state(this_sdk())
print(s.place, s.mode, s.current, s.problems)'
    """
    said = isolated(READ_ONLY + ask, site.folder)
    root = Path(said[0])
    (base,) = (tmp_path / "cache/rocm-sdk").iterdir()
    assert root == base / ROOT
    assert said == [str(root), str(root), "no problems found", "cache symlink True ()"]
    assert snapshot(site.folder) == before
    assert (root / "include/hip/hip_runtime.h").is_file()
    assert (root / "lib/libamdhip64.so").samefile(site.folder / "_rocm_sdk_core/lib/libamdhip64.so.7")
    assert not (root / "bin/hipcc").is_symlink()
    loads = subprocess.run(
        [sys.executable, "-c", LOADED, site.folder, root], capture_output=True, text=True, check=False
    )
    assert (loads.stdout.split(), loads.stderr) == (["True", "True"], "")  # they find what they need from there, too
    # with a tree beside the package that is the one for all, and deinit removes both
    assert _devel.devel_root(loaded(site)) == root == expand(site)
    _devel.deinit(loaded(site))
    assert list((tmp_path / "cache/rocm-sdk").iterdir()) == []
    assert expand(site) == site.folder / ROOT


def test_a_tree_in_the_cache_goes_when_another_version_is_installed(site: Site, tmp_path: Path) -> None:
    init = READ_ONLY + '"$PY" -m rocm_sdk init'
    (first,) = isolated(init, site.folder)
    shutil.rmtree(site.folder)
    make_site(tmp_path, version="7.2.0")
    other = make_site(tmp_path / "other")
    (elsewhere,) = isolated(init, other.folder)
    half = tmp_path / "cache/rocm-sdk/.devel-0123-1/tree"  # a removal that was killed
    half.mkdir(parents=True)
    (second,) = isolated(init, site.folder)
    assert not half.exists()
    roots = {Path(each.removeprefix("devel tree: ")) for each in (elsewhere, second)}
    assert len({first, second, elsewhere}) == 3
    assert set((tmp_path / "cache/rocm-sdk").iterdir()) == {root.parent for root in roots}


def test_packages_that_come_to_a_read_only_site_later_are_in_the_tree(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "devel"])
    path = READ_ONLY + '"$PY" -m rocm_sdk path --root'
    (root,) = isolated(path, site.folder, XDG_CACHE_HOME=str(tmp_path / "cache"))
    make_site(tmp_path, only=["device-gfx942"])
    assert isolated(path, site.folder, XDG_CACHE_HOME=str(tmp_path / "cache")) == [root]
    library = Path(root, "lib/librocsparse.so.1")
    assert library.samefile(site.folder / "_rocm_sdk_device_gfx942/lib/librocsparse.so.1")


def test_a_read_only_site_with_a_tree_needs_no_cache(site: Site, tmp_path: Path) -> None:
    root = expand(site)
    for name in ("_rocm_sdk_core", "_rocm_sdk_libraries"):  # as an image leaves it: other times, other inodes
        about = site.folder / name / "_sdk.json"
        content = about.read_bytes()
        about.unlink()
        about.write_bytes(content)
    path = '"$PY" -m rocm_sdk path --root\n'
    assert isolated(READ_ONLY + path, site.folder) == [str(root)]
    # nor for another link mode: whoever asks gets the one tree
    assert isolated(READ_ONLY + path, site.folder, ROCM_SDK_LINK_MODE="symlink") == [str(root)]
    said = isolated(READ_ONLY + '"$PY" -m rocm_sdk repair 2>&1 || echo "exit code $?"', site.folder)
    assert said == [
        f"rocm-sdk: {root} is read-only for this user: run the repair as the user who installed it",
        "exit code 1",
    ]
    assert not (tmp_path / "cache").exists()


def test_without_a_place_for_a_cache_that_is_said(site: Site, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    script = READ_ONLY + '"$PY" -m rocm_sdk init 2>&1 || echo "exit code $?"'
    said = isolated(script, site.folder)
    assert said[-1] == "exit code 1"
    assert said[0].startswith("rocm-sdk: the devel tree cannot be created: ")
    assert len(said) == 2


LAYERS = """
cd "$1"; mkdir -p up work merged up2 work2 merged2
mount -t overlay overlay -o lowerdir=site,upperdir=up,workdir=work merged
export PYTHONPATH="$1/merged"
"$PY" -m rocm_sdk init $2
"$PY" -c "$3" "$1/merged" _rocm_sdk_devel
umount merged
mount -t overlay overlay -o lowerdir=up:site,upperdir=up2,workdir=work2 merged2
"$PY" -c "$3" "$1/merged2" _rocm_sdk_devel
PYTHONPATH="$1/merged2" "$PY" -m rocm_sdk path --root
find up2 -type f
"""
"""Installed in one layer of an image, expanded in the next, used in a container of it."""


def test_report_1_expanded_in_another_layer_libraries_are_loaded_once(tmp_path: Path) -> None:
    make_site(tmp_path, site=tmp_path / "site")
    said = isolated(LAYERS, tmp_path, "", LOADED)
    root = tmp_path / "merged2" / ROOT
    assert said == [f"devel tree: {tmp_path}/merged/{ROOT}", *["True"] * 4, str(root)]  # and nothing was written then
    tree = tmp_path / "up" / ROOT
    assert (tree / "lib/libamd_comgr.so.3").readlink() == Path("../../_rocm_sdk_core/lib/libamd_comgr.so.3")
    assert not list((tmp_path / "up").glob("_rocm_sdk_core/**/*.so*"))  # no file was copied into the second layer


def test_report_1_hard_links_in_layers_are_told_by_doctor(tmp_path: Path) -> None:
    make_site(tmp_path, site=tmp_path / "site")
    script = """
    cd "$1"; mkdir -p up work merged
    mount -t overlay overlay -o lowerdir=site,upperdir=up,workdir=work merged
    export PYTHONPATH="$1/merged"
    "$PY" -m rocm_sdk init --link-mode hardlink --quiet
    "$PY" -c 'from rocm_sdk import _devel; from rocm_sdk._sdk import this_sdk; print(_devel.state(this_sdk()).problems)'
    """
    (said,) = isolated(script, tmp_path)
    assert "has hard links on overlayfs, which turns them into copies: run rocm-sdk init --link-mode symlink" in said


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder on another file system."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs /dev/shm on a file system of its own")
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        yield Path(folder)


def test_a_package_on_another_file_system_is_linked_symbolically(site: Site, elsewhere: Path) -> None:
    core = site.folder / "_rocm_sdk_core"
    shutil.move(core, elsewhere / "core")
    core.symlink_to(elsewhere / "core")
    with pytest.raises(
        SdkError, match=r"link mode hardlink does not work here: .*\(use `auto` to select a mode that works\)"
    ):
        expand(site, link_mode="hardlink")
    root = expand(site)
    assert _devel.state(loaded(site)).mode == "symlink"
    assert (root / "lib/libamdhip64.so").samefile(elsewhere / "core/lib/libamdhip64.so.7")
    assert _devel.devel_root(loaded(site)) == root
    copied = expand(site, link_mode="copy")
    assert copied == root
    assert not (root / "lib/libamdhip64.so").samefile(elsewhere / "core/lib/libamdhip64.so.7")
    assert ROOT in records(site.folder)


def test_files_that_are_links_into_an_installer_s_cache_are_found(site: Site, tmp_path: Path) -> None:
    """As ``uv pip install --link-mode symlink`` leaves a site directory."""
    stored = tmp_path / "stored"
    for folder in [path for path in site.folder.iterdir() if path.is_dir()]:
        for path in [each for each in folder.rglob("*") if each.is_file() and each.name != "__init__.py"]:
            target = stored / path.relative_to(site.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            path.symlink_to(target)
    before = snapshot(stored)
    root = expand(site)
    assert (root / "lib/libamdhip64.so").samefile(stored / "_rocm_sdk_core/lib/libamdhip64.so.7")
    assert not (root / "bin/hipcc").is_symlink()
    assert ROOT in records(site.folder)
    assert snapshot(stored) == before  # RECORD in the cache was not touched
    _devel.deinit(loaded(site))
    assert snapshot(stored) == before
