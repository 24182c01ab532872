"""The ZIP reader: what it accepts, what it refuses, and that content is read in pieces and with random access."""

from __future__ import annotations

import contextlib
import io
import random
import stat
import struct
import warnings
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.inflate import CHUNK
from axletree.binary.zip.members import STEP, MemberSource, iter_member, read_member
from axletree.binary.zip.records import Written, central_header, end_records, local_header
from axletree.core.errors import IntegrityError
from support.wheels import zip_bytes

FILES = {"demo/__init__.py": b"", "demo/core.so": bytes(range(256)) * 5000, "demo-1.0.dist-info/RECORD": b"a,b,1\n"}
STAMP = (0, 33)


def contents(data: bytes) -> dict[str, bytes]:
    return {entry.name: read_member(data, entry, limit=1 << 30) for entry in read_directory(data)}


def refused(data: bytes) -> str:
    with pytest.raises(IntegrityError) as caught:
        contents(data)
    return str(caught.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_what_the_standard_library_writes(method: int) -> None:
    assert contents(zip_bytes(FILES, method=method)) == FILES


def test_an_archive_with_a_comment_a_folder_modes_and_a_streamed_member() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = b"PK\x05\x06 is what an end record begins with"
        archive.mkdir("demo")
        info = zipfile.ZipInfo("demo/tool")
        info.external_attr = (stat.S_IFREG | 0o755) << 16
        archive.writestr(info, b"#!")
    entries = {entry.name: entry for entry in read_directory(buffer.getvalue())}
    assert entries["demo/"].directory
    assert entries["demo/tool"].executable

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("streamed", b"x" * 1000)  # sizes follow in a data descriptor
    assert contents(pipe.getvalue()) == {"streamed": b"x" * 1000}


def test_names_in_other_alphabets() -> None:
    assert contents(zip_bytes({"demo/é漢.py": b"1"})) == {"demo/é漢.py": b"1"}


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "a//b", "./a", "a/.", "C:/x", "a\\b"])
def test_paths_that_leave_the_folder(name: str) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("x")
        info.filename = name
        archive.writestr(info, b"")
    message = refused(buffer.getvalue())
    assert "leads outside the folder" in message
    assert repr(name)[1:-1] in message


@pytest.mark.parametrize("name", ["a/" * 128 + "x", "x" * 4097])
def test_paths_that_no_system_takes(name: str) -> None:
    assert "the path has more than" in refused(zip_bytes({name: b""}))


def test_a_long_path_that_systems_take() -> None:
    name = "é" * 100 + "/a" * 127
    assert contents(zip_bytes({name: b"1"})) == {name: b"1"}


def test_two_members_of_one_name() -> None:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a", b"1")
            archive.writestr("a", b"2")
    assert "a: damaged archive: the member occurs twice" in refused(buffer.getvalue())


def test_a_file_that_is_a_folder_too() -> None:
    assert "a: damaged archive: the path is both a file and a folder" in refused(zip_bytes({"a": b"", "a/b": b""}))


def test_symbolic_links() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    assert "link: unsupported archive: the member is a symbolic link" in refused(buffer.getvalue())


def test_all_bad_members_are_named_at_once() -> None:
    message = refused(zip_bytes({"../a": b"", "ok": b"", "/b": b""}))
    assert "../a" in message
    assert "/b" in message


def archive_of(member: Written, body: bytes, **central: int) -> bytes:
    """A hand-made archive of one member, whose central directory may say something else than its local header."""
    head = local_header(member, STAMP) + body
    for name, value in central.items():
        setattr(member, name, value)
    directory = central_header(member, STAMP)
    return head + directory + end_records(entries=1, size=len(directory), offset=len(head))


def stored(body: bytes = b"abc", path: str = "a") -> Written:
    import zlib

    return Written(
        path=path, method=0, executable=False, offset=0, size=len(body), crc=zlib.crc32(body), compressed=len(body)
    )


def test_a_hand_made_archive_is_read() -> None:
    assert contents(archive_of(stored(), b"abc")) == {"a": b"abc"}


def test_sizes_that_differ_between_the_two_headers() -> None:
    assert "declare different sizes" in refused(archive_of(stored(), b"abc", size=2, compressed=2))


def test_a_crc_that_is_not_the_contents() -> None:
    member = stored()
    member.crc ^= 1
    assert "a: damaged archive: the content has CRC" in refused(archive_of(member, b"abc"))


def test_a_deflated_member_that_is_longer_or_shorter_than_declared() -> None:
    import zlib

    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    body = packer.compress(b"x" * 5000) + packer.flush()
    for size in (4999, 5001):
        member = Written(path="a", method=8, executable=False, offset=0, size=size, compressed=len(body))
        assert "a: damaged archive: the deflate stream" in refused(archive_of(member, body))


def test_a_bomb_is_refused_before_it_is_inflated() -> None:
    member = Written(path="a", method=8, executable=False, offset=0, size=1 << 31, compressed=100)
    assert "more than deflate can produce" in refused(archive_of(member, bytes(100)))


def test_a_limit_is_kept() -> None:
    data = zip_bytes({"a": bytes(1000)})
    (entry,) = read_directory(data)
    with pytest.raises(
        IntegrityError, match="a: unsupported archive: the member has 1000 bytes, more than the limit of 999"
    ):
        read_member(data, entry, limit=999)


@pytest.mark.parametrize(
    ("flag", "message"), [(1, "encrypted"), (0x40, "encrypted"), (0x2000, "encrypted"), (0x20, "patch")]
)
def test_flags_that_change_the_meaning(flag: int, message: str) -> None:
    data = bytearray(archive_of(stored(), b"abc"))
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place : place + 2] = struct.pack("<H", flag)
    assert message in refused(bytes(data))


def test_other_methods() -> None:
    assert "a: unsupported archive: the member uses compression method 14" in refused(
        zip_bytes({"a": b"x" * 100}, method=zipfile.ZIP_LZMA)
    )


def test_members_that_overlap() -> None:
    data = bytearray(zip_bytes({"a": b"1" * 50, "b": b"2" * 50}, method=zipfile.ZIP_STORED))
    second = data.rindex(b"PK\x01\x02")
    first = data.index(b"PK\x01\x02")
    data[second:] = data[first:second] + data[second + (second - first) :]
    data[second + 46] = ord("c")
    data[30] = ord("a")
    assert "contradict each other" in refused(bytes(data))  # one local header can't be both a and c


@pytest.mark.parametrize("junk", [b"\0", b"junk" * 10])
def test_bytes_before_or_after_the_archive(junk: bytes) -> None:
    data = zip_bytes(FILES)
    assert "end-of-central-directory record" in refused(junk + data)
    assert "end-of-central-directory record" in refused(data + junk)


def test_zip64_records() -> None:
    head = local_header(stored(), STAMP) + b"abc"
    directory = central_header(stored(), STAMP)
    wide = end_records(entries=70_000, size=len(directory), offset=len(head))
    wide = wide.replace(struct.pack("<QQ", 70_000, 70_000), struct.pack("<QQ", 1, 1))
    assert contents(head + directory + wide) == {"a": b"abc"}
    broken = wide.replace(b"PK\x06\x06", b"PK\x06\x00")
    assert "ZIP64 end-of-central-directory record" in refused(head + directory + broken)


def test_an_offset_beyond_4_gib_is_written_and_read_as_zip64() -> None:
    member = stored()
    member.offset = 5 << 30
    header = central_header(member, STAMP)
    assert struct.pack("<HHQ", 1, 8, 5 << 30) in header


@pytest.mark.parametrize("cut", [1, 10, 22, 60, 150])
def test_a_cut_archive(cut: int) -> None:
    assert refused(zip_bytes(FILES)[:-cut])


def test_an_empty_file() -> None:
    assert "not a ZIP archive" in refused(b"")


@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8))
def test_random_damage_raises_nothing_else(changes: list[tuple[float, int]]) -> None:
    data = bytearray(zip_bytes({"a.py": b"print()\n" * 20, "b/c.so": bytes(100)}))
    for place, value in changes:
        data[int(place * len(data))] = value
    with contextlib.suppress(IntegrityError):
        contents(bytes(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_random_access_gives_the_same_bytes(method: int) -> None:
    source = random.Random(1)
    body = source.randbytes(STEP) + bytes(2 * STEP) + source.randbytes(STEP // 2 + 7)
    data = zip_bytes({"big": body}, method=method)
    (entry,) = read_directory(data)
    member = MemberSource(data, entry)
    chunks = list(member.scan())
    assert b"".join(chunks) == body
    assert max(map(len, chunks)) <= CHUNK
    for offset, size in (
        (0, 10),
        (STEP - 3, 6),
        (3 * STEP, 1 << 20),
        (STEP + 1, 2 * STEP),
        (len(body) - 4, 100),
        (5, 0),
    ):
        assert member.read(offset, size) == body[offset : offset + size]


def test_chunks_come_before_the_end_is_known() -> None:
    data = zip_bytes({"big": bytes(3 * CHUNK)})
    (entry,) = read_directory(data)
    assert next(iter_member(data, entry)) == bytes(CHUNK)
