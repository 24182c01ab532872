"""The devel tree of an installed SDK: made, changed with what is installed, repaired, removed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree_runtime import _devel, _sdk
from support.devel_sdk import ROOT, expand, loaded, records, snapshot
from support.small_sdk import Site, interpreter, make_site, pip_hint

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [each for each in os.environ if each.startswith("ROCM_SDK")]:
        monkeypatch.delenv(name)
    return make_site(tmp_path)


def is_same(one: Path, other: Path) -> bool:
    return one.samefile(other)


def names_beside(site: Site) -> list[str]:
    return sorted(path.name for path in site.folder.iterdir() if path.name.startswith(ROOT))


def test_the_tree_holds_its_own_files_and_those_of_all_packages(site: Site) -> None:
    root = expand(site)
    assert root == site.folder / ROOT
    assert (root / "include/hip/hip_runtime.h").read_text() == "#pragma once\n"
    assert os.access(root / "lib/llvm/bin/clang", os.X_OK)
    for package in ("core", "libraries"):
        folder = site.folder / f"_rocm_sdk_{package}"
        files = [path for path in folder.rglob("*") if path.is_file() and path.parent != folder]
        assert files
        for path in files:
            assert is_same(path, root / path.relative_to(folder))
    assert is_same(root / "lib/librocsparse.so.1", site.folder / "_rocm_sdk_libraries_gfx94x/lib/librocsparse.so.1")
    done = site.python(f"import {ROOT} as found; print(found.__file__)")
    assert done.stdout == f"{root}/__init__.py\n"


def test_it_is_done_once(site: Site) -> None:
    root = expand(site)
    before = {path: path.lstat() for path in [root, *root.rglob("*")]}
    row, times = records(site.folder), (site.folder / "rocm_sdk_devel").stat().st_mtime_ns
    for _ in range(2):
        assert expand(site) == root == _devel.devel_root(loaded(site))
    assert {path: path.lstat() for path in [root, *root.rglob("*")]} == before
    assert (records(site.folder), (site.folder / "rocm_sdk_devel").stat().st_mtime_ns) == (row, times)
    assert names_beside(site) == [ROOT]


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_it_works_on_every_python(site: Site, version: str) -> None:
    done = site.command("init", python=interpreter(version))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"devel tree: {site.folder / ROOT}\n", "")
    for command in ("repair", "deinit"):
        assert site.command(command, python=interpreter(version)).returncode == 0
    assert names_beside(site) == []


def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core"])
    sdk = loaded(site)
    for action in (_devel.expand, _devel.repair):
        with pytest.raises(ModuleNotFoundError, match=re.escape(pip_hint("'rocm[devel]==7.1.0'"))):
            action(sdk)
    assert _devel.devel_root(sdk) is None
    assert _devel.deinit(sdk) == ()
    assert _devel.state(sdk) == _devel.state(sdk).__class__(installed=False, root=None, current=False)


def test_fault_a_four_at_once_all_succeed(site: Site) -> None:
    command = [sys.executable, "-m", "rocm_sdk", "init"]
    variables = {**os.environ, "PYTHONPATH": str(site.folder), "PYTHONDONTWRITEBYTECODE": "1"}
    running = [
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    said = [each.communicate() for each in running]
    assert [each.returncode for each in running] == [0] * 4, said
    assert {out for out, _ in said} == {f"devel tree: {site.folder / ROOT}\n"}
    assert records(site.folder).count(ROOT) == 1
    assert names_beside(site) == [ROOT]
    assert _devel.repair(loaded(site)) == ()


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_fault_n_all_names_of_a_file_follow_one_rule(tmp_path: Path, mode: str) -> None:
    """A further name is the same file: in symlink mode by a link, else as a hard link, whatever the archive's order."""
    site = make_site(tmp_path)
    root = expand(site, link_mode=mode)
    core = site.folder / "_rocm_sdk_core/lib"
    alias, soname = root / "lib/libamdhip64.so", root / "lib/libamdhip64.so.7"
    assert is_same(alias, soname)
    assert alias.is_symlink() == (mode == "symlink") == soname.is_symlink()
    assert is_same(soname, core / "libamdhip64.so.7") == (mode != "copy")
    assert soname.read_bytes() == (core / "libamdhip64.so.7").read_bytes()
    assert (root / "llvm").readlink() == Path("lib/llvm")
    assert _devel.state(loaded(site)).mode == mode


def test_links_that_the_sdk_names_stay_symbolic(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    about = site.folder / "rocm_sdk_devel/_sdk.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "links": ["bin/amd*"]}))
    root = expand(site)
    assert (root / "bin/amdclang").readlink() == Path("../llvm/bin/clang")
    assert not (root / "lib/libamdhip64.so").is_symlink()
    assert subprocess.run([root / "bin/amdclang"], capture_output=True, check=True).stdout


def test_the_link_mode_of_a_tree_can_be_changed(site: Site) -> None:
    root = expand(site)
    first = snapshot(root)
    soname = root / "lib/libamdhip64.so.7"
    for mode in ("symlink", "copy", "hardlink"):
        assert expand(site, link_mode=mode) == root
        assert _devel.state(loaded(site)).mode == mode
        assert soname.is_symlink() == (mode == "symlink")
        expand(site)  # without one it stays as it is
        assert _devel.state(loaded(site)).mode == mode
        assert _devel.repair(loaded(site)) == ()
    assert snapshot(root) == first
    done = site.command("init", env={"ROCM_SDK_LINK_MODE": "copy"})
    assert done.returncode == 0
    assert not is_same(soname, site.folder / "_rocm_sdk_core/lib/libamdhip64.so.7")


def test_programs_lie_in_the_tree_itself_where_libraries_are_links(site: Site) -> None:
    root = expand(site, link_mode="symlink")
    assert (root / "lib/libamdhip64.so.7").is_symlink()
    assert not (root / "bin/hipcc").is_symlink()  # it looks for headers from where it really lies
    assert os.access(root / "bin/hipcc", os.X_OK)


def test_a_link_mode_that_there_is_not_is_refused(site: Site) -> None:
    with pytest.raises(ValueError, match="link mode 'magic' is not one of auto, hardlink, symlink, copy, reflink"):
        expand(site, link_mode="magic")
    done = site.command("init", env={"ROCM_SDK_LINK_MODE": "magic"})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert names_beside(site) == []


def test_a_link_mode_that_does_not_work_here_says_so(site: Site) -> None:
    done = site.command("init", "--link-mode", "reflink")
    if done.returncode == 0:  # Btrfs, XFS
        assert not is_same(site.folder / ROOT / "bin/hipcc", site.folder / "_rocm_sdk_core/bin/hipcc")
        return
    assert done.stderr.startswith("rocm-sdk: link mode reflink does not work here: ")
    assert done.stderr.endswith("(use `auto` to select a mode that works)\n")
    assert names_beside(site) == []
    assert ROOT not in records(site.folder)


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_packages_for_gpus_that_come_and_go_are_reconciled(tmp_path: Path, mode: str) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "devel"], devel_files={"lib/extra.h": b"x"})
    root = expand(site, link_mode=mode)
    first = snapshot(root)
    assert "lib/librocsparse.so.1" not in first
    mine = root / "lib/made by a tool"
    mine.write_text("mine")
    make_site(tmp_path, only=["device-gfx1100"])
    assert _devel.devel_root(loaded(site)) is None
    assert expand(site) == root == _devel.devel_root(loaded(site))
    library = root / "lib/librocsparse.so.1"
    assert library.read_bytes() == (site.folder / "_rocm_sdk_device_gfx1100/lib/librocsparse.so.1").read_bytes()
    make_site(tmp_path, only=["libraries-gfx94x"])  # goes before a single target's, and before another family's
    expand(site)
    family = site.folder / "_rocm_sdk_libraries_gfx94x/lib/librocsparse.so.1"
    assert library.read_bytes() == family.read_bytes()
    assert is_same(library, family) == (mode != "copy")
    site.remove("rocm-sdk-libraries-gfx94x", "rocm-sdk-device-gfx1100")
    assert expand(site) == root
    assert mine.read_text() == "mine"
    mine.unlink()
    assert snapshot(root) == first


def test_names_of_libraries_that_only_packages_for_gpus_have_come_with_those(tmp_path: Path) -> None:
    from support.small_sdk import _DEVEL_LINKS

    name = "lib/librocsparse.so"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(_DEVEL_LINKS, name, "librocsparse.so.1")
        site = make_site(tmp_path, only=["core", "libraries", "devel"])
    root = expand(site)
    assert not os.path.lexists(root / name)  # no link that leads nowhere
    make_site(tmp_path, only=["device-gfx1100"])
    expand(site)
    assert is_same(root / name, root / "lib/librocsparse.so.1")


def test_the_family_that_counts_does_not_depend_on_the_host(site: Site) -> None:
    for named in ("gfx110x", "gfx942"):
        done = site.command("init", env={"ROCM_SDK_TARGET_FAMILY": named, "ROCM_SDK_DISABLE_DETECTION": "0"})
        assert done.returncode == 0
        family = site.folder / "_rocm_sdk_libraries_gfx94x/lib/librocsparse.so.1"
        assert is_same(site.folder / ROOT / "lib/librocsparse.so.1", family)
        assert site.command("deinit").returncode == 0


def test_packages_for_gpus_of_another_version_are_left_out_and_told(tmp_path: Path) -> None:
    site = make_site(
        tmp_path, versions={"device-gfx1100": "7.0.0"}, only=["core", "libraries", "devel", "device-gfx1100"]
    )
    done = site.command("init")
    assert (
        done.stderr == "rocm-sdk: rocm-sdk-device-gfx1100 7.0.0 is left out because rocm-sdk-devel has version 7.1.0\n"
    )
    assert not (site.folder / ROOT / "lib/librocsparse.so.1").exists()
    assert site.command("init", "--quiet").stderr == ""


def test_other_packages_of_another_version_are_refused(tmp_path: Path) -> None:
    site = make_site(tmp_path, versions={"core": "7.0.0"})
    with pytest.raises(
        _sdk.SdkError, match=r"rocm-sdk-core has version 7\.0\.0, but rocm-sdk-devel has version 7\.1\.0: PIP_CONFIG"
    ):
        expand(site)
    assert not os.path.lexists(site.folder / ROOT)
    post = make_site(tmp_path / "post", versions={"core": "7.1.0.post1"})
    assert expand(post).is_dir()


def test_a_package_that_is_missing_is_told_and_its_files_come_with_it(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "devel"])
    done = site.command("init")
    assert done.returncode == 0
    said = "rocm-sdk: rocm-sdk-libraries is missing, so 3 of its files are left out"
    assert done.stderr == f"{said}: " + pip_hint("'rocm[libraries]==7.1.0'") + "\n"
    make_site(tmp_path, only=["libraries"])
    assert is_same(expand(site) / "lib/libhiprand.so.1", site.folder / "_rocm_sdk_libraries/lib/libhiprand.so.1")


def test_report_15_a_file_that_its_package_lacks_is_an_error_before_anything_is_made(site: Site) -> None:
    (site.folder / "_rocm_sdk_core/lib/libroctx64.so.4").unlink()
    with pytest.raises(
        _sdk.SdkError, match=r"missing from the devel tree: .*/libroctx64\.so\.4; reinstall the package"
    ):
        expand(site)
    assert not os.path.lexists(site.folder / ROOT)


@pytest.mark.parametrize("mode", ["hardlink", "copy"])
def test_a_package_that_was_installed_again_is_linked_again(tmp_path: Path, mode: str) -> None:
    site = make_site(tmp_path)
    root = expand(site, link_mode=mode)
    compiler = site.folder / "_rocm_sdk_core/bin/hipcc"
    written = compiler.stat().st_mtime_ns
    site.remove("rocm-sdk-core")
    make_site(tmp_path, only=["core"])
    os.utime(compiler, ns=(written, written))  # a copy is compared by size and second, in which this may come twice
    library = site.folder / "_rocm_sdk_core/lib/libamdhip64.so.7"
    with library.open("ab") as file:
        file.write(b"changed")
    assert _devel.devel_root(loaded(site)) is None  # and so programs are started from the core's own folder
    first = {"hardlink": "bin/hipcc", "copy": "lib/libamdhip64.so.7"}[mode]
    assert f"differs from the installed packages at {first}" in _devel.state(loaded(site)).problems[0]
    assert expand(site) == root
    assert (root / "lib/libamdhip64.so").read_bytes() == library.read_bytes()
    assert is_same(root / "lib/libamdhip64.so", library) == (mode == "hardlink")
    assert _devel.state(loaded(site)).problems == ()


def test_another_version_of_the_devel_package_replaces_the_tree_and_keeps_what_others_made(tmp_path: Path) -> None:
    site = make_site(tmp_path, devel_files={"include/old.h": b"old"})
    root = expand(site)
    (root / "mine/deep").mkdir(parents=True)
    (root / "mine/deep/notes").write_text("mine")
    (root / "__pycache__").mkdir()
    (root / "__pycache__/x.pyc").write_text("")
    shutil.rmtree(site.folder / "rocm_sdk_devel")  # by a tool that passes over folders in RECORD
    shutil.rmtree(next(site.folder.glob("rocm_sdk_devel-*")))
    new = make_site(tmp_path, version="7.2.0")
    assert _devel.devel_root(loaded(new)) is None
    done = new.command("init", "--quiet")
    assert done.returncode == 0
    assert not (root / "include/old.h").exists()
    saved = site.folder / f"{ROOT}.saved"
    assert done.stderr == f"rocm-sdk: {root}/mine/deep/notes is not part of the SDK: moved to {saved}/mine/deep/notes\n"
    assert snapshot(saved) == {"mine": None, "mine/deep": None, "mine/deep/notes": b"mine"}
    assert _devel.state(loaded(new)).leftovers == (saved,)


@pytest.mark.parametrize("what", ["folder", "file", "link"])
def test_what_others_put_in_the_place_of_the_tree_is_moved_aside(site: Site, tmp_path: Path, what: str) -> None:
    root = site.folder / ROOT
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/notes").write_text("mine")
    if what == "folder":
        shutil.copytree(tmp_path / "theirs", root)
    elif what == "file":
        root.write_text("mine")
    else:
        root.symlink_to(tmp_path / "theirs")
    if what == "folder":
        assert any("is not a devel tree of this SDK" in text for text in _devel.state(loaded(site)).problems)
    done = site.command("init", "--quiet")
    saved = site.folder / f"{ROOT}.saved"
    assert done.stderr == f"rocm-sdk: {root} is not part of the SDK: moved to {saved}\n"
    assert (saved if what == "file" else saved / "notes").read_text() == "mine"
    assert not root.is_symlink()
    assert (root / "include/hip/hip_runtime.h").is_file()


def test_empty_folders_in_its_place_are_nobody_s(site: Site) -> None:
    (site.folder / ROOT / "__pycache__").mkdir(parents=True)
    expand(site)
    assert names_beside(site) == [ROOT]


def test_files_that_others_made_stay_where_they_are_while_the_tree_changes(tmp_path: Path) -> None:
    site = make_site(tmp_path, only=["core", "libraries", "devel"])
    root = expand(site)
    (root / "lib/librocsparse.so.1").write_text("my own")
    make_site(tmp_path, only=["device-gfx942"])
    done = site.command("init", "--quiet")
    saved = site.folder / f"{ROOT}.saved/lib/librocsparse.so.1"
    assert done.stderr == f"rocm-sdk: {root}/lib/librocsparse.so.1 is not part of the SDK: moved to {saved}\n"
    assert saved.read_text() == "my own"
    assert is_same(root / "lib/librocsparse.so.1", site.folder / "_rocm_sdk_device_gfx942/lib/librocsparse.so.1")


def _delete(root: Path) -> None:
    (root / "include/hip/hip_runtime.h").unlink()
    shutil.rmtree(root / "lib/cmake")


def _edit_own(root: Path) -> None:
    (root / "include/hip/hip_runtime.h").write_text("#pragma mine\n")


def _same_size(root: Path) -> None:
    place = root / "include/hip/hip_runtime.h"
    facts = place.stat()
    place.write_text("#pragma nono\n")  # as many bytes, and the time as before
    os.utime(place, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _copies(root: Path) -> None:
    for path in [each for each in (root / "lib").iterdir() if each.is_file()]:
        content, facts = path.read_bytes(), path.stat()
        path.unlink()
        path.write_bytes(content)
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def _link_instead(root: Path) -> None:
    (root / "lib").rename(root / "lib2")
    (root / "lib").symlink_to("lib2")


def _no_mark(root: Path) -> None:
    (root / "_devel.json").unlink()


def _no_list(root: Path) -> None:
    (root / "_devel_members.json").write_text("{")


def _folder_instead(root: Path) -> None:
    (root / "include/hip/hip_runtime.h").unlink()
    (root / "include/hip/hip_runtime.h").mkdir()
    (root / "llvm").unlink()
    (root / "llvm").mkdir()


def _no_rows(root: Path) -> None:
    (record,) = root.parent.glob("rocm_sdk_devel-*.dist-info/RECORD")
    record.write_text("".join(line for line in record.read_text().splitlines(keepends=True) if ROOT not in line))


@pytest.mark.parametrize(
    "damage", [_delete, _edit_own, _same_size, _copies, _link_instead, _no_mark, _no_list, _folder_instead, _no_rows]
)
def test_repair_makes_it_whole_whatever_was_done(site: Site, damage: Callable[[Path], None]) -> None:
    root = expand(site)
    before, record = snapshot(root), records(site.folder)
    damage(root)
    state = _devel.state(loaded(site))
    assert bool(state.problems) == (damage is not _same_size)
    _devel.repair(loaded(site))
    after = {path: what for path, what in snapshot(root).items() if not path.startswith("lib2")}
    assert after == before
    assert is_same(root / "lib/libamdhip64.so", site.folder / "_rocm_sdk_core/lib/libamdhip64.so.7")
    assert records(site.folder) == record
    assert _devel.repair(loaded(site)) == ()
    assert _devel.devel_root(loaded(site)) == root
    if damage is _edit_own:  # unlike one that can't be told from what was there
        saved = site.folder / f"{ROOT}.saved/include/hip/hip_runtime.h"
        assert saved.read_text() == "#pragma mine\n"


def test_deinit_leaves_what_was_there_before(site: Site) -> None:
    before = snapshot(site.folder)
    record = records(site.folder)
    root = expand(site)
    assert records(site.folder) == f"{record}{ROOT},,\n"
    (root / "made by a tool").write_text("")
    done = site.command("deinit")
    assert (done.returncode, done.stderr) == (
        0,
        "rocm-sdk: also removing files that do not belong to the SDK: made by a tool\n",
    )
    assert snapshot(site.folder) == before
    assert site.command("deinit").returncode == 0


def test_deinit_after_one_that_was_killed_under_the_same_process_number(site: Site) -> None:
    """In a container each one may be the first process."""
    before = snapshot(site.folder)
    root = expand(site)
    left = root.with_name(f"{ROOT}.tmp") / f"gone-{os.getpid()}"
    left.mkdir(parents=True)
    (left / "half").touch()
    assert _devel.deinit(loaded(site))
    assert snapshot(site.folder) == before


def test_deinit_does_not_touch_what_is_no_tree(site: Site) -> None:
    (site.folder / ROOT).mkdir()
    (site.folder / ROOT / "notes").write_text("mine")
    with pytest.raises(_sdk.SdkError, match="is not a devel tree of this SDK: remove it manually"):
        _devel.deinit(loaded(site))
    assert (site.folder / ROOT / "notes").read_text() == "mine"


def test_deinit_works_after_the_package_is_gone(site: Site) -> None:
    expand(site)
    shutil.rmtree(site.folder / "rocm_sdk_devel")
    shutil.rmtree(next(site.folder.glob("rocm_sdk_devel-*")))
    state = _devel.state(loaded(site))
    assert (state.installed, state.leftovers) == (False, (site.folder / ROOT,))
    assert "run rocm-sdk deinit to remove it" in state.problems[0]
    assert _devel.deinit(loaded(site)) == (f"removed {site.folder / ROOT}",)
    assert names_beside(site) == []


def test_record_keeps_its_rows_and_line_ends(site: Site) -> None:
    (record,) = site.folder.glob("rocm_sdk_devel-*.dist-info/RECORD")
    odd = record.read_bytes() + b'"with, comma",sha256=x,1'  # and no line end
    record.write_bytes(odd.replace(b"\n", b"\r\n"))
    record.chmod(0o640)
    expand(site)
    assert record.read_bytes() == odd.replace(b"\n", b"\r\n") + b"\r\n" + f"{ROOT},,\r\n".encode()
    assert record.stat().st_mode & 0o777 == 0o640
    _devel.deinit(loaded(site))
    assert record.read_bytes() == odd.replace(b"\n", b"\r\n") + b"\r\n"


def test_without_record_the_tree_is_made_and_that_is_told(site: Site) -> None:
    (record,) = site.folder.glob("rocm_sdk_devel-*.dist-info/RECORD")
    record.unlink()
    done = site.command("init")
    assert done.returncode == 0
    assert done.stderr == "rocm-sdk: rocm-sdk-devel has no RECORD: run rocm-sdk deinit to remove the tree\n"
    assert not _devel.state(loaded(site)).recorded
    _devel.deinit(loaded(site))
    assert names_beside(site) == []


def test_report_2_long_paths_are_no_matter(tmp_path: Path) -> None:
    """A file's own path fits, but with the way up to the other package in it it would be longer than allowed."""
    deep = "/".join(["d" * 100] * 28)
    site = make_site(tmp_path, only=["core", "libraries", "devel", "device-gfx942"], devel_files={f"{deep}/x.h": b"x"})
    own = site.folder / "_rocm_sdk_device_gfx942" / deep
    own.mkdir(parents=True)
    (own / "kernel.co").write_text("code")
    assert len(str(site.folder)) + 2 * len(deep) > 4096
    for mode in ("hardlink", "symlink"):
        root = expand(site, link_mode=mode)
        assert is_same(root / deep / "kernel.co", own / "kernel.co")
        assert (root / deep / "x.h").read_text() == "x"


def test_report_14_without_symbolic_links_the_tree_is_whole_at_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(1314, "A required privilege is not held by the client")

    monkeypatch.setattr(os, "symlink", refuse)
    monkeypatch.setattr(Path, "symlink_to", refuse)
    root = expand(site)
    assert not any(path.is_symlink() for path in root.rglob("*"))
    assert is_same(root / "llvm/bin/clang", root / "lib/llvm/bin/clang")
    assert is_same(root / "bin/amdclang", root / "lib/llvm/bin/clang")
    assert _devel.devel_root(loaded(site)) == root
    assert _devel.repair(loaded(site)) == ()
    with pytest.raises(_sdk.SdkError, match=r"link mode symlink does not work here: .*privilege"):
        expand(site, link_mode="symlink")


def test_a_failure_half_way_leaves_nothing_that_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    link, calls = os.link, []

    def fail(*words: object, **options: object) -> None:
        calls.append(words)
        if len(calls) == 12:
            raise OSError(28, "No space left on device", str(words[0]))
        link(*words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(_sdk.SdkError, match=r"the devel tree cannot be created: .*: No space left on device"):
        expand(site)
    assert _devel.devel_root(loaded(site)) is None
    assert names_beside(site) == []
    assert ROOT not in records(site.folder)
    monkeypatch.undo()
    expand(site)
    assert names_beside(site) == [ROOT]


def test_room_is_looked_for_before_anything_is_made(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(site.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1 << 20))
    with pytest.raises(_sdk.SdkError, match=r"only 1 MB are free in .*, but the devel tree needs 33 MB"):
        expand(site)
    assert not os.path.lexists(site.folder / ROOT)


def test_a_file_that_can_only_be_written_in_part_is_a_failure(tmp_path: Path) -> None:
    """What a full disk or a quota does: the system takes the beginning of a large piece and refuses the rest."""
    site = make_site(tmp_path, devel_files={"share/large.bin": bytes(range(256)) * 2000})
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
        "from rocm_sdk.__main__ import main\n"
        "sys.argv[1:] = ['init', '--link-mode', 'symlink']\n"
        "sys.exit(main())\n"
    )
    done = site.python(code)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the devel tree cannot be created" in done.stderr
    assert "File too large" in done.stderr
    assert not os.path.lexists(site.folder / ROOT)
    assert site.command("init").returncode == 0
    assert (site.folder / ROOT / "share/large.bin").stat().st_size == 512_000
