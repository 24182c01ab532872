"""TheRock's artifacts as folders and archives: read, refused, laid out, and read back as the same."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.host.sdk.artifacts import read_artifacts, read_stages
from axletree.host.sdk.layout import lay_out
from axletree.package.sdk.descriptor import parse_descriptor
from axletree.package.sdk.entries import SdkEntry
from support.artifacts import BASE, archive_artifact, content_of, hostile_archive, make_artifact, special

if TYPE_CHECKING:
    from pathlib import Path

FILES: dict[str, bytes | str] = {
    "lib/libx.so.1.2": b"\x7fELF" * 1000,
    "lib/libx.so.1": "libx.so.1.2",
    "lib/libx.so": "libx.so.1",
    "bin/tool": b"#!/bin/sh\n",
    "share/\u00e4/" + "n" * 120: b"long name",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "artifacts"
    root = make_artifact(folder, "core-hip_lib_generic", FILES)
    (root / BASE / "bin/tool").chmod(0o755)
    (root / BASE / "empty").mkdir()
    make_artifact(folder, "rand_lib_gfx900", {"lib/librand.so": b"900"})
    make_artifact(folder, "rand_dev_generic", {"include/rand.h": b"//"}, bases=("rand/stage", "not/there"))
    (folder / "no_manifest").mkdir()
    (folder / "index.html").write_text("<html>")
    return folder


def refused(folder: Path, tmp_path: Path) -> str:
    cache = tmp_path / "cache"
    with pytest.raises(IntegrityError) as caught:
        read_artifacts(folder, cache=cache)
    left = [] if not cache.exists() else [place for place in cache.iterdir() if place.is_dir()]
    assert left == []
    return str(caught.value)


def test_folders_are_read(tree: Path, tmp_path: Path) -> None:
    entries = read_artifacts(tree, cache=tmp_path / "cache")
    assert [entry.path for entry in entries] == sorted([*FILES, "empty", "include/rand.h", "lib/librand.so"])
    by = {entry.path: entry for entry in entries}
    assert (by["bin/tool"].executable, by["lib/libx.so.1.2"].executable) == (True, False)
    assert by["lib/libx.so"] == SdkEntry(
        path="lib/libx.so", kind="link", artifact="core-hip", component="lib", link="libx.so.1"
    )
    assert by["empty"].kind == "folder"
    assert (by["lib/librand.so"].target, by["include/rand.h"].component) == ("gfx900", "dev")


@pytest.mark.parametrize(
    ("suffix", "compressor"), [("zst", ("zstd", "-q", "-3")), ("zst", ("zstd", "-q", "-19")), ("xz", ("xz", "-6"))]
)
def test_archives_are_the_same_as_folders(tree: Path, tmp_path: Path, suffix: str, compressor: tuple[str, ...]) -> None:
    expected = content_of(read_artifacts(tree, cache=tmp_path / "cache"))
    packed = tmp_path / "packed"
    packed.mkdir()
    for name in ("core-hip_lib_generic", "rand_lib_gfx900", "rand_dev_generic"):
        archive_artifact(tree / name, suffix=suffix, compressor=compressor).rename(packed / f"{name}.tar.{suffix}")
    assert content_of(read_artifacts(packed, cache=tmp_path / "cache", threads=2)) == expected
    entries = read_artifacts(packed, cache=tmp_path / "cache")
    assert not any(os.access(entry.source, os.W_OK) for entry in entries if entry.kind == "file" and os.geteuid())
    # Unpacked once; what somebody spoilt is unpacked again.
    spoilt = next(entry for entry in entries if entry.path == "include/rand.h")
    os.truncate(spoilt.source, 0)
    assert content_of(read_artifacts(packed, cache=tmp_path / "cache")) == expected


def test_archives_in_several_frames_and_streams(tree: Path, tmp_path: Path) -> None:
    root = tree / "core-hip_lib_generic"
    expected = content_of([e for e in read_artifacts(tree, cache=tmp_path / "c") if e.artifact == "core-hip"])
    tar = subprocess.run(["zstd", "-dqc", archive_artifact(root)], check=True, capture_output=True).stdout
    for tool, suffix, gap in (("zstd", "zst", b""), ("xz", "xz", bytes(8))):
        parts = [
            subprocess.run([tool, "-c"], input=part, check=True, capture_output=True).stdout
            for part in (tar[:700], tar[700:])
        ]
        folder = tmp_path / suffix
        folder.mkdir()
        (folder / f"core-hip_lib_generic.tar.{suffix}").write_bytes(gap.join(parts))
        assert content_of(read_artifacts(folder, cache=tmp_path / "c")) == expected


def test_what_a_killed_process_left_is_cleared_and_several_may_unpack_at_once(tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    archive = archive_artifact(tree / "core-hip_lib_generic").rename(folder / "core-hip_lib_generic.tar.zst")
    kept = tmp_path / "cache" / hashlib.sha256(archive.read_bytes()).hexdigest()
    owner = kept.with_name(".another.0123456789abcdef.axletree-part")  # of an archive that nobody wants any more
    half = owner.with_name(f"{owner.name}.d") / "content" / "half"
    half.parent.mkdir(parents=True)
    owner.touch()
    half.write_bytes(b"half")
    (kept / "content").mkdir(parents=True)  # renamed, but never brought to the disk
    with ThreadPoolExecutor(max_workers=4) as pool:
        reads = [pool.submit(read_artifacts, folder, cache=tmp_path / "cache") for _ in range(4)]
    first, *others = [content_of(read.result()) for read in reads]
    assert sorted(first) == sorted([*FILES, "empty"])
    assert others == [first] * 3
    assert not [path for path in kept.parent.iterdir() if path.name.startswith(".")]


def test_hard_links_in_archives_are_files(tmp_path: Path) -> None:
    root = make_artifact(tmp_path / "a", "base_run_generic", {"bin/one": b"same"})
    os.link(root / BASE / "bin/one", root / BASE / "bin/two")
    packed = archive_artifact(root)
    packed = packed.rename(tmp_path / packed.name)
    listing = subprocess.run(["tar", "--zstd", "-tvf", packed], check=True, capture_output=True, text=True).stdout
    assert " link to " in listing
    (tmp_path / "only").mkdir()
    packed.rename(tmp_path / "only" / packed.name)
    entries = read_artifacts(tmp_path / "only", cache=tmp_path / "cache")
    assert [(entry.path, entry.kind, entry.size) for entry in entries] == [
        ("bin/one", "file", 4),
        ("bin/two", "file", 4),
    ]


def test_only_the_targets_that_are_wanted(tree: Path, tmp_path: Path) -> None:
    make_artifact(tree, "rand_lib_gfx90a:xnack+", {"lib/librand.so": b"90a"})
    both = {e.target: e.size for e in read_artifacts(tree, cache=tmp_path) if e.path == "lib/librand.so"}
    assert both.keys() == {"gfx900", "gfx90a:xnack+"}
    make_artifact(tree, "rand_lib_gfx90a", {"lib/librand.so": b"other"})
    with pytest.raises(IntegrityError, match="in both rand_lib_gfx90a and rand_lib_gfx90a:xnack\\+"):
        read_artifacts(tree, cache=tmp_path)
    shutil.rmtree(tree / "rand_lib_gfx90a")
    paths = {e.target for e in read_artifacts(tree, cache=tmp_path, targets={"gfx90a"})}
    assert paths == {"generic", "gfx90a:xnack+"}
    assert {e.target for e in read_artifacts(tree, cache=tmp_path, targets=())} == {"generic"}
    with pytest.raises(
        IntegrityError,
        match=r"no artifacts for gfx942\n  hint: choose a GPU that the folder has artifacts for: gfx900, gfx90a",
    ):
        read_artifacts(tree, cache=tmp_path, targets={"gfx942", "gfx900"})


def test_the_folder_counts_where_there_is_an_archive_as_well(tree: Path, tmp_path: Path) -> None:
    archive = archive_artifact(tree / "rand_lib_gfx900")
    archive.write_bytes(b"never read")
    notes: list[str] = []
    read_artifacts(tree, cache=tmp_path, note=notes.append)
    assert notes == ["rand_lib_gfx900 occurs more than once; using rand_lib_gfx900"]


def test_the_same_content_twice_is_noted(tree: Path, tmp_path: Path) -> None:
    make_artifact(tree, "base_lib_generic", {"lib/libx.so.1.2": FILES["lib/libx.so.1.2"]})
    notes: list[str] = []
    entries = read_artifacts(tree, cache=tmp_path, note=notes.append)
    assert next(entry for entry in entries if entry.path == "lib/libx.so.1.2").artifact == "base"
    paths = "base_lib_generic and core-hip_lib_generic both contain lib/libx.so.1.2"
    assert notes == [f"{paths}, with the same content; one copy is used"]


def test_checksums_beside_archives(tree: Path, tmp_path: Path) -> None:
    archive = archive_artifact(tree / "rand_lib_gfx900")
    folder = tmp_path / "only"
    folder.mkdir()
    archive = archive.rename(folder / archive.name)
    side = folder / f"{archive.name}.sha256sum"
    good = hashlib.sha256(archive.read_bytes()).hexdigest()
    for text in (f"{good}  {archive.name}\n", f"{good} *./{archive.name}\n", good.upper()):
        side.write_text(text)
        assert len(read_artifacts(folder, cache=tmp_path / "cache")) == 1
    side.write_text("0" * 64)
    assert f"got sha256      {good}" in refused_kept(folder, tmp_path)
    side.write_text(f"{good}  other.tar.zst")
    assert "the checksum is for a different file, 'other.tar.zst'" in refused_kept(folder, tmp_path)
    side.write_text("sorry")
    assert "does not contain a SHA-256" in refused_kept(folder, tmp_path)


def refused_kept(folder: Path, tmp_path: Path) -> str:
    with pytest.raises(IntegrityError) as caught:
        read_artifacts(folder, cache=tmp_path / "cache")
    return str(caught.value)


GOOD = ("artifact_manifest.txt", f"{BASE}\n".encode())


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ([(f"{BASE}/a", b"x"), GOOD], "does not start with its artifact_manifest.txt"),
        ([], "has no artifact_manifest.txt"),
        ([GOOD, ("elsewhere/a", b"x")], "elsewhere/a: unsupported archive: the file is not in any folder"),
        ([GOOD, (f"{BASE}x/a", b"x")], "is not in any folder"),
        ([GOOD, (f"{BASE}/../../../../a", b"x")], "leads out of the archive"),
        ([GOOD, ("/etc/passwd", b"x")], "is not in any folder"),
        (
            [("artifact_manifest.txt", b"../x\n"), ("../x/a", b"x")],
            "the manifest lists an invalid artifact folder: '../x'",
        ),
        (
            [("artifact_manifest.txt", b"/etc\n"), ("/etc/a", b"x")],
            "the manifest lists an invalid artifact folder: '/etc'",
        ),
        ([GOOD, special(f"{BASE}/l", tarfile.SYMTYPE, "/etc/passwd")], "points outside the tree"),
        ([GOOD, special(f"{BASE}/l", tarfile.SYMTYPE, "../" * 9)], "leads out of the archive"),
        ([GOOD, special(f"{BASE}/l", tarfile.SYMTYPE, "../x")], "points outside the tree"),
        (
            [GOOD, special(f"{BASE}/l", tarfile.SYMTYPE, "m"), (f"{BASE}/l/x", b"")],
            "not a folder, but contains other entries",
        ),
        ([GOOD, (f"{BASE}/l/x", b""), special(f"{BASE}/l", tarfile.SYMTYPE, "m")], "occurs twice"),
        ([GOOD, (f"{BASE}/l", b""), (f"{BASE}/l", b"")], "occurs twice"),
        ([GOOD, special(f"{BASE}/h", tarfile.LNKTYPE, "/etc/passwd")], "which is not an earlier file"),
        ([GOOD, special(f"{BASE}/h", tarfile.LNKTYPE, f"{BASE}/later"), (f"{BASE}/later", b"")], "not an earlier file"),
        ([GOOD, special(f"{BASE}/d", tarfile.CHRTYPE)], "which packages cannot contain"),
        ([GOOD, special(f"{BASE}/d", tarfile.FIFOTYPE)], "which packages cannot contain"),
        ([GOOD, (f"{BASE}/a\\b", b"")], "not allowed in a package"),
    ],
)
def test_hostile_archives_are_refused(
    members: list[tarfile.TarInfo | tuple[str, bytes]], told: str, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    hostile_archive(folder / "base_lib_generic.tar.zst", members)
    with pytest.raises(IntegrityError) as caught:
        read_artifacts(folder, cache=tmp_path / "cache")
    assert told in str(caught.value)
    assert sorted(place.name for place in tmp_path.iterdir()) == ["cache", "in"]
    assert not [place for place in (tmp_path / "cache").iterdir() if ".axletree-part" in place.name]


def test_bombs_and_damage_are_refused(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "in"
    good = hostile_archive(folder / "base_lib_generic.tar.zst", [GOOD, (f"{BASE}/zeros", bytes(3 << 20))]).read_bytes()
    monkeypatch.setattr("axletree.host.sdk.unpack._MIN_LIMIT", 1 << 20)
    assert "it may be an archive bomb" in refused(folder, tmp_path)
    monkeypatch.undo()
    place = folder / "base_lib_generic.tar.zst"
    for data in (good[:-20], good[: len(good) // 2], b"no archive", good + b"more", b"\0" * 10):
        place.write_bytes(data)
        assert "base_lib_generic.tar.zst" in refused(folder, tmp_path)
    xz = archive_artifact(tree / "rand_lib_gfx900", suffix="xz", compressor=("xz",)).read_bytes()
    place.unlink()
    for data in (xz[:-20], xz[:40], b"no archive", xz + b"more"):
        (folder / "base_lib_generic.tar.xz").write_bytes(data)
        assert "base_lib_generic.tar.xz" in refused(folder, tmp_path)


def test_archives_that_want_much_memory_are_refused(tree: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    root = tree / "rand_lib_gfx900"
    (root / BASE / "large").write_bytes(os.urandom(1 << 20) * 3)
    archive_artifact(root, compressor=("zstd", "-q", "--long=31")).rename(folder / "rand_lib_gfx900.tar.zst")
    assert "rand_lib_gfx900.tar.zst: damaged archive" in refused(folder, tmp_path)


def test_all_names_that_are_none_are_told(tmp_path: Path) -> None:
    for name in ("rand_lib_dev", "rand_libs_generic", "good_lib_generic"):
        make_artifact(tmp_path / "a", name, {})
    told = refused(tmp_path / "a", tmp_path)
    assert [name in told for name in ("rand_lib_dev", "rand_libs_generic", "good")] == [True, True, False]


def test_what_no_package_can_hold_is_told(tree: Path, tmp_path: Path) -> None:
    stage = tree / "core-hip_lib_generic" / BASE
    os.mkfifo(stage / "pipe")
    (stage / "away").symlink_to("/etc/passwd")
    (stage / "lib" / "up").symlink_to("../../../../x")
    (tree / "core-hip_lib_generic" / "stray").write_text("")
    (tree / "core-hip_lib_generic" / BASE / os.fsdecode(b"bad\xff")).write_text("")
    told = refused(tree, tmp_path)
    for path in ("pipe", "away", "lib/up", "stray", "bad\\udcff"):
        assert path in told


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "contains no artifacts" in refused(tmp_path / "empty", tmp_path)
    with pytest.raises(HostError, match="cannot be read"):
        read_artifacts(tmp_path / "none", cache=tmp_path)


@pytest.mark.parametrize("archives", [False, True])
def test_what_is_laid_out_reads_back_as_it_was(tree: Path, tmp_path: Path, archives: bool) -> None:  # noqa: FBT001
    entries = read_artifacts(tree, cache=tmp_path / "cache")
    out = tmp_path / "deep" / "out"
    done = lay_out(entries, out, archives=archives, threads=2)
    assert content_of(read_artifacts(out, cache=tmp_path / "cache")) == content_of(entries)
    assert [artifact.files for artifact in done.artifacts] == [5, 1, 1]
    assert sum(artifact.size for artifact in done.artifacts) == sum(entry.size for entry in entries)
    assert [place.name for place in out.parent.iterdir()] == ["out"]
    if not archives:
        source = next(entry.source for entry in entries if entry.path == "bin/tool")
        assert os.path.samefile(source, out / "core-hip_lib_generic/core-hip/stage/bin/tool")  # noqa: PTH121
        assert (done.linked, done.copied) == (5, 0)


def test_archives_are_the_same_every_time_and_real_tools_read_them(tree: Path, tmp_path: Path) -> None:
    entries = read_artifacts(tree, cache=tmp_path / "cache")
    for name, threads in (("one", 1), ("two", 4)):
        lay_out(entries, tmp_path / name, archives=True, threads=threads)
    names = sorted(place.name for place in (tmp_path / "one").iterdir())
    assert [(tmp_path / "one" / name).read_bytes() for name in names] == [
        (tmp_path / "two" / name).read_bytes() for name in names
    ]
    subprocess.run("sha256sum --strict --quiet -c *.sha256sum", shell=True, check=True, cwd=tmp_path / "one")
    listing = subprocess.run(
        ["tar", "--zstd", "-tf", tmp_path / "one" / "core-hip_lib_generic.tar.zst"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert listing[0] == "artifact_manifest.txt"
    assert listing[1:] == sorted(listing[1:])
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(
        ["tar", "--zstd", "-xf", tmp_path / "one" / "core-hip_lib_generic.tar.zst", "-C", unpacked], check=True
    )
    stage = unpacked / "core-hip" / "stage"
    assert os.access(stage / "bin/tool", os.X_OK)
    assert (stage / "empty").is_dir()
    assert (stage / "lib/libx.so").readlink().name == "libx.so.1"


def test_copies_where_links_cannot_be_made(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = read_artifacts(tree, cache=tmp_path / "cache")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    done = lay_out(entries, tmp_path / "out")
    assert (done.linked, done.copied) == (0, 5)
    assert content_of(read_artifacts(tmp_path / "out", cache=tmp_path)) == content_of(entries)


def test_nothing_is_left_of_a_layout_that_fails(tree: Path, tmp_path: Path) -> None:
    entries = read_artifacts(tree, cache=tmp_path / "cache")
    tool = next(entry for entry in entries if entry.path == "bin/tool")
    os.truncate(tool.source, 3)
    with pytest.raises(IntegrityError, match="has changed since"):
        lay_out(entries, tmp_path / "out", archives=True)
    (tree / "rand_dev_generic/rand/stage/include/rand.h").unlink()
    with pytest.raises(HostError, match=r"rand\.h: the file cannot be laid out"):
        lay_out(entries, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("")
    with pytest.raises(UsageError, match="not empty"):
        lay_out(entries, tmp_path / "mine")
    odd = [SdkEntry(path="a", artifact="has_underscore", component="lib", source=tool.source)]
    with pytest.raises(IntegrityError, match="has_underscore"):
        lay_out(odd, tmp_path / "out")
    with pytest.raises(IntegrityError, match="which Axletree needs to write"):
        lay_out(entries, tmp_path / "out", records={"bin/tool": b""})
    assert sorted(place.name for place in tmp_path.iterdir()) == ["artifacts", "mine"]


def test_records_lie_in_base_beside_its_own_files(tmp_path: Path) -> None:
    make_artifact(tmp_path / "a", "base_lib_generic", {"lib/a.so": b"x"})
    entries = read_artifacts(tmp_path / "a", cache=tmp_path)
    lay_out(entries, tmp_path / "out", records={"share/therock/dist_info.json": b"{}"})
    manifest = (tmp_path / "out/base_lib_generic/artifact_manifest.txt").read_text()
    assert manifest == "base/stage\nbase/aux-overlay/stage\n"
    back = read_artifacts(tmp_path / "out", cache=tmp_path)
    assert [entry.path for entry in back] == ["lib/a.so", "share/therock/dist_info.json"]


def test_stage_folders_with_a_descriptor(tmp_path: Path) -> None:
    for stage, path, content in (
        *(("a/stage", "lib/liba.so", b"a"), ("a/stage", "include/a.h", b"h"), ("a/stage", "share/doc/a", b"d")),
        *(("b/stage", "bin/b", b"b"), ("b/stage", "include/a.h", b"h")),
    ):
        place = tmp_path / "build" / stage / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    text = "".join(f'[components.{name}."a/stage"]\n' for name in ("lib", "dev", "doc"))
    text += '[components.dev."b/stage"]\n[components.run."b/stage"]\ninclude = "bin/**"\n'
    descriptor = parse_descriptor(text, filename="artifact-demo.toml", artifact="demo")
    notes: list[str] = []
    entries = read_stages(tmp_path / "build", descriptor, artifact="demo", target="gfx900", note=notes.append)
    assert [(entry.path, entry.component, entry.target) for entry in entries] == [
        ("bin/b", "run", "gfx900"),
        ("include/a.h", "dev", "gfx900"),
        ("lib/liba.so", "lib", "gfx900"),
        ("share/doc/a", "doc", "gfx900"),
    ]
    assert len(notes) == 1
    (tmp_path / "build/b/stage/include/a.h").write_bytes(b"other")
    with pytest.raises(IntegrityError, match="with different content"):
        read_stages(tmp_path / "build", descriptor, artifact="demo")
