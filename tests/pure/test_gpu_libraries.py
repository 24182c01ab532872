"""Libraries with the code of some GPUs only: what is moved, what is zeroed, and why; GPU code read from wheels."""

from __future__ import annotations

import io
import random
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.binary.edits import EditedSource
from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.layout import read_links
from axletree.binary.gpu.scan import GpuSection
from axletree.binary.source import BufferSource
from axletree.binary.zip.directory import read_directory
from axletree.core.errors import IntegrityError, UsageError
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.compact import check_thinning, plan_thinning, read_library, thin_library
from axletree.package.gpu.read import is_elf_member, read_file_code, read_member_code
from axletree.package.gpu.thin import ThinRules
from support.device import bundle, packed_bundle
from support.hip_elf import FATBIN_ADDR, PAGE, RELATIVE, make_hip_elf
from support.wheels import make_elf, zip_bytes

PREFIX = "hipv4-amdgcn-amd-amdhsa--"
TARGETS = ("gfx803", "gfx90a:xnack+", "gfx90a:xnack-", "gfx1030")
PLAIN = [bundle({PREFIX + target: f"{n} {target} ".encode() * 900 for target in TARGETS}) for n in range(3)]
MOVABLE = make_hip_elf(PLAIN).data
FIXED = make_hip_elf(PLAIN, words=[0, 0], extra=[(1, RELATIVE, FATBIN_ADDR)]).data
"""Something else than a wrapper points to its code."""
REASON = "something other than a bundle's wrapper points into .hip_fatbin"


def archs(data: bytes) -> list[list[str]]:
    code = read_file_code(BufferSource(data), name="x").code
    return [[entry.arch for entry in container.entries[1:]] for each in code for container in each.containers]


def thinned(data: bytes, *gpus: str, missing: bool = False) -> tuple[bytes, object]:
    result = thin_library(BufferSource(data), name="libdemo.so", gpus=gpus, allow_missing=missing)
    assert result.size == result.source.size
    return result.source.read(0, result.size), result


@settings(max_examples=8)
@given(gpus=st.sets(st.sampled_from(["gfx803", "gfx90a", "gfx1030", "gfx90a:xnack-"]), min_size=1))
def test_what_runs_on_the_wanted_gpus_stays(gpus: set[str]) -> None:
    wanted = [target for target in TARGETS if target in gpus or target.partition(":")[0] in gpus]
    for source in (MOVABLE, FIXED):
        data, _ = thinned(source, *sorted(gpus))
        assert archs(data) == [wanted] * 3
        again, result = thinned(data, *sorted(gpus))
        assert again == data
        assert not result.thinning.changed  # type: ignore[attr-defined]
        for number in range(3):
            for target in TARGETS:
                assert (f"{number} {target} ".encode() * 900 in data) == (target in wanted)


def test_moved_code_makes_the_file_smaller_and_zeroed_code_does_not() -> None:
    moved = thin_library(BufferSource(MOVABLE), name="libdemo.so", gpus=["gfx1030"])
    assert moved.compacted
    assert moved.notes == ()
    assert moved.saved == len(MOVABLE) - moved.size > 3 * 3 * 2 * PAGE
    assert [(each.arch, each.entries, each.kept_entries) for each in moved.archs] == [
        ("gfx90a:xnack+", 3, 0),
        ("gfx90a:xnack-", 3, 0),
        ("gfx803", 3, 0),
        ("gfx1030", 3, 3),
    ]
    zeroed = thin_library(BufferSource(FIXED), name="libdemo.so", gpus=["gfx1030"])
    assert (zeroed.compacted, zeroed.saved, zeroed.size) == (False, 0, len(FIXED))
    assert zeroed.notes == (f"dropped code is replaced with zeros, so the file size does not change: {REASON}",)
    assert zeroed.thinning.changed


def test_nothing_to_drop_changes_nothing() -> None:
    for data, gpus in ((MOVABLE, [name.replace(":xnack+", "") for name in TARGETS]), (make_elf(), ["gfx803"])):
        result = thin_library(BufferSource(data), name="libdemo.so", gpus=gpus)
        assert (result.saved, result.notes, result.thinning.changed) == (0, (), False)
        assert result.source.read(0, result.size) == data


def test_what_a_gpu_needs_and_is_not_there() -> None:
    source, code = BufferSource(MOVABLE), read_library(BufferSource(MOVABLE), name="libdemo.so")
    with pytest.raises(IntegrityError, match=r"code for gfx90a:xnack.*, gfx803, gfx1030 does not run on gfx942"):
        thin_library(source, name="libdemo.so", gpus=["gfx942"], code=code)
    with pytest.raises(UsageError, match="unknown GPU architecture"):
        thin_library(source, name="libdemo.so", gpus=["hopper"], code=code)
    result = thin_library(source, name="libdemo.so", gpus=[parse_gpu("gfx942")], allow_missing=True, code=code)
    assert result.compacted  # the smallest entry stays
    with pytest.raises(IntegrityError, match="damaged ELF file"):
        thin_library(BufferSource(MOVABLE[:2000]), name="libdemo.so", gpus=["gfx803"])


def test_compressed_bundles_are_packed_again_or_named() -> None:
    noise = random.Random(0)
    bodies = [bundle({PREFIX + target: noise.randbytes(9000) for target in TARGETS}) for _ in range(3)]
    packed = [packed_bundle(body) + bytes(100) for body in bodies]
    data, result = thinned(make_hip_elf(packed).data, "gfx803")
    assert result.compacted  # type: ignore[attr-defined]
    assert archs(data) == [["gfx803"]] * 3
    fixed = make_hip_elf([*packed, PLAIN[0]], words=[0, 0], extra=[(1, RELATIVE, FATBIN_ADDR)]).data
    whole = thin_library(BufferSource(fixed), name="libdemo.so", gpus=["gfx803"])
    assert whole.notes == (
        "3 compressed offload bundles in .hip_fatbin remain unchanged: each is compressed as a single block",
        f"dropped code is replaced with zeros, so the file size does not change: {REASON}",
    )


def test_names_are_changed_after_that() -> None:
    change = ElfChange(soname="libother.so", rpath=("$ORIGIN", "$ORIGIN/../" + "far/" * 30))
    for data in (MOVABLE, FIXED):
        result = thin_library(BufferSource(data), name="libdemo.so", gpus=["gfx803"], change=change)
        links = read_links(result.source)
        assert (links.soname, links.rpath or links.runpath) == ("libother.so", change.rpath)
        original = result.thinning.source(BufferSource(data))
        again = EditedSource(original, result.edits)
        assert again.read(0, again.size) == result.source.read(0, result.size)


def test_a_result_that_is_not_what_was_planned_is_refused() -> None:
    rules = ThinRules(gpus=(parse_gpu("gfx1030"),))
    for data, message in (
        (MOVABLE, "moving the GPU code would damage the file"),
        (FIXED, "still contain code for gfx803"),
    ):
        source = BufferSource(data)
        code = read_library(source, name="libdemo.so")
        thinning = plan_thinning(code, rules, name="libdemo.so")
        check_thinning(source, thinning.source(source), code, thinning, name="libdemo.so")
        with pytest.raises(IntegrityError, match=message):
            check_thinning(source, source, code, thinning, name="libdemo.so")


ARCHIVE = {
    "demo/libdemo.so": MOVABLE,
    "demo/plain.so": make_elf(),
    "demo/text.py": b"\x7fEL and no more",
    "demo/empty": b"",
}


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_members_are_read_as_files_are(method: int) -> None:
    data = zip_bytes(ARCHIVE, method=method)
    view = memoryview(data)
    entries = {entry.name: entry for entry in read_directory(view)}
    assert {name for name, entry in entries.items() if is_elf_member(view, entry)} == {
        "demo/libdemo.so",
        "demo/plain.so",
    }
    for name in ("demo/libdemo.so", "demo/plain.so"):
        member = read_member_code(view, entries[name], archive="demo.whl")
        assert member == read_file_code(BufferSource(ARCHIVE[name]), name=name)
        assert (member.path, member.size, member.ratios) == (name, len(ARCHIVE[name]), ())


def test_a_member_that_does_not_inflate_is_no_elf_file_and_a_damaged_one_is_refused() -> None:
    data = bytearray(zip_bytes(ARCHIVE))
    entry = next(each for each in read_directory(bytes(data)) if each.name == "demo/libdemo.so")
    data[entry.data] = 0xFF
    assert not is_elf_member(memoryview(bytes(data)), entry)
    with pytest.raises(IntegrityError, match=r"demo\.whl"):
        read_member_code(memoryview(bytes(data)), entry, archive="demo.whl")


def test_samples_tell_how_well_a_section_compresses() -> None:
    """Zeros in front, noise behind, in MiBs: each sample speaks of its own place, stream or file."""
    noise = random.Random(0).randbytes(2 << 20)
    content = [bundle({PREFIX + "gfx803": bytes(2 << 20)}), bundle({PREFIX + "gfx803": noise})]
    data = make_hip_elf(content).data
    file = read_file_code(BufferSource(data), name="demo/libdemo.so", sample=True)
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("demo/libdemo.so", data)
    view = memoryview(sink.getvalue())
    member = read_member_code(view, read_directory(view)[0], archive="demo.whl", sample=True)
    assert len(file.ratios) == len(data) >> 20
    for read in (file, member):
        assert len(read.ratios) >= 3
        zeros, mixed = GpuSection("x", 4096, 1 << 20), GpuSection("x", 4096, len(data) - 8192)
        assert read.ratio(zeros) < 0.01
        assert read.ratio(GpuSection("x", 3 << 20, 1 << 20)) > 0.9
        assert 0.2 < read.ratio(mixed) < 0.8
    bare = read_file_code(BufferSource(make_elf()), name="x", sample=True)
    assert bare.ratio(GpuSection("x", 0, 100)) == 1.0
