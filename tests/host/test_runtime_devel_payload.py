"""Payloads of devel packages that are damaged or were made to do harm: nothing of them is unpacked."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import tarfile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.globs import EXAMPLES, Example, glob_fault, glob_matcher
from axletree_runtime._devel_payload import Member, read_members
from axletree_runtime._devel_plan import glob_matches
from axletree_runtime._sdk import SdkError
from support.devel_sdk import ROOT, expand, snapshot
from support.small_sdk import make_site

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOLDERS = ("_rocm_sdk_core",)


def tar(*members: tuple[str, bytes, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, kind, link in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, link
            archive.addfile(member)
    return buffer.getvalue()


FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
HOSTILE: list[tuple[list[tuple[str, bytes, str]], str]] = [
    ([("/etc/passwd", FILE, "")], "is not a path inside the tree"),
    ([("../rocm_sdk/_cli.py", FILE, "")], "is not a path inside the tree"),
    ([("lib/../../x", FILE, "")], "is not a path inside the tree"),
    ([("lib//x", FILE, "")], "is not a path inside the tree"),
    ([("./x", FILE, "")], "is not a path inside the tree"),
    ([(".", FOLDER, "")], "is not a path inside the tree"),
    ([("..", FOLDER, "")], "is not a path inside the tree"),
    ([("lib\\..\\x", FILE, "")], "has a name that is not allowed on every system"),
    ([("C:x", FILE, "")], "has a name that is not allowed on every system"),
    ([("_devel.json", FILE, "")], "has a name that is reserved for the runtime's own files"),
    (
        [("_devel_members.json", FOLDER, ""), ("_devel_members.json/x", FILE, "")],
        "has a name that is reserved for the runtime's own files",
    ),
    ([("dev", tarfile.CHRTYPE, "")], "is not a file, folder or symbolic link"),
    ([("dev", tarfile.BLKTYPE, "")], "is not a file, folder or symbolic link"),
    ([("pipe", tarfile.FIFOTYPE, "")], "is not a file, folder or symbolic link"),
    ([("x", FILE, ""), ("y", HARD, "x")], "is not a file, folder or symbolic link"),
    ([("x", HARD, "/etc/passwd")], "is not a file, folder or symbolic link"),
    ([("x", LINK, "/etc/passwd")], "which is not a relative path"),
    ([("x", LINK, "")], "which is not a relative path"),
    ([("x", LINK, "../..")], "leads out of the site directory"),
    ([("x", LINK, "../../../etc/passwd")], "leads out of the site directory"),
    ([("x", LINK, "..")], "outside the tree"),
    ([("x", LINK, "../rocm_sdk/_cli.py")], "outside the tree"),
    ([("x", LINK, "../pip")], "outside the tree"),
    ([("x", LINK, "../_rocm_sdk_core")], "outside the tree"),
    ([("x", LINK, "y"), ("y", LINK, "x")], "is part of a loop of links"),
    ([("x", LINK, "x/y")], "is part of a loop of links"),
    ([("a/b", FOLDER, ""), ("up", LINK, "a/b"), ("x", LINK, "up/../../../rocm_sdk/_cli.py")], "outside the tree"),
    ([("a/s", LINK, "../.."), ("x", LINK, "a/s/pip")], "outside the tree"),
    ([("x", FILE, ""), ("x", FILE, "")], "occurs twice"),
    ([("x", FILE, ""), ("x", FOLDER, "")], "occurs twice"),
    ([("x", LINK, "lib"), ("x/y", FILE, "")], "is nested under a link"),
    ([("x/y", FILE, ""), ("x", LINK, "../_rocm_sdk_core/lib")], "is nested under a link"),
    ([("x", FILE, ""), ("x/y", FILE, "")], "is nested under a file"),
]


@pytest.mark.parametrize(("members", "fault"), HOSTILE)
def test_hostile_members_are_refused(tmp_path: Path, members: list[tuple[str, bytes, str]], fault: str) -> None:
    payload = tmp_path / "_devel.tar"
    payload.write_bytes(tar(("include", FOLDER, ""), *members))
    with pytest.raises(SdkError, match=re.escape(fault)) as caught:
        read_members(payload, ROOT, FOLDERS)
    assert "is not safe to unpack" in str(caught.value)


def test_what_belongs_into_a_tree_is_taken(tmp_path: Path) -> None:
    payload = tmp_path / "_devel.tar"
    names = [("lib", FOLDER, ""), ("lib/x.so.1", LINK, "../../_rocm_sdk_core/lib/x.so.1"), ("lib/x.so", LINK, "x.so.1")]
    payload.write_bytes(
        tar(*names, ("llvm", LINK, "lib/llvm"), ("self", LINK, "."), (f"{'é' * 90}/{'n' * 90}", FILE, ""))
    )
    found = read_members(payload, ROOT, FOLDERS)
    assert found[1] == Member("lib/x.so.1", "link", "../../_rocm_sdk_core/lib/x.so.1")
    assert [each.kind for each in found] == ["folder", "link", "link", "link", "link", "file"]


def _truncated(content: bytes) -> bytes:
    return content[: len(content) // 2 // 512 * 512]


def _no_end(content: bytes) -> bytes:
    return content.rstrip(b"\0")[:-1].ljust(512)


def _noise(content: bytes) -> bytes:
    return b"no archive at all" * 100 + content


def _other_kind(content: bytes) -> bytes:
    return gzip.compress(content)


@pytest.mark.parametrize("damage", [_truncated, _no_end, _noise, _other_kind, lambda _: b""])
@pytest.mark.parametrize("name", ["_devel.tar", "_devel.tar.xz"])
def test_a_damaged_payload_leaves_no_tree(tmp_path: Path, damage: Callable[[bytes], bytes], name: str) -> None:
    site = make_site(tmp_path)
    plain = site.folder / "rocm_sdk_devel/_devel.tar"
    content = damage(plain.read_bytes())
    plain.unlink()
    (plain.parent / name).write_bytes(lzma.compress(content)[:-20] if name.endswith("xz") else content)
    before = snapshot(site.folder)
    with pytest.raises(SdkError, match="reinstall its package"):
        expand(site)
    assert snapshot(site.folder) == before


def test_a_compressed_payload_gives_the_same_tree(tmp_path: Path) -> None:
    plain, packed = make_site(tmp_path / "plain"), make_site(tmp_path / "packed")
    payload = packed.folder / "rocm_sdk_devel/_devel.tar"
    (payload.parent / "_devel.tar.xz").write_bytes(lzma.compress(payload.read_bytes()))
    payload.unlink()
    assert snapshot(expand(packed)) == snapshot(expand(plain))


def test_a_payload_that_is_gone_is_told_but_does_not_take_the_tree_with_it(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    root = expand(site)
    (site.folder / "rocm_sdk_devel/_devel.tar").unlink()
    assert expand(site) == root
    done = site.command("repair")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "_devel.tar is missing: reinstall the devel package" in done.stderr


def test_what_the_user_s_mask_forbids_stays_forbidden(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    before = os.umask(0o027)
    try:
        root = expand(site)
    finally:
        os.umask(before)
    assert (root / "include").stat().st_mode & 0o777 == 0o750
    assert (root / "include/hip/hip_runtime.h").stat().st_mode & 0o777 == 0o640
    assert (root / "lib/llvm/bin/clang").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.pattern)
def test_file_patterns_of_the_reference(example: Example) -> None:
    assert [path for path in example.takes if not glob_matches(example.pattern, path)] == []
    assert [path for path in example.leaves if glob_matches(example.pattern, path)] == []


@given(
    glob=st.lists(
        st.sampled_from(["**", "*", "a", "a*", "?", "x.so", "[a]", "[!-a]*", "[[]a]", "b-1?"]), min_size=1, max_size=4
    ),
    path=st.lists(st.sampled_from(["a", "ab", "x.so", "[a]", "b-15", "é"]), min_size=1, max_size=4),
)
def test_globs_mean_what_they_mean_in_the_manifest(glob: list[str], path: list[str]) -> None:
    pattern, name = "/".join(glob), "/".join(path)
    if glob_fault(pattern) is None:
        assert glob_matches(pattern, name) == glob_matcher([pattern])(name)
