"""Facts of a wheel: its metadata folder, RECORD against content, ELF files."""

from __future__ import annotations

import hashlib
from hashlib import sha256

import pytest

from axletree.binary.elf.facts import read_elf
from axletree.binary.formats import code_format
from axletree.core.errors import IntegrityError
from axletree.package.wheel.record import (
    ReadContent,
    RecordEntry,
    check_record,
    content_of,
    encode_hash,
    parse_record,
    render_record,
)
from axletree.package.wheel.scan import scan_wheel
from axletree.package.wheel.tree import scan_tree
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
        f"{INFO}/METADATA: the file is not UTF-8 text: invalid start byte",
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
    with pytest.raises(IntegrityError, match="the file name is not valid for a wheel"):
        scan_wheel(zip_bytes({}), filename="demo.zip")
    with pytest.raises(IntegrityError, match="not a ZIP archive"):
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
    files = {f"{INFO}/RECORD": ReadContent(sha256="00", size=0), f"{INFO}/RECORD.jws": ReadContent(sha256="00", size=0)}
    assert check_record((), files, dist_info=INFO) == ()


def test_other_hashes_are_checked_too() -> None:
    body = b"content"
    other = encode_hash(hashlib.sha512(body).digest(), "sha512")
    for listed, kinds in (
        (other, set()),
        (other[:-1] + ("A" if other[-1] != "A" else "B"), {"hash"}),
        ("sha512=", {"hash"}),
        (encode_hash(hashlib.md5(body).digest(), "md5"), {"unchecked"}),
        (encode_hash(hashlib.sha1(body).digest(), "sha1"), {"unchecked"}),
        ("rot13=abc", {"unchecked"}),
        (f"sha256={hashlib.sha256(body).hexdigest()}", {"unchecked"}),
    ):
        record = f"demo/a,{listed},7\n{INFO}/METADATA,,\n{INFO}/WHEEL,,\n{INFO}/RECORD,,\n".encode()
        files = {"demo/a": body, f"{INFO}/METADATA": METADATA, f"{INFO}/WHEEL": WHEEL, f"{INFO}/RECORD": record}
        wheel = scan_wheel(zip_bytes(files), filename=NAME).wheel
        assert {issue.kind for issue in wheel.record_issues if issue.path == "demo/a"} == kinds, listed


def test_hashes_of_large_members_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.package.wheel.scan.LARGEST_SMALL", 1000)
    data = wheel_bytes({"demo/large": bytes(1001), "demo/small": bytes(1000)})
    small = scan_wheel(data, filename=NAME, hashes="small").wheel
    assert small.unhashed == ("demo/large",)
    assert [member.sha256 == "" for member in small.members[:2]] == [True, False]
    assert small.record_issues == ()
    assert scan_wheel(data, filename=NAME).wheel.unhashed == ()


def test_a_large_library_gives_the_same_facts_as_a_small_one() -> None:
    parts = {"needed": ("libc.so.6",), "exported": ("PyInit_x",), "undefined": ("_ZN3c101fEv", "Py_x")}
    library, padded = make_elf(symtab=8, **parts), make_elf(symtab=2 << 20, **parts)  # type: ignore[arg-type]
    scan = scan_wheel(wheel_bytes({"demo/lib.so": padded, "demo/bad.so": padded[:-100]}), filename=NAME)
    ((path, facts),) = [(elf.path, elf.facts) for elf in scan.elfs]
    assert path == "demo/lib.so"
    assert facts == read_elf(padded)
    assert facts.abi == read_elf(library).abi
    assert [path for path, _ in scan.damaged_elfs] == ["demo/bad.so"]
    assert {member.path: member.sha256 for member in scan.wheel.members}["demo/lib.so"] == sha256(padded).hexdigest()


def test_texts_that_rules_read() -> None:
    files = {
        "demo/__init__.py": b"1",
        "demo/version.py": b"2",
        "demo/deep/_version.py": b"3",
        "demo-1.0.data/purelib/demo2/__version__.py": b"4",
        f"{INFO}/variant.json": b"{}",
        f"{INFO}/sboms/demo.cdx.json": b"{}",
        "demo/deep/__init__.py": b"no",
        "demo/other.py": b"no",
        "tests/data/variant.json": b"no",
        "huge/version.py": bytes(300 << 10),
    }
    texts = scan_wheel(wheel_bytes(files), filename=NAME).wheel.texts
    assert texts == dict(list(files.items())[:6])


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\x7fELF", "elf"),
        (b"\xcf\xfa\xed\xfe", "mach-o"),
        (b"\xfe\xed\xfa\xce", "mach-o"),
        (b"\xca\xfe\xba\xbe\0\0\0\x02", "mach-o"),
        (b"\xca\xfe\xba\xbf\0\0\0\x02", "mach-o"),
        (b"\xca\xfe\xba\xbe\0\0\0\x34", ""),  # a Java class
        (b"MZ" + bytes(58) + b"\x40\0\0\0PE\0\0", "pe"),
        (b"MZ" + bytes(58) + b"\x40\0\0\0NE\0\0", ""),
        (b"MZ text", ""),
        (b"", ""),
    ],
)
def test_kinds_of_machine_code(head: bytes, kind: str) -> None:
    assert code_format(head) == kind
    members = scan_wheel(wheel_bytes({"a": head}), filename=NAME).wheel.members
    assert members[0].format == kind


def test_the_code_of_a_tree() -> None:
    library = make_elf(needed=("libc.so.6",))
    files = {"a/lib.so": library, "a/bad.so": library[:80], "a/x.dylib": b"\xcf\xfa\xed\xfe", "a/x.py": b"1"}
    scan = scan_tree(files.items())
    assert [(elf.path, elf.facts) for elf in scan.elfs] == [("a/lib.so", read_elf(library))]
    assert [path for path, _ in scan.damaged_elfs] == ["a/bad.so"]
    assert scan.others == (("a/x.dylib", "mach-o"),)
