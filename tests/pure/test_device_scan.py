"""GPU code in files: by stream and by random access, whole and damaged."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.gpu import scan as device_scan
from axletree.binary.gpu.code import DeviceSection, ReadLimit
from axletree.binary.gpu.scan import DeviceScanner, read_device
from axletree.binary.source import BufferSource
from support.device import FLAG_LZ4, FLAG_ZSTD, bundle, fat_container, fat_entry, packed_bundle

GFX = "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-"


def scan(data: bytes, sections: list[tuple[str, int, int]], chunk: int = 1 << 20) -> tuple[DeviceSection, ...]:
    scanner = DeviceScanner()
    for offset in range(0, len(data), chunk):
        scanner.feed(offset, data[offset : offset + chunk])
    return scanner.finish(sections)


def both(data: bytes, sections: list[tuple[str, int, int]]) -> tuple[DeviceSection, ...]:
    by_access = read_device(BufferSource(data), sections)
    assert scan(data, sections) == by_access
    return by_access


def rows(section: DeviceSection) -> list[tuple[str, str, str, int, int]]:
    return [(code.arch, code.form, code.packing, code.count, code.containers) for code in section.code]


def test_nvidia_containers_are_counted_by_architecture_form_and_packing() -> None:
    first = fat_container(
        fat_entry("sm_80"), fat_entry("sm_90a", header=112), fat_entry("sm_103f"), fat_entry("compute_120", header=80)
    )
    second = fat_container(fat_entry("sm_80"), fat_entry("sm_80", 96, flags=0x11 | FLAG_ZSTD), fat_entry("lto_90"))
    third = fat_container(fat_entry("compute_90", flags=0x11 | FLAG_LZ4))
    body = first + second + third
    data = bytes(64) + body + bytes(100)
    (section,) = both(data, [(".nv_fatbin", 64, len(body))])
    assert rows(section) == [
        ("sm_80", "binary", "none", 2, 2),
        ("sm_80", "binary", "zstd", 1, 1),
        ("sm_90a", "binary", "none", 1, 1),
        ("sm_103f", "binary", "none", 1, 1),
        ("lto_90", "intermediate", "none", 1, 1),
        ("compute_90", "intermediate", "lz4", 1, 1),
        ("compute_120", "intermediate", "none", 1, 1),
    ]
    assert section.damaged is None
    assert sum(code.size for code in section.code) == len(body) - 3 * 16
    assert next(code.unpacked for code in section.code if code.packing == "zstd") == 96 * 3


@pytest.mark.parametrize(("version", "method"), [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)])
def test_offload_bundles_plain_and_packed_hold_the_same_targets(version: int, method: int) -> None:
    plain = bundle({GFX: b"x" * 5000, "hip-amdgcn-amd-amdhsa--gfx1030": b"y" * 3000})
    packed = packed_bundle(plain, version=version, method=method)
    body = plain + bytes(-len(plain) % 4096) + packed
    body += bytes(-len(body) % 4096)
    (section,) = both(bytes(4096) + body, [(".hip_fatbin", 4096, len(body))])
    packing = "zstd" if method else "zlib"
    assert rows(section) == [
        ("gfx1030", "binary", "none", 1, 1),
        ("gfx1030", "binary", packing, 1, 1),
        ("gfx90a:xnack-", "binary", "none", 1, 1),
        ("gfx90a:xnack-", "binary", packing, 1, 1),
    ]
    assert section.damaged is None
    assert section.containers == 2


def test_what_looks_like_a_container_elsewhere_is_dropped() -> None:
    body = fat_container(fat_entry("sm_90"))
    data = fat_container(fat_entry("sm_80")) + b"\x50\xed\x55\xba\1\0\x10\0" + b"\xff" * 56 + body
    (section,) = both(data, [(".nv_fatbin", len(data) - len(body), len(body))])
    assert rows(section) == [("sm_90", "binary", "none", 1, 1)]
    assert section.damaged is None


def test_a_stray_container_that_reaches_into_the_section_is_seen_through_with_random_access() -> None:
    body = fat_container(fat_entry("sm_90"))
    stray = fat_container(fat_entry("sm_80"))[:8] + struct.pack("<Q", 1 << 20) + fat_entry("sm_80")
    data = stray + body
    sections = [(".nv_fatbin", len(stray), len(body))]
    scanner = DeviceScanner()
    scanner.feed(0, data)
    (section,) = scanner.finish(sections, source=BufferSource(data))
    assert rows(section) == [("sm_90", "binary", "none", 1, 1)]
    assert section.damaged is None


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (fat_container(fat_entry("sm_80"), b"\xff" * 64), "no valid fat binary entry"),
        (fat_container(fat_entry("sm_80"), fat_entry("sm_90"))[:-8], "past its section"),
        (fat_container(fat_entry("sm_80"), fat_entry("sm_90"))[:-80], "past its section"),
        (fat_container(fat_entry("sm_80")) + b"\xff" * 8192, "are not in any container"),
        (b"\xff" * 8192, "are not in any container"),
        (bundle({GFX: b"x" * 5000})[:-100], "past its section"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<QQQQ", 3, 0, 0, 1 << 60), "offload bundle table entry"),
        (packed_bundle(b"no bundle at all" * 9) + bytes(64), "does not decompress"),
    ],
)
def test_damage_is_a_fact(body: bytes, says: str) -> None:
    (section,) = both(bytes(4096) + body, [(".nv_fatbin", 4096, len(body))])
    assert says in (section.damaged or "")


def test_the_number_of_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_scan, "ReadLimit", lambda: ReadLimit(50))
    body = fat_container(*[fat_entry("sm_80", 8)] * 100) * 3
    (section,) = both(body, [(".nv_fatbin", 0, len(body))])
    assert section.code[0].count <= 50
    assert "implausible number" in (section.damaged or "")


PARTS = st.sampled_from(
    [
        fat_container(fat_entry("sm_80"), fat_entry("sm_90", header=104)),
        fat_container(fat_entry("compute_90", 200)),
        fat_container(),
        bundle({GFX: b"x" * 300}),
        bytes(8),
        b"\x50\xed\x55\xba\1\0\x10\0",
        b"\xff" * 40,
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 63),
    ]
)


@given(parts=st.lists(PARTS, max_size=8), chunk=st.integers(1, 700))
def test_the_size_of_chunks_does_not_matter(parts: list[bytes], chunk: int) -> None:
    data = b"".join(part + bytes(-len(part) % 8) for part in parts)
    sections = [(".nv_fatbin", 0, len(data))]
    scanner = DeviceScanner()
    for offset in range(0, len(data), chunk):
        scanner.feed(offset, data[offset : offset + chunk])
    assert scanner.finish(sections, source=BufferSource(data)) == read_device(BufferSource(data), sections)
