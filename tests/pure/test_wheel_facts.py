"""Facts of a wheel: its metadata folder, RECORD against content, ELF files."""

from __future__ import annotations

import hashlib

import pytest

from axletree.core.errors import IntegrityError
from axletree.package.record import (
    Content,
    RecordEntry,
    check_record,
    content_of,
    encode_hash,
    parse_record,
    render_record,
)
from axletree.package.wheel import scan_wheel
from support.wheels import make_elf, wheel_bytes, zip_bytes

NAME = "demo-1.0-py3-none-any.whl"
INFO = "demo-1.0.dist-info"
METADATA = b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
WHEEL = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def line(path: str, data: bytes) -> RecordEntry:
    return RecordEntry(path=path, hash=encode_hash(hashlib.sha256(data).digest()), size=len(data))


def test_a_good_wheel() -> None:
    library = make_elf(needed=("libc.so.6",))
    scan = scan_wheel(wheel_bytes({"demo/__init__.py": b"x = 1\n", "demo/lib.so": library}), filename=NAME)
    wheel = scan.wheel
    assert wheel.name.project == "demo"
    assert wheel.dist_info == INFO
    assert wheel.metadata is not None
    assert wheel.metadata.version == "1.0"
    assert wheel.wheel_info is not None
    assert wheel.wheel_info.tags == ("py3-none-any",)
    assert (wheel.unreadable, wheel.record_issues, scan.damaged_elfs) == ((), (), ())
    assert [member.path for member in wheel.members] == [
        "demo/__init__.py",
        "demo/lib.so",
        f"{INFO}/METADATA",
        f"{INFO}/WHEEL",
        f"{INFO}/RECORD",
    ]
    assert wheel.members[0].sha256 == hashlib.sha256(b"x = 1\n").hexdigest()
    assert [(elf.path, elf.facts.needed) for elf in scan.elfs] == [("demo/lib.so", ("libc.so.6",))]


def test_only_the_metadata() -> None:
    scan = scan_wheel(wheel_bytes({"demo/__init__.py": b""}), filename=NAME, only_metadata=True)
    assert scan.wheel.metadata is not None
    assert scan.wheel.members == ()


def test_what_is_missing_or_damaged_in_the_folder_is_a_fact() -> None:
    scan = scan_wheel(zip_bytes({f"{INFO}/METADATA": b"\xff", f"{INFO}/WHEEL": WHEEL}), filename=NAME)
    assert scan.wheel.metadata is None
    assert scan.wheel.unreadable == (
        f"{INFO}/METADATA: no UTF-8 text: invalid start byte",
        f"{INFO}/RECORD is missing",
    )


def test_two_folders() -> None:
    scan = scan_wheel(zip_bytes({f"{INFO}/METADATA": METADATA, "x-1.dist-info/METADATA": METADATA}), filename=NAME)
    assert "2 metadata folders" in scan.wheel.unreadable[0]
    assert scan.wheel.dist_info == INFO


def test_a_damaged_elf_file_is_a_fact() -> None:
    scan = scan_wheel(wheel_bytes({"demo/lib.so": make_elf()[:100]}), filename=NAME)
    assert scan.elfs == ()
    assert [path for path, _ in scan.damaged_elfs] == ["demo/lib.so"]


def test_no_wheel() -> None:
    with pytest.raises(IntegrityError, match="no name of a wheel"):
        scan_wheel(zip_bytes({}), filename="demo.zip")
    with pytest.raises(IntegrityError, match="no ZIP archive"):
        scan_wheel(b"not at all", filename=NAME)


def test_every_kind_of_record_issue() -> None:
    files = {name: content_of(name.encode()) for name in ("good", "hash", "size", "weak", "none", "missing", "twice")}
    files[f"{INFO}/RECORD"] = content_of(b"")
    record = (
        line("good", b"good"),
        line("hash", b"Hash"),
        RecordEntry(path="size", hash=line("size", b"size").hash, size=5),
        RecordEntry(path="weak", hash="md5=abc", size=4),
        RecordEntry(path="none", size=4),
        line("extra", b"extra"),
        line("twice", b"twice"),
        line("twice", b"twice"),
        line("../up", b""),
        RecordEntry(path=f"{INFO}/RECORD"),
    )
    issues = check_record(record, files, dist_info=INFO)
    assert {(issue.kind, issue.path) for issue in issues} == {
        ("hash", "hash"),
        ("size", "size"),
        ("unchecked", "weak"),
        ("unchecked", "none"),
        ("extra", "extra"),
        ("twice", "twice"),
        ("unsafe", "../up"),
        ("missing", "missing"),
    }
    assert all(issue.detail for issue in issues)


def test_record_round_trip_with_commas_and_quotes() -> None:
    entries = (line('a,"b".py', b""), line("é.py", b"1"), RecordEntry(path=f"{INFO}/RECORD"))
    text = render_record(entries)
    assert parse_record(text) == entries
    assert b"\r" not in text


@pytest.mark.parametrize("data", [b"a,b\n", b"a,b,c\n", b"a,b,-1\n", b",b,1\n", b"\xff,,\n", b'"a,,\n'])
def test_what_is_no_record(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="RECORD"):
        parse_record(data)


def test_no_record_of_signatures_is_needed() -> None:
    files = {f"{INFO}/RECORD": Content(sha256="00", size=0), f"{INFO}/RECORD.jws": Content(sha256="00", size=0)}
    assert check_record((), files, dist_info=INFO) == ()
