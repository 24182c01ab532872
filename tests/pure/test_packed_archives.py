"""Compressed archives and Debian packages: what went in comes out, and damage is named."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.sdk import packed
from axletree.package.sdk.packed import DebControl, parse_control, read_deb, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "zst": zstandard.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "gz": lambda data: gzip.compress(data, 1),
    "bz2": lambda data: bz2.compress(data, 1),
    "tar": bytes,
}


def unpack(data: bytes, suffix: str) -> bytes:
    return b"".join(unpacked(memoryview(data), f"data.tar.{suffix}", archive="x.deb"))


@settings(max_examples=40)
@given(
    parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    suffix=st.sampled_from(sorted(PACKERS)),
    repeat=st.sampled_from([1, 1000]),
    padding=st.integers(0, 5),
)
def test_any_stream_or_several_come_out(parts: list[bytes], suffix: str, repeat: int, padding: int) -> None:
    """Several streams, one behind the other, are what parallel packers write; zeros between and behind them are not
    content, but where nothing is packed."""
    streams = [PACKERS[suffix](part * repeat) for part in parts]
    between = bytes(padding) if suffix in {"xz", "gz", "bz2"} else b""
    assert unpack(between.join(streams) + between, suffix) == b"".join(part * repeat for part in parts)


@pytest.mark.parametrize("suffix", sorted(PACKERS))
def test_what_comes_out_comes_in_pieces(suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 300
    data = PACKERS[suffix](content) + PACKERS[suffix](content)
    monkeypatch.setattr(packed, "_PIECE", 1000)
    pieces = list(unpacked(memoryview(data), f"x.{suffix}", archive="x"))
    assert b"".join(pieces) == content * 2
    assert max(map(len, pieces)) <= 1000


@pytest.mark.parametrize("suffix", ["zst", "xz", "gz", "bz2"])
def test_damage_is_named(suffix: str) -> None:
    data = PACKERS[suffix](bytes(range(256)) * 300)
    spoilt = [b"junk and more junk", data[: len(data) // 2], data + b"junk", data[:4] + b"\xff" * 8 + data[12:]]
    for wrong in spoilt if suffix != "zst" else (spoilt[0], spoilt[2], spoilt[3]):
        with pytest.raises(IntegrityError, match=r"x\.deb: damaged archive: ."):
            unpack(wrong, suffix)


def test_more_memory_than_is_allowed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_WINDOW", 1 << 16)
    parameters = zstandard.ZstdCompressionParameters(window_log=20, enable_ldm=True)
    sink = zstandard.ZstdCompressor(compression_params=parameters).compressobj()  # its frame tells no size
    data = sink.compress(bytes(1 << 18)) + sink.flush()
    for wrong, suffix in ((data, "zst"), (PACKERS["xz"](bytes(100)), "xz")):
        with pytest.raises(IntegrityError, match=r"damaged archive: .*(emory|limit)"):
            unpack(wrong, suffix)


def member(name: str, data: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
    return head + data + b"\n" * (len(data) % 2)


VERSION = member("debian-binary", b"2.0\n")
CONTROL, DATA = member("control.tar.xz", b"control"), member("data.tar.zst/", b"data")
DEB = b"!<arch>\n" + VERSION + CONTROL + DATA


@settings(max_examples=40)
@given(control=st.binary(max_size=50), data=st.binary(max_size=50), more=st.binary(max_size=9))
def test_the_two_archives_of_a_package(control: bytes, data: bytes, more: bytes) -> None:
    """In any order, of odd lengths, beside members that later tools may add (``deb(5)`` lets them begin with ``_``)."""
    parts = [member("data.tar", data), member("_more", more), member("control.tar.gz", control)]
    found = read_deb(memoryview(b"!<arch>\n" + VERSION + b"".join(parts)), archive="x.deb")
    assert [(each.name, bytes(each.data)) for each in found] == [("control.tar.gz", control), ("data.tar", data)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is not a Debian package, because it is not an ar archive"),
        (b"PK" + DEB, "the file is not a Debian package, because it is not an ar archive"),
        (b"!<arch>\n", "the file is not a Debian package in format 2"),
        (b"!<arch>\n" + CONTROL + VERSION + DATA, "the file is not a Debian package in format 2"),
        (
            b"!<arch>\n" + member("debian-binary", b"3.0\n") + CONTROL + DATA,
            "the file is not a Debian package in format 2",
        ),
        (b"!<arch>\n" + VERSION + DATA, "has no control.tar"),
        (b"!<arch>\n" + VERSION + CONTROL, "has no data.tar"),
        (DEB + DATA, "has more than one data.tar"),
        (DEB + b"rest", f"the file is damaged or truncated at byte {len(DEB)}"),
        (DEB.replace(b"`\n", b"``", 1), "the file is damaged or truncated at byte 8"),
        (DEB.replace(b"4         `", b"-4        `", 1), "the file is damaged or truncated at byte 8"),
        (
            DEB.replace(b"7         `", b"7000      `", 1),
            f"the file is damaged or truncated at byte {8 + len(VERSION)}",
        ),
    ],
)
def test_what_is_no_package_is_said(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as error:
        read_deb(memoryview(data), archive="x.deb")
    head, _, hint = str(error.value).partition("\n")
    assert re.fullmatch(f"x.deb: (damaged|unsupported) archive: (it )?{re.escape(message)}", head)
    assert "build" in hint


def test_a_package_says_what_it_is() -> None:
    text = "Package: rocm-core \nVersion:\t6.4.1-83\nDescription: core\n of ROCm\nArchitecture: amd64\n"
    assert parse_control(text, filename="x") == DebControl(
        package="rocm-core", version="6.4.1-83", architecture="amd64"
    )
    assert parse_control("Package: a\n", filename="x") == DebControl(package="a")
    for wrong in ("", "Package:\n", "Package: ../x\n", "package: a\n", "Package: A\n"):
        with pytest.raises(IntegrityError, match=r"x\.deb: damaged archive: its control file does not name a package"):
            parse_control(wrong, filename="x.deb")
