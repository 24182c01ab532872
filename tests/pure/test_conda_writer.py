"""Writing a conda package: same bytes always, prefixes found, what can't be a package refused with all its reasons."""

import fnmatch
import hashlib
import io
import itertools
import json
import tarfile
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.zip import records as zip_records
from axletree.binary.zip.directory import DEFLATED
from axletree.core.errors import IntegrityError, UsageError
from axletree.package.conda.check import check_conda
from axletree.package.conda.model import CondaFile, Late, RunExports
from axletree.package.conda.prefix import PrefixSearch
from axletree.package.conda.reader import scan_conda
from axletree.package.wheel.record import encode_hash
from axletree.package.wheel.writer import Packed
from support.conda import PREFIX, conda_bytes, demo, scanned, text, unpacked

FILES = [
    text("lib/libdemo.so.1", b"\x7fELF" + bytes(300_000)),
    CondaFile(path="lib/libdemo.so", link="libdemo.so.1"),
    text("bin/demo", b"#!/bin/sh\n", executable=True),
    text("share/" + "long/" * 40 + "name", b"x"),
]


def info(data: bytes) -> dict[str, bytes]:
    """The files of ``info/``, by the standard library."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        name = next(name for name in archive.namelist() if name.startswith("info-"))
        with tarfile.open(fileobj=io.BytesIO(unpacked(archive.read(name)))) as tar:
            return {m.name: file.read() for m in tar if (file := tar.extractfile(m))}


def test_the_archive_is_as_the_format_says() -> None:
    data = conda_bytes(demo(), FILES)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        stem = "demo-1.0-h1234567_0.tar.zst"
        assert archive.namelist() == ["metadata.json", f"pkg-{stem}", f"info-{stem}"]
        assert {member.compress_type for member in archive.infolist()} == {zipfile.ZIP_STORED}
        assert json.loads(archive.read("metadata.json")) == {"conda_pkg_format_version": 2}
        assert archive.testzip() is None
        with tarfile.open(fileobj=io.BytesIO(unpacked(archive.read(f"pkg-{stem}")))) as tar:
            assert tar.getnames() == sorted(file.path for file in FILES)


def test_info_says_what_is_there() -> None:
    exports = RunExports(weak=("demo >=1.0,<2.0a0",))
    package = demo(
        run_exports=exports,
        hash_input={"cuda": "13"},
        depends=("b", "a >=1"),
        info=(text("licenses/LICENSE", b"free"),),
    )
    found = info(conda_bytes(package, FILES, epoch=1_700_000_000))
    paths = json.loads(found["info/paths.json"])
    assert paths["paths_version"] == 1
    assert [entry["_path"] for entry in paths["paths"]] == sorted(file.path for file in FILES)
    library = next(entry for entry in paths["paths"] if entry["_path"] == "lib/libdemo.so.1")
    digest = hashlib.sha256(b"\x7fELF" + bytes(300_000)).hexdigest()
    assert library == {
        "_path": "lib/libdemo.so.1",
        "path_type": "hardlink",
        "sha256": digest,
        "size_in_bytes": 300_004,
    }
    link = next(entry for entry in paths["paths"] if entry["_path"] == "lib/libdemo.so")
    assert (link["path_type"], link["sha256"], link["size_in_bytes"]) == ("softlink", digest, 12)
    index = json.loads(found["info/index.json"])
    assert (index["timestamp"], index["platform"], index["arch"]) == (1_700_000_000_000, "linux", "x86_64")
    assert index["depends"] == ["b", "a >=1"]
    assert json.loads(found["info/run_exports.json"]) == {"weak": ["demo >=1.0,<2.0a0"]}
    assert json.loads(found["info/hash_input.json"]) == {"cuda": "13"}
    assert found["info/files"].decode().split("\n")[:-1] == [entry["_path"] for entry in paths["paths"]]
    assert found["info/licenses/LICENSE"] == b"free"


def test_threads_and_order_change_nothing() -> None:
    noise = hashlib.shake_128(b"seed").digest(3_000_000)
    files = [*FILES, text("lib/big", noise + noise[:2_500_000] + noise)]
    first = conda_bytes(demo(), files, level=3)
    assert conda_bytes(demo(), files[::-1], level=3, threads=4) == first
    chunked = [*files[:-1], CondaFile(path="lib/big", data=lambda: [noise, noise[:2_500_000], noise], size=8_500_000)]
    assert conda_bytes(demo(), chunked, level=3, threads=2) == first


def test_what_is_written_is_found_sound_by_the_reader() -> None:
    facts = scanned(demo(placeholder=PREFIX), [*FILES, text("etc/demo.cfg", f"root={PREFIX}\n".encode())])
    assert check_conda(facts) == ()
    assert facts.paths
    assert {entry.path: entry.file_mode for entry in facts.paths if entry.prefix_placeholder} == {
        "etc/demo.cfg": "text"
    }


def test_members_of_a_wheel_are_taken_as_they_lie_there() -> None:
    content = b"text " * 100_000
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    data = packer.compress(content) + packer.flush()
    good = Packed(
        data=data,
        method=DEFLATED,
        crc=zlib.crc32(content),
        size=len(content),
        hash=encode_hash(hashlib.sha256(content).digest()),
    )
    assert check_conda(scanned(demo(), [CondaFile(path="a", data=good)])) == ()
    lying = Packed(data=data, method=DEFLATED, crc=good.crc, size=good.size, hash=encode_hash(bytes(32)))
    with pytest.raises(IntegrityError, match="was declared with sha256="):
        conda_bytes(demo(), [CondaFile(path="a", data=lying)])


def test_late_content_knows_the_digests_of_all_others() -> None:
    late = Late(render=lambda digests: digests.get("z", "0" * 64).encode())
    facts = scanned(demo(), [CondaFile(path="a", data=late), text("z", b"1")])
    assert check_conda(facts) == ()
    assert [member.path for member in facts.members] == ["z", "a"]
    digest = hashlib.sha256(b"1").hexdigest().encode()
    assert facts.members[1].sha256 == hashlib.sha256(digest).hexdigest()


@given(
    st.binary(max_size=40),
    st.sampled_from([b"", b"/a/placeholder", b"/a/placeholde"]),
    st.binary(max_size=40),
    st.lists(st.integers(0, 120), max_size=6),
)
def test_a_placeholder_is_found_wherever_the_pieces_are_cut(
    before: bytes, middle: bytes, after: bytes, cuts: list[int]
) -> None:
    wanted = b"/a/placeholder"
    data = before + middle + after
    search = PrefixSearch(wanted)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        search.feed(data[start:end])
    expected = ("binary" if b"\0" in data else "text") if wanted in data else None
    assert search.mode == expected


def test_a_prefix_in_a_binary_is_an_error_unless_somebody_looked() -> None:
    files = [text("lib/a.so", b"\0" + PREFIX.encode() + b"\0"), text("lib/b.so", PREFIX.encode() + b"\0")]
    with pytest.raises(IntegrityError) as caught:
        conda_bytes(demo(placeholder=PREFIX), files)
    assert [problem.key for problem in caught.value.problems] == ["lib/a.so", "lib/b.so"]
    allowed = demo(placeholder=PREFIX, binary_prefix=("lib/*.so",))
    found = info(conda_bytes(allowed, files))
    assert found["info/has_prefix"].decode().splitlines() == [f"{PREFIX} binary lib/{n}.so" for n in "ab"]


def test_a_short_prefix_in_a_binary_is_an_error() -> None:
    package = demo(placeholder="/short/prefix", binary_prefix=("**",))
    with pytest.raises(IntegrityError, match="a prefix of 13 bytes, but a binary file needs 255"):
        conda_bytes(package, [text("lib/a.so", b"\0/short/prefix\0")])
    assert fnmatch.fnmatchcase("lib/a.so", "*")
    conda_bytes(package, [text("etc/a", b"/short/prefix\n")])


BAD_FILES = {
    "absolute": [text("/etc/passwd")],
    "parent": [text("../x")],
    "too long": [text("x" * 256)],
    "no text": [text("\udcff")],
    "twice": [text("a"), text("a", b"2")],
    "file and folder": [text("a"), text("a/b")],
    "below a link": [CondaFile(path="a", link="b"), text("a/c")],
    "conda's folder": [text("conda-meta/history")],
    "info": [text("info/index.json")],
    "absolute link": [CondaFile(path="a", link="/usr/lib")],
    "link out": [CondaFile(path="a/b", link="../../c")],
    "link with content": [CondaFile(path="a", link="b", data=b"x")],
    "unknown size": [CondaFile(path="a", data=lambda: [b""])],
    "other Python's pyc": [text("lib/python3.11/site-packages/__pycache__/a.cpython-312.pyc")],
}


@pytest.mark.parametrize("files", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_files_that_can_be_no_package_are_refused(files: list[CondaFile]) -> None:
    with pytest.raises(IntegrityError):
        conda_bytes(demo(), files)


def test_all_that_is_wrong_is_said_at_once() -> None:
    package = demo(name="Demo", version="1-0", build="a-b", subdir="plan9", build_number=-1, entry_points=("a = b:c",))
    with pytest.raises(IntegrityError) as caught:
        conda_bytes(package, [text("../a"), text("b"), text("b")])
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["name", "version", "build", "subdir", "build_number", "entry_points", "../a", "b"]


def test_a_file_that_is_not_as_long_as_it_said_stops_all() -> None:
    with pytest.raises(IntegrityError, match="has 3 bytes, but was declared with 5"):
        conda_bytes(demo(), [CondaFile(path="a", data=lambda: [b"abc"], size=5)])


def test_what_the_writer_makes_can_not_be_given() -> None:
    with pytest.raises(IntegrityError, match="Axletree creates this file itself"):
        conda_bytes(demo(info=(text("index.json", b"{}"),)), [])


def test_levels_that_ask_too_much_of_those_who_unpack_are_refused() -> None:
    with pytest.raises(UsageError, match="1 to 19"):
        conda_bytes(demo(), [], level=22)


def test_zip64_headers_are_used_where_a_member_may_become_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_records, "_SLACK", 1 << 33)  # as if each member might pass 4 GiB
    data = conda_bytes(demo(), FILES)
    assert data[4:6] == b"\x2d\0"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
    assert check_conda(scan_conda(data, filename="demo-1.0-h1234567_0.conda")) == ()


def test_noarch_python_packages_name_their_entry_points() -> None:
    package = demo(subdir="noarch", noarch="python", entry_points=("demo = demo.cli:main",))
    found = info(conda_bytes(package, [text("site-packages/demo.py")]))
    link = json.loads(found["info/link.json"])
    assert link == {
        "noarch": {"type": "python", "entry_points": ["demo = demo.cli:main"]},
        "package_metadata_version": 1,
    }
    assert "arch" not in json.loads(found["info/index.json"])
