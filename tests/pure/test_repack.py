"""Members taken over from one wheel into another, still compressed."""

from __future__ import annotations

import io
import random

import pytest
from msgspec.structs import replace

from axletree.binary.zip.directory import DEFLATED, STORED, read_directory
from axletree.binary.zip.members import read_member
from axletree.core.errors import IntegrityError
from axletree.package.wheel.record import parse_record
from axletree.package.wheel.repack import packed_members
from axletree.package.wheel.scan import scan_wheel
from axletree.package.wheel.writer import Member, Packed, write_wheel
from support.wheels import demo_info, demo_metadata

FOLDER = "demo-1.0.dist-info"
FILES = [
    Member(path="demo/__init__.py", data=b""),
    Member(path="demo/text", data=b"again and again " * 500),
    Member(path="demo/tool", data=b"#!/bin/sh\n" * 50, executable=True),
    Member(path="demo/random", data=random.Random(1).randbytes(5000)),
    Member(path=f"{FOLDER}/entry_points.txt", data=b"[console_scripts]\n"),
]


def write(members: list[Member]) -> bytes:
    sink = io.BytesIO()
    write_wheel(sink, members, metadata=demo_metadata(), wheel_info=demo_info())
    return sink.getvalue()


WHEEL = write(FILES)
ENTRIES = read_directory(WHEEL)
RECORD = parse_record(
    read_member(WHEEL, next(e for e in ENTRIES if e.name == f"{FOLDER}/RECORD"), limit=1 << 20),
)


def taken(**options: object) -> dict[str, Packed]:
    members = packed_members(WHEEL, ENTRIES, options.get("record", RECORD), folder=FOLDER)  # type: ignore[arg-type]
    return {member.path: member.data for member in members if isinstance(member.data, Packed)}


def test_a_wheel_of_taken_members_is_the_same_wheel() -> None:
    assert write(list(packed_members(WHEEL, ENTRIES, RECORD, folder=FOLDER))) == WHEEL


def test_methods_and_what_is_left_out() -> None:
    packed = taken()
    assert set(packed) == {member.path for member in FILES}
    assert packed["demo/random"].method == STORED
    assert packed["demo/text"].method == DEFLATED
    assert all(isinstance(value.data, memoryview) for value in packed.values())


def test_a_hash_that_record_lacks_is_computed() -> None:
    for weak in ("", "md5=abc", "sha256=short"):
        record = tuple(replace(line, hash=weak) for line in RECORD)
        assert taken(record=record) == taken()
    assert taken(record=()) == taken()


def test_padding_of_a_hash_is_dropped() -> None:
    record = tuple(replace(line, hash=f"{line.hash}=") for line in RECORD)
    assert taken(record=record) == taken()


def test_sizes_that_contradict_the_archive_are_all_named() -> None:
    record = tuple(replace(line, size=7) for line in RECORD)
    with pytest.raises(IntegrityError) as error:
        taken(record=record)
    assert {problem.key for problem in error.value.problems} == {member.path for member in FILES}


def test_a_hash_that_is_not_true_is_found_when_the_new_wheel_is_read() -> None:
    record = tuple(replace(line, hash="sha256=" + "A" * 43) if line.path == "demo/text" else line for line in RECORD)
    data = write(list(packed_members(WHEEL, ENTRIES, record, folder=FOLDER)))
    issues = scan_wheel(data, filename="demo-1.0-py3-none-any.whl").wheel.record_issues
    assert [(issue.kind, issue.path) for issue in issues] == [("hash", "demo/text")]
