"""Libraries thinned for AMD GPUs: smaller, loaded as before, and each wrapper finds its kernels."""

from __future__ import annotations

import hashlib
import random
import re
import shutil
import struct
import subprocess
import zlib
from typing import TYPE_CHECKING

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axletree.binary.edits import EditedSource, iter_source
from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.layout import SHT_NOBITS, read_image
from axletree.binary.gpu.compact import Compaction, plan_compaction
from axletree.binary.gpu.hip import parse_table
from axletree.binary.gpu.registered import Registered, read_registered
from axletree.binary.gpu.scan import GpuSection, read_containers
from axletree.binary.gpu.verify import verify_compaction
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError, UsageError
from axletree.host.edit import edit_elf
from axletree.host.sources import DiskSource
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.compact import ThinLibrary, read_library, thin_library
from axletree.package.gpu.thin import ThinRules, thin_file
from support.device import bundle, packed_bundle
from support.elfs import complaints, load, need, run
from support.hip_library import PREFIX, TARGETS, bundles, code_object, hip_library, registered_code

if TYPE_CHECKING:
    from pathlib import Path

LAYOUTS = {
    "plain": (),
    "joined": ("-Wl,-z,noseparate-code",),
    "pages-64k": ("-Wl,-z,max-page-size=65536",),
    "no-build-id": ("-Wl,--build-id=none",),
    "stripped": ("-s",),
    "relr": ("-Wl,-z,pack-relative-relocs",),
    "gold": ("-fuse-ld=gold",),
    "lld": ("-fuse-ld=lld",),
    "lld-filled": ("-fuse-ld=lld", "-Wl,--apply-dynamic-relocs"),
    "mold": ("-fuse-ld=mold",),
}
LONG = ("$ORIGIN", "$ORIGIN/../../some/other/library/far/away/that/has/a/long/name")
COUNT = 5


def thinned(path: Path, out: Path, *gpus: str, change: ElfChange | None = None, missing: bool = False) -> ThinLibrary:
    """Thin a file on disk into another."""
    with DiskSource(path) as source:
        result = thin_library(source, name=path.name, gpus=gpus, change=change, allow_missing=missing)
        with out.open("xb") as sink:
            for chunk in iter_source(result.source):
                sink.write(chunk)
    shutil.copymode(path, out)
    assert out.stat().st_size == result.size
    return result


def kernels(data: bytes) -> dict[str, bytes]:
    """Target -> code of a bundle; each piece lies at a multiple of a page and in the bundle."""
    rows = parse_table(data)
    assert rows is not None
    assert all(row.offset and row.offset + row.size <= len(data) for row in rows)
    assert all(row.offset % 4096 == 0 for row in rows if row.size)
    return {row.id.removeprefix(PREFIX): data[row.offset : row.offset + row.size] for row in rows if row.size}


def sizes(path: Path) -> list[int]:
    """Bytes of each bundle; up to the next one where it does not tell."""
    with DiskSource(path) as source:
        code = read_library(source, name=path.name)
        (section,) = code.file.code
        ends = [*(each.offset for each in section.containers[1:]), section.section.offset + section.section.size]
        return [
            container.size if container.size > 20 else end - container.offset
            for container, end in zip(section.containers, ends, strict=True)
        ]


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of each layout that linkers make."""
    flags = LAYOUTS[request.param]
    for flag in flags:
        if flag.startswith("-fuse-ld="):
            need(f"ld.{flag.partition('=')[2]}")
    return hip_library(tmp_path_factory.mktemp(request.param) / "libdemo.so", bundles(COUNT), *flags)


@pytest.mark.parametrize("gpu", ["gfx1030", "gfx90a"])
def test_every_wrapper_finds_its_kernels(layout: Path, tmp_path: Path, gpu: str) -> None:
    result = thinned(layout, tmp_path / "libthin.so", gpu, change=ElfChange(rpath=LONG))
    out = tmp_path / "libthin.so"
    assert (result.compacted, result.notes) == (True, ())
    kept = [target for target in TARGETS if target.startswith(gpu)]
    dropped = COUNT * 3 * 4096 * (len(TARGETS) - len(kept))
    page = 65536 if layout.parent.name.startswith("pages-64k") else 4096
    assert dropped - page - 4096 <= result.saved <= dropped
    assert load(out) == 42
    assert not complaints(out)
    found = registered_code(out, sizes(out))
    assert [kernels(data) for data in found] == [
        {target: code_object(number, target) for target in kept} for number in range(COUNT)
    ]
    assert out.stat().st_size <= layout.stat().st_size - result.saved + (16 << 10)


def test_symbols_of_bundles_follow(layout: Path, tmp_path: Path) -> None:
    thinned(layout, tmp_path / "libthin.so", "gfx803")
    before, after = symbols(layout), symbols(tmp_path / "libthin.so")
    assert [name for name, _ in before] == [name for name, _ in after]
    if before:
        with DiskSource(tmp_path / "libthin.so") as source:
            registered = read_library(source, name="libthin.so").registered
            assert isinstance(registered, Registered)
            addresses = [registered.address(container) for container in registered.containers]
        assert [address for _, address in after] == addresses


def symbols(path: Path) -> list[tuple[str, int]]:
    listing = run("readelf", "-sW", path)
    found = re.findall(r"^\s*\d+: ([0-9a-f]+) .* (__hip_fatbin_\d+)$", listing, re.MULTILINE)
    return sorted((name, int(value, 16)) for value, name in found)


@pytest.mark.parametrize("tool", [("strip", "--strip-unneeded"), ("objcopy",), ("patchelf", "--set-rpath", "/x" * 90)])
def test_other_tools_can_go_on(layout: Path, tmp_path: Path, tool: tuple[str, ...]) -> None:
    need(tool[0])
    out = tmp_path / "libthin.so"
    thinned(layout, out, "gfx90a")
    wanted = registered_code(out, sizes(out))
    run(*tool, out)
    assert load(out) == 42
    assert registered_code(out, sizes(out)) == wanted


def test_what_another_tool_has_changed(layout: Path, tmp_path: Path) -> None:
    need("patchelf")
    copy = tmp_path / "libdemo.so"
    shutil.copy(layout, copy)
    edit_elf(copy, ElfChange(rpath=LONG))
    run("patchelf", "--force-rpath", "--set-rpath", "/x" * 700, copy)
    out = tmp_path / "libthin.so"
    result = thinned(copy, out, "gfx90a", change=ElfChange(rpath=("$ORIGIN",)))
    assert (load(out), run("patchelf", "--print-rpath", out).strip()) == (42, "$ORIGIN")
    assert all(set(kernels(data)) == set(TARGETS[1:3]) for data in registered_code(out, sizes(out)))
    assert result.compacted


def test_the_host_part_is_the_same_for_all_gpus(layout: Path, tmp_path: Path) -> None:
    """But for the headers and pointers: what a linker or a debugger reads of all other sections."""
    listings = []
    for gpu in ("gfx803", "gfx90a"):
        out = tmp_path / f"lib{gpu}.so"
        thinned(layout, out, gpu)
        digests = {}
        for name in (".text", ".rodata", ".eh_frame", ".dynsym", ".dynstr", ".gnu.hash", ".data", ".init_array"):
            dump = tmp_path / "section"
            done = subprocess.run(["objcopy", "-O", "binary", "-j", name, out, dump], capture_output=True, check=False)
            digests[name] = hashlib.sha256(dump.read_bytes()).hexdigest() if done.returncode == 0 else ""
        listings.append(digests)
    assert listings[0] == listings[1]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hip_library(tmp_path_factory.mktemp("plain") / "libdemo.so", bundles(COUNT))


def test_bundles_that_were_zeroed_before_are_compacted(plain: Path, tmp_path: Path) -> None:
    """The zeros between what an older thinning left go, too."""
    with DiskSource(plain) as source:
        code = read_library(source, name="libdemo.so")
        zeroed = thin_file(code.file.code, ThinRules(gpus=(parse_gpu("gfx90a"),)), name="libdemo.so")
        data = EditedSource(source, zeroed.edits).read(0, source.size)
    (tmp_path / "libzeroed.so").write_bytes(data)
    result = thinned(tmp_path / "libzeroed.so", tmp_path / "libthin.so", "gfx90a")
    direct = thinned(plain, tmp_path / "libdirect.so", "gfx90a")
    assert result.compacted
    assert (tmp_path / "libthin.so").read_bytes() == (tmp_path / "libdirect.so").read_bytes()
    assert result.saved == direct.saved


def test_thinning_twice_is_thinning_once(plain: Path, tmp_path: Path) -> None:
    thinned(plain, tmp_path / "libboth.so", "gfx90a", "gfx803")
    thinned(tmp_path / "libboth.so", tmp_path / "libthin.so", "gfx803")
    again = thinned(tmp_path / "libthin.so", tmp_path / "libagain.so", "gfx803")
    assert (again.saved, again.compacted, again.notes) == (0, False, ())
    assert (tmp_path / "libthin.so").read_bytes() == (tmp_path / "libagain.so").read_bytes()
    assert load(tmp_path / "libthin.so") == 42
    found = registered_code(tmp_path / "libthin.so", sizes(tmp_path / "libthin.so"))
    assert [set(kernels(data)) for data in found] == [{"gfx803"}] * COUNT


@pytest.mark.parametrize("method", [0, 1])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundles_are_packed_again(tmp_path: Path, version: int, method: int) -> None:
    plain = [noisy_bundle(number) for number in range(COUNT)]
    content = [packed_bundle(data, version=version, method=method) for data in plain]
    content[1] = plain[1]
    path = hip_library(tmp_path / "libdemo.so", content)
    result = thinned(path, tmp_path / "libthin.so", "gfx90a", change=ElfChange(rpath=LONG))
    assert (result.compacted, result.notes) == (True, ())
    assert result.saved > 0.4 * sum(map(len, content))
    assert load(tmp_path / "libthin.so") == 42
    found = registered_code(tmp_path / "libthin.so", sizes(tmp_path / "libthin.so"))
    head = {1: "<4s2HI8s", 2: "<4s2HII8s", 3: "<4s2HQQ8s"}[version]
    for number, data in enumerate(found):
        whole = data
        if number != 1:
            magic, *kind, unpacked, told = (*struct.unpack_from(head, data)[:3], *struct.unpack_from(head, data)[-2:])
            stream = data[struct.calcsize(head) :]
            whole = zstandard.ZstdDecompressor().decompressobj().decompress(stream) if method else unzip(stream)
            assert (magic, *kind, unpacked) == (b"CCOB", version, method, len(whole))
            assert hashlib.md5(whole, usedforsecurity=False).digest()[:8] == told
        wanted = {target: code for target, code in kernels(plain[number]).items() if target.startswith("gfx90a")}
        assert kernels(whole) == wanted


def unzip(stream: bytes) -> bytes:
    return zlib.decompressobj().decompress(stream)


def noisy_bundle(number: int) -> bytes:
    """A bundle that does not compress."""
    chance = random.Random(number)
    return bundle({PREFIX + target: chance.randbytes(9000) for target in TARGETS})


def test_compressed_bundles_that_nothing_leaves_move_as_they_are(tmp_path: Path) -> None:
    content = [bundles(COUNT)[0], *(packed_bundle(noisy_bundle(number), version=1) for number in range(COUNT))]
    path = hip_library(tmp_path / "libdemo.so", content)
    thinned(path, tmp_path / "libonce.so", "gfx90a")
    thinned(tmp_path / "libonce.so", tmp_path / "libtwice.so", "gfx90a", "gfx1030", missing=True)
    assert (tmp_path / "libonce.so").read_bytes() == (tmp_path / "libtwice.so").read_bytes()


@pytest.mark.parametrize("version", [2, 3])
def test_a_compressed_bundle_that_does_not_unpack_is_left_as_it_is(tmp_path: Path, version: int) -> None:
    content = [packed_bundle(noisy_bundle(number), version=version) for number in range(COUNT)]
    content.append(bundles(1)[0])
    place = {2: 12, 3: 16}[version]  # of the unpacked size
    content[2] = content[2][:place] + bytes([content[2][place] + 1]) + content[2][place + 1 :]
    path = hip_library(tmp_path / "libdemo.so", content)
    result = thinned(path, tmp_path / "libthin.so", "gfx90a")
    assert (result.compacted, result.saved) == (False, 0)
    assert "the compressed offload bundle at offset" in result.notes[-1]
    assert "decompresses to" in result.notes[-1]
    assert f"{COUNT} compressed offload bundles" in result.notes[0]
    assert registered_code(tmp_path / "libthin.so", sizes(tmp_path / "libthin.so"))[2] == content[2]


def test_code_at_the_end_of_its_segment_needs_no_other(tmp_path: Path) -> None:
    script = tmp_path / "last.ld"
    script.write_text("SECTIONS { .hip_fatbin : ALIGN(4096) { *(.hip_fatbin) } } INSERT AFTER .eh_frame;")
    path = hip_library(tmp_path / "libdemo.so", bundles(COUNT), f"-Wl,-T,{script}")
    out = tmp_path / "libthin.so"
    result = thinned(path, out, "gfx90a")
    assert result.compacted
    images = [read_image(BufferSource(each.read_bytes())) for each in (path, out)]
    assert len(images[0].programs) == len(images[1].programs)
    assert images[0].sections[1].offset == images[1].sections[1].offset
    assert (load(out), complaints(out)) == (42, "")
    assert [set(kernels(data)) for data in registered_code(out, sizes(out))] == [set(TARGETS[1:3])] * COUNT


def test_bundles_with_a_symbol_for_the_loader_move(layout: Path, tmp_path: Path) -> None:
    """As ``__hip_fatbin`` of relocatable device code; whether linkers still relate the wrapper to it differs."""
    more = '__asm__(".globl seen\\n.type seen,@object\\n.set seen,__hip_fatbin_3\\n"); extern const char seen[];'
    more += 'static struct wrapper again __attribute__((section(".hipFatBinSegment"), used)) = '
    more += "{0x48495046, 1, seen, 0}; const void *code_5(void) { return *(const void *volatile *)&again.binary; }"
    flags = LAYOUTS[re.sub(r"\d+$", "", layout.parent.name)]
    path, out = hip_library(tmp_path / "libdemo.so", bundles(COUNT), *flags, more=more), tmp_path / "libthin.so"
    assert thinned(path, out, "gfx1030", change=ElfChange(rpath=LONG)).compacted
    found = registered_code(out, [*sizes(out), sizes(out)[3]])
    assert [kernels(data)["gfx1030"] for data in found] == [code_object(each, "gfx1030") for each in (0, 1, 2, 3, 4, 3)]
    code = "import ctypes, sys; library = ctypes.CDLL(sys.argv[1]); library.code_3.restype = ctypes.c_void_p; "
    code += "print(ctypes.addressof(ctypes.c_char.in_dll(library, 'seen')) == library.code_3())"
    assert run("python3", "-c", code, out) == "True\n"
    assert not complaints(out)


def test_several_wrappers_of_one_bundle_follow(tmp_path: Path) -> None:
    """As in relocatable device code, where each object has a wrapper."""
    more = (
        'static struct wrapper again __attribute__((section(".hipFatBinSegment"), used)) = '
        "{0x48495046, 1, __hip_fatbin_1, 0};"
        "const void *code_2(void) { return *(const void *volatile *)&again.binary; }"
    )
    path = hip_library(tmp_path / "libdemo.so", bundles(2), more=more)
    out = tmp_path / "libthin.so"
    assert thinned(path, out, "gfx1030").compacted
    found = registered_code(out, [*sizes(out), sizes(out)[1]])
    assert [kernels(data) for data in found] == [{"gfx1030": code_object(each, "gfx1030")} for each in (0, 1, 1)]


REFUSED = {
    "something other than a bundle's wrapper": "const void *elsewhere = __hip_fatbin_1;",
    "a symbol points into the middle of a bundle": (
        '__asm__(".pushsection .hip_fatbin\\n.globl seen\\n.type seen,@object\\nseen:\\n.popsection");'
    ),
    "have no relocation that points to them": (
        '__asm__(".pushsection .hip_fatbin,\\"a\\",@progbits\\n.p2align 12\\n.incbin \\"%s\\"\\n.popsection");'
    ),
    "points into .hip_fatbin, but not to the start of a bundle": (
        'static struct wrapper odd __attribute__((section(".hipFatBinSegment"), used)) = '
        "{0x48495046, 1, __hip_fatbin_1 + 4096, 0};"
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_may_be_pointed_to_is_zeroed_in_place(tmp_path: Path, reason: str) -> None:
    (tmp_path / "more.bundle").write_bytes(bundles(1)[0])
    more = REFUSED[reason].replace("%s", str(tmp_path / "more.bundle"))
    path = hip_library(tmp_path / "libdemo.so", bundles(3), more=more)
    result = thinned(path, tmp_path / "libthin.so", "gfx90a", change=ElfChange(rpath=LONG))
    assert (result.compacted, result.saved) == (False, 0)
    (note,) = result.notes
    assert note.startswith("dropped code is replaced with zeros, so the file size does not change: ")
    assert reason in note
    assert load(tmp_path / "libthin.so") == 42
    assert result.size >= path.stat().st_size
    assert all(
        set(kernels(data)) == set(TARGETS[1:3]) for data in registered_code(tmp_path / "libthin.so", [1 << 16] * 3)
    )


def test_a_program_at_a_fixed_address_is_zeroed_in_place(tmp_path: Path) -> None:
    library = hip_library(tmp_path / "libdemo.so", bundles(2))
    code = library.with_suffix(".c").read_text() + "\nint main(void) { return answer(-42.0); }\n"
    (tmp_path / "main.c").write_text(code)
    for name, flags in (("fixed", ("-no-pie", "-fno-pie")), ("movable", ("-pie", "-fPIE"))):
        run("gcc", *flags, tmp_path / "main.c", "-o", tmp_path / name)
        result = thinned(tmp_path / name, tmp_path / f"thin-{name}", "gfx803")
        assert result.compacted == (name == "movable")
        assert name == "movable" or "fixed address" in result.notes[0]
        run(tmp_path / f"thin-{name}")


def test_what_a_gpu_needs_and_is_not_there_is_refused(plain: Path) -> None:
    with DiskSource(plain) as source:
        code = read_library(source, name="libdemo.so")
        with pytest.raises(
            IntegrityError, match=r"code for gfx90a:xnack\+, gfx90a:xnack-, gfx803, gfx1030 does not run on gfx942"
        ):
            thin_library(source, name="libdemo.so", gpus=["gfx942"], code=code)
        with pytest.raises(UsageError, match="unknown GPU architecture"):
            thin_library(source, name="libdemo.so", gpus=["hopper"], code=code)
        result = thin_library(source, name="libdemo.so", gpus=["gfx942"], allow_missing=True, code=code)
        assert result.compacted


def test_spoilt_results_are_found(plain: Path) -> None:
    """Every byte of the result that a loader, a linker or a GPU reads is checked; sampled over the file."""
    source = BufferSource(plain.read_bytes())
    code = read_library(source, name="libdemo.so")
    registered = code.registered
    assert isinstance(registered, Registered)
    kept = {container.offset: (2,) for container in registered.containers}
    compaction = plan_compaction(source, registered, kept)
    assert isinstance(compaction, Compaction)
    data = compaction.source(source).read(0, compaction.size)
    verify_compaction(source, BufferSource(data), registered, kept, compaction)
    start = compaction.section.offset
    checked = {start + 40, start + 3 * 4096, 40, 56, 64 + 8}
    sections = read_image(BufferSource(data)).sections
    checked |= {each.offset for each in sections if each.size and each.type not in {0, SHT_NOBITS}}
    for place in sorted(checked):
        spoilt = bytearray(data)
        spoilt[place] ^= 0x41
        with pytest.raises(IntegrityError):
            verify_compaction(source, BufferSource(bytes(spoilt)), registered, kept, compaction)
    with pytest.raises(IntegrityError):
        verify_compaction(source, BufferSource(data[:-1]), registered, kept, compaction)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_files_are_refused_or_come_out_sound(plain: Path, data: st.DataObject) -> None:
    """Bytes of headers, tables and relocations are changed: no other error, and nothing that was not checked."""
    content = bytearray(plain.read_bytes())
    sections = read_image(BufferSource(bytes(content))).sections
    tables = [(0, 0x400), *((each.offset, each.offset + each.size) for each in sections if each.type in {4, 6, 11, 2})]
    tables.append((len(content) - 64 * len(sections), len(content)))
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = data.draw(st.sampled_from(tables))
        content[data.draw(st.integers(start, end - 1))] = data.draw(st.sampled_from([0, 1, 2, 0x20, 0x7F, 0x80, 0xFF]))
    source = BufferSource(bytes(content))
    try:
        result = thin_library(source, name="libdemo.so", gpus=["gfx90a"], change=ElfChange(rpath=("$ORIGIN",)))
    except IntegrityError:
        return
    assert result.source.read(0, result.size)[:4] == b"\x7fELF"


SLOT = 1 << 16
CODES = st.dictionaries(st.sampled_from(TARGETS), st.binary(min_size=1, max_size=9000), min_size=1)


@pytest.fixture(scope="module")
def slots(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library with room for four bundles of any content."""
    filled = [bundle({PREFIX + "gfx803": bytes(SLOT)})[:SLOT] for _ in range(4)]
    return hip_library(tmp_path_factory.mktemp("slots") / "libdemo.so", filled).read_bytes()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(contents=st.lists(CODES, min_size=4, max_size=4), data=st.data(), align=st.sampled_from([16, 256, 4096]))
def test_any_bundles_come_out_as_they_went_in(
    slots: bytes, contents: list[dict[str, bytes]], data: st.DataObject, align: int
) -> None:
    start = slots.index(b"__CLANG_OFFLOAD_BUNDLE__")
    filled = bytearray(slots)
    for number, codes in enumerate(contents):
        body = bundle({PREFIX + target: code for target, code in codes.items()}, align=align)
        filled[start + number * SLOT : start + (number + 1) * SLOT] = body + bytes(SLOT - len(body))
    source = BufferSource(bytes(filled))
    code = read_containers(source, GpuSection(".hip_fatbin", start, 4 * SLOT))
    registered = read_registered(source, [code])
    assert isinstance(registered, Registered)
    kept = {
        container.offset: tuple(data.draw(st.sets(st.integers(0, len(container.entries) - 1))))
        for container in registered.containers
    }
    compaction = plan_compaction(source, registered, kept)
    assert isinstance(compaction, Compaction)
    result = compaction.source(source)
    verify_compaction(source, result, registered, kept, compaction)
    after = read_containers(result, compaction.section)
    for number, (before, container) in enumerate(zip(code.containers, after.containers, strict=True)):
        wanted = [e.arch for i, e in enumerate(before.entries) if i in kept[before.offset] or e.arch == "host"]
        assert [entry.arch for entry in container.entries] == wanted
        for entry in container.entries:
            assert entry.arch == "host" or result.read(entry.offset, entry.size) == contents[number][entry.arch]
            assert entry.arch == "host" or (entry.offset - container.offset) % align == 0
