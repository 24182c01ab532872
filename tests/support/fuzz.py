"""What must never crash, hang, or take memory beyond a bound, whatever bytes it is given.

Each target takes bytes and may raise Axletree's own errors only. Beyond that it checks what must be true of what was
accepted: an archive that we read is read the same by the standard library, an edit that we make passes verification.
Shared by the tests that draw inputs at random and by the ones that a coverage-guided fuzzer draws.
"""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from axletree.binary.edits import EditedSource, ordered_edits
from axletree.binary.elf.edit import ElfChange, plan_edit
from axletree.binary.elf.facts import read_elf
from axletree.binary.elf.symbols import read_symbols
from axletree.binary.elf.verify import verify_edit
from axletree.binary.gpu.scan import DeviceScanner, GpuSection, read_containers, read_device
from axletree.binary.gpu.thin import thin_container
from axletree.binary.source import BufferSource
from axletree.core.errors import AxletreeError
from axletree.package.conda.check import check_conda
from axletree.package.conda.reader import scan_conda
from axletree.package.gpu.variant import parse_variants
from axletree.package.wheel.info import parse_wheel_info
from axletree.package.wheel.metadata import parse_metadata
from axletree.package.wheel.record import parse_record, render_record
from axletree.package.wheel.scan import scan_wheel
from support.device import bundle, fat_container, fat_entry, packed_bundle
from support.wheels import make_elf, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHEEL = "demo-1.0-py3-none-any.whl"
CHANGE = ElfChange(rpath=("$ORIGIN/../other/lib",), kind="runpath", soname="libnew-0123.so.1", add_needed=("libx.so",))


def wheel(data: bytes) -> None:
    """A wheel that is accepted has the members that ``zipfile`` sees, with the same sizes."""
    scan = scan_wheel(data, filename=WHEEL)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        seen = {info.filename: info.file_size for info in archive.infolist() if not info.is_dir()}
        assert {member.path: member.size for member in scan.wheel.members} == seen
        assert archive.testzip() is None


def elf(data: bytes) -> None:
    """Facts and symbols."""
    read_elf(data, name="x.so")
    read_symbols(BufferSource(data), name="x.so")


def elf_edit(data: bytes) -> None:
    """An edit that is planned is one that verification accepts, and asked for again it changes nothing."""
    source = BufferSource(data)
    read_elf(source, name="x.so")
    edited = EditedSource(source, plan_edit(source, CHANGE, name="x.so"))
    verify_edit(source, edited, CHANGE, name="x.so")


def device(data: bytes) -> None:
    """GPU code read while it streams is what random access finds; edits that thin stay inside of their container."""
    sections = [(".nv_fatbin", 0, len(data))]
    scanner = DeviceScanner()
    for start in range(0, len(data), 777):
        scanner.feed(start, data[start : start + 777])
    streamed = scanner.finish(sections)
    source = BufferSource(data)
    found = read_device(source, sections)
    if not any(section.damaged for section in found):
        assert streamed == found
    assert [section.damaged is None for section in streamed] == [section.damaged is None for section in found]
    for container in read_containers(source, GpuSection(*sections[0])).containers:
        for edit in ordered_edits(thin_container(container, range(min(1, len(container.entries))))):
            assert container.offset <= edit.offset <= edit.end <= container.offset + container.size


def conda(data: bytes) -> None:
    """A conda package of either format."""
    name = "demo-1.0-0.conda" if data[:2] == b"PK" else "demo-1.0-0.tar.bz2"
    check_conda(scan_conda(data, filename=name))


def texts(data: bytes) -> None:
    """The small files; a RECORD that is read is the same once written and read again."""
    for parse in (parse_metadata, parse_wheel_info, parse_variants):
        try:
            parse(data)
        except AxletreeError:
            continue
    record = parse_record(data)
    assert parse_record(render_record(record)) == record


TARGETS: dict[str, Callable[[bytes], None]] = {
    "wheel": wheel,
    "elf": elf,
    "elf_edit": elf_edit,
    "device": device,
    "conda": conda,
    "texts": texts,
}


def attempt(target: str, data: bytes) -> bool:
    """Whether an input was accepted; anything but a refusal that says something fails the test."""
    try:
        TARGETS[target](data)
    except AxletreeError as error:
        refusal = error
    else:
        return True
    assert refusal.problems
    return False


def seeds(target: str, folder: Path) -> list[bytes]:
    """Real inputs to start from, small ones: compiled and packed on the spot."""
    match target:
        case "wheel":
            core = compiled(folder)
            return [
                wheel_bytes({"demo/__init__.py": b"x = 1\n" * 50, "demo/_core.so": core}),
                wheel_bytes({"demo/a.bin": bytes(70_000)}),
            ]
        case "elf" | "elf_edit":
            crafted = [make_elf(bits=bits, order=order) for bits in (32, 64) for order in ("little", "big")]
            return [compiled(folder), *crafted]
        case "device":
            entries = [fat_entry("sm_80"), fat_entry("sm_90a", 200, flags=0x8011), fat_entry("compute_120", header=80)]
            plain = bundle({"hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-": b"code" * 40})
            return [fat_container(*entries) + fat_container(fat_entry("sm_75")), plain, packed_bundle(plain)]
        case "conda":
            return [conda_bytes(folder)]
        case _:
            return TEXTS


TEXTS = [
    b"Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nRequires-Dist: torch==2.13.0\n\ntext\n",
    b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    b'demo/a.py,sha256=AAAA,10\n"demo/b,c.py",,\n',
    b'{"$schema": "x", "default-priorities": {"namespace": ["nv"]}, "variants": {"a": {"nv": {"x": ["1"]}}}}',
]


def compiled(folder: Path) -> bytes:
    """A small shared library from the machine's compiler."""
    (folder / "x.c").write_text("int y(void); int x(void) { return y() + 1; }\n")
    flags = ["-Wl,-soname,libx.so.1", "-Wl,-rpath,$ORIGIN/lib", "-Wl,--build-id", "-nostdlib", "-Os"]
    subprocess.run(["cc", "-shared", "-fPIC", "x.c", *flags, "-o", "x.so"], cwd=folder, check=True)
    return (folder / "x.so").read_bytes()


def conda_bytes(folder: Path) -> bytes:
    """A small conda package, written by a peer."""
    from conda_package_handling import api  # type: ignore[import-untyped]

    root = folder / "conda"
    (root / "info").mkdir(parents=True, exist_ok=True)
    (root / "lib").mkdir(exist_ok=True)
    (root / "lib/x.txt").write_text("text\n")
    (root / "info/index.json").write_text('{"name": "demo", "version": "1.0", "build": "0", "build_number": 0}')
    (root / "info/paths.json").write_text('{"paths": [], "paths_version": 1}')
    api.create(str(root), ["lib/x.txt", "info/index.json", "info/paths.json"], str(folder / "demo-1.0-0.conda"))
    return (folder / "demo-1.0-0.conda").read_bytes()


def guided() -> None:
    """Entry of the coverage-guided fuzzer: ``python -m support.fuzz TARGET CORPUS [options of libFuzzer]``."""
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

    target = sys.argv.pop(1)
    atheris.instrument_all()
    atheris.Setup(sys.argv, lambda data: attempt(target, data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    guided()
