"""Tar headers: Python's own reader and ours understand what is written, and ours refuses what is ambiguous."""

import io
import tarfile
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.conda.untar import TarEntry, read_tar
from axletree.package.tar import BLOCK, END, byte_sum, padding, tar_header

NAME = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0/\\"), min_size=1, max_size=120).filter(
    lambda name: name not in {".", ".."}
)
PATH = st.lists(NAME, min_size=1, max_size=5).map("/".join)


def archive(*files: tuple[str, bytes, str | None]) -> bytes:
    parts = []
    for path, data, link in files:
        parts += [tar_header(path, size=len(data), executable=True, mtime=7, link=link), data, padding(len(data))]
    return b"".join([*parts, END])


def entries(chunks: Iterable[bytes]) -> list[tuple[TarEntry, bytes]]:
    return [(entry, b"".join(content)) for entry, content in read_tar(chunks)]


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(st.dictionaries(PATH, st.binary(max_size=1500), max_size=4), PATH, st.integers(1, 2000))
def test_what_is_written_is_read_back_by_tarfile_and_by_us(files: dict[str, bytes], target: str, size: int) -> None:
    data = archive(*((path, content, None) for path, content in files.items()), ("a link", b"", target))
    with tarfile.open(fileobj=io.BytesIO(data)) as peer:
        members = peer.getmembers()
        seen = {m.name: file.read() for m in members if m.isreg() and (file := peer.extractfile(m))}
        assert members[-1].linkname == target
    assert seen == files
    assert all((m.mode, m.uid, m.gid, m.uname, m.gname, m.mtime) == (0o755, 0, 0, "", "", 7) for m in members[:-1])
    found = entries(pieces(data, size))
    assert {entry.path: content for entry, content in found if entry.kind == "file"} == files
    assert found[-1][0].target == target


@given(
    st.dictionaries(PATH, st.binary(max_size=600), max_size=4),
    st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
)
def test_archives_of_others_are_read(files: dict[str, bytes], form: int) -> None:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=form) as peer:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            peer.addfile(member, io.BytesIO(content))
    assert {entry.path: content for entry, content in entries([sink.getvalue()])} == files


@pytest.mark.parametrize("size", [0, 8**11 - 1, 8**11, 1 << 40])
def test_a_size_over_8_gib_stands_in_the_header_itself(size: int) -> None:
    header = tar_header("big", size=size, executable=False, mtime=0)
    assert len(header) == BLOCK
    assert tarfile.TarInfo.frombuf(header, "utf-8", "strict").size == size


@pytest.mark.parametrize("length", [99, 100, 101, 155, 156, 200, 256, 257, 300, 2000])
def test_names_of_every_length(length: int) -> None:
    for path in ("x" * length, f"{'folder/' * (length // 7)}{'y' * (length % 7 or 1)}"):
        header = tar_header(path, size=0, executable=False, mtime=0)
        with tarfile.open(fileobj=io.BytesIO(header + END)) as peer:
            assert peer.getnames() == [path]
        assert [entry.path for entry, _ in entries([header + END])] == [path]


def changed(data: bytes, at: int, new: bytes, *, mend: bool = True) -> bytes:
    """A header with other bytes, its checksum made right again."""
    found = bytearray(data)
    found[at : at + len(new)] = new
    if mend:
        found[148:156] = b" " * 8
        found[148:156] = b"%06o\0 " % sum(found[:BLOCK])
    return bytes(found)


PLAIN = archive(("a", b"12", None))
LINKED = archive(("a", b"", "b"))
HOSTILE = {
    "cut off in a header": PLAIN[:100],
    "cut off in content": PLAIN[: BLOCK + 1],
    "without an end": PLAIN[: 2 * BLOCK],
    "has data after its end marker": PLAIN + b"x",
    "hidden behind one empty block": PLAIN[: 2 * BLOCK] + bytes(BLOCK) + PLAIN,
    "wrong checksum": changed(PLAIN, 0, b"b", mend=False),
    "an invalid number": changed(PLAIN, 124, b"99999999999\0"),
    "negative size": changed(PLAIN, 124, b"\xff" * 12),
    "device": changed(PLAIN, 156, b"3"),
    "sparse": changed(PLAIN, 156, b"S"),
    "link with content": changed(LINKED, 124, b"00000000002\0"),
    "name that is no text": changed(PLAIN, 0, b"\xff\xfe"),
    "path that no system takes": archive(("x/" * 2048 + "y", b"", None)),
    "endless record": changed(PLAIN, 124, b"77777777777\0")[:156] + b"x" + PLAIN[157:],
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_damaged_or_ambiguous_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        entries([data])


@pytest.mark.parametrize(
    "records",
    [b"10 size=5\n", b"8 path=\n", b"99 path=x\n", b"x", b"11 path=a\0b\n"],
    ids=["size", "empty", "long", "none", "nul"],
)
def test_a_pax_record_that_lies_is_refused(records: bytes) -> None:
    header = changed(tar_header("p", size=len(records), executable=False, mtime=0), 156, b"x")
    with pytest.raises(IntegrityError):
        entries([header + records + padding(len(records)) + PLAIN])


@given(st.integers(0, len(PLAIN) - 1), st.integers(0, 255))
def test_any_changed_byte_gives_an_answer(at: int, value: int) -> None:
    data = bytearray(PLAIN)
    data[at] = value
    try:
        found = entries([bytes(data)])
    except IntegrityError:
        return
    assert [entry.path for entry, _ in found] == ["a"]


@given(st.binary(min_size=BLOCK, max_size=BLOCK))
def test_the_sum_of_a_header_is_that_of_its_bytes(block: bytes) -> None:
    assert byte_sum(block) == sum(block)


def test_the_sum_of_a_header_does_not_overflow() -> None:
    assert byte_sum(b"\xff" * BLOCK) == 255 * BLOCK
