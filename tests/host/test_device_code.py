"""GPU code read and thinned by us, against NVIDIA's cuobjdump and binutils."""

from __future__ import annotations

import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from axletree.binary.edits import EditedSource, iter_source
from axletree.binary.gpu.scan import summarise
from axletree.core.errors import IntegrityError
from axletree.host.sources import DiskSource, write_source
from axletree.host.wheels import open_wheel
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.read import DeviceFile, is_elf_member, read_file_code, read_member_code
from axletree.package.gpu.thin import ThinRules, check_thinned, thin_file
from support.cuda import build_library, cuobjdump, find_cuobjdump
from support.inputs import deb, wheel

if TYPE_CHECKING:
    from pathlib import Path

ARCHS = "80 86 90a 100f compute_90"


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return find_cuobjdump(tmp_path_factory.mktemp("cuobjdump"))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("library") / "libk.so", ARCHS, "--compress-mode=size")


def read(path: Path) -> DeviceFile:
    with DiskSource(path) as source:
        return read_file_code(source, name=path.name)


def counts(path: Path) -> Counter[str]:
    """Ours in the words of cuobjdump, which looks into relocatable code only where there is no other."""
    found: Counter[str] = Counter()
    code = read(path).code
    for section in [part for part in code if part.section.name == ".nv_fatbin"] or code:
        for row in summarise(section).code:
            binary = row.form == "binary"
            name = row.arch.rstrip("f") if binary else row.arch.replace("compute_", "ptx_")
            found[name] += row.count
    return found


def thin(path: Path, target: Path, *archs: str) -> Path:
    with DiskSource(path) as source:
        code = read_file_code(source, name=path.name).code
        thinned = thin_file(code, ThinRules(gpus=tuple(parse_gpu(arch) for arch in archs)), name=path.name)
        write_source(target, iter_source(EditedSource(source, thinned.edits)), like=path)
    check_thinned(read(target).code, thinned, name=target.name)
    return target


@pytest.mark.parametrize("option", ["--compress-mode=none", "--compress-mode=speed", "-rdc=true"])
def test_entries_are_counted_as_by_cuobjdump(tmp_path: Path, tool: Path, option: str) -> None:
    path = build_library(tmp_path / "libk.so", "80 103f compute_90", option, kernels=1)
    assert counts(path) == cuobjdump(tool, path)
    assert counts(path)


def test_compression_is_told_entry_by_entry(tmp_path: Path) -> None:
    modes = {"none": {"none"}, "speed": {"none", "lz4"}, "size": {"zstd"}}
    for mode, packings in modes.items():
        file = read(build_library(tmp_path / f"lib{mode}.so", "90 compute_90", f"--compress-mode={mode}", kernels=1))
        assert {code.packing for section in file.code for code in summarise(section).code} == packings


@pytest.mark.parametrize(
    ("archs", "kept"),
    [
        (["90"], {"sm_90a"}),
        (["89"], {"sm_86"}),
        (["103"], {"sm_100"}),
        (["80", "100"], {"sm_80", "sm_100"}),
        (["110"], {"ptx_90"}),
    ],
)
def test_a_thinned_library_holds_what_was_asked_for(
    tmp_path: Path, tool: Path, library: Path, archs: list[str], kept: set[str]
) -> None:
    path = thin(library, tmp_path / library.name, *archs)
    before, after = cuobjdump(tool, library), cuobjdump(tool, path)
    assert after == Counter({name: count for name, count in before.items() if name in kept})
    assert counts(path) == after
    assert tables(path) == tables(library)


def tables(path: Path) -> str:
    """All that readelf says of the host part."""
    done = subprocess.run(["readelf", "-aW", path.name], cwd=path.parent, capture_output=True, text=True, check=True)
    return done.stdout


def test_thinning_twice_changes_nothing(tmp_path: Path, library: Path) -> None:
    once = thin(library, tmp_path / "once.so", "86")
    twice = thin(once, tmp_path / "twice.so", "86")
    assert twice.read_bytes() == once.read_bytes()


@pytest.mark.slow
def test_rocsparse_has_111_bundles_of_seven_targets(tmp_path: Path) -> None:
    path = max(deb("librocsparse0").rglob("librocsparse.so.*"), key=lambda found: found.stat().st_size)
    with DiskSource(path) as source:
        code = read_file_code(source, name=path.name).code
        (section,) = [summarise(part) for part in code]
        assert (section.section, section.containers, section.damaged) == (".hip_fatbin", 111, None)
        targets = "gfx803 gfx900:xnack- gfx906:xnack- gfx908:xnack- gfx90a:xnack- gfx90a:xnack+ gfx1030"
        assert {row.arch: row.count for row in section.code} == dict.fromkeys(targets.split(" "), 111)
        thinned = thin_file(code, ThinRules(gpus=(parse_gpu("gfx90a:xnack-"),)), name=path.name)
        edited = EditedSource(source, thinned.edits)
        again = read_file_code(edited, name=path.name)
        check_thinned(again.code, thinned, name=path.name)
        assert {entry.arch for part in again.code for found in part.containers for entry in found.entries} == {
            "host",
            "gfx90a:xnack-",
        }
        for before, after in zip(code[0].containers, again.code[0].containers, strict=True):
            kept = next(entry for entry in after.entries if entry.arch != "host")
            original = next(entry for entry in before.entries if entry.id == kept.id)
            assert (kept.offset, kept.size) == (original.offset, original.size)
            assert edited.read(kept.offset, 4096) == source.read(kept.offset, 4096)
    assert 0.13 < 1 - thinned.dropped / section.size < 0.15


@pytest.mark.slow
@pytest.mark.xdist_group("torch-cuda")
def test_the_official_torch_has_what_cuobjdump_lists() -> None:
    """Counts of its largest library as cuobjdump lists them (in 12 s and 5.9 GB), and what thinning it keeps."""
    archive = wheel("torch==2.14.1")
    with_code = {}
    opened = open_wheel(archive)
    for entry in opened.entries:
        if entry.name.endswith(("libtorch_cuda.so", "libtorch_cuda_linalg.so")):
            assert is_elf_member(opened.view, entry)
            with_code[entry.name] = read_member_code(opened.view, entry, archive=archive.name)
    if not with_code:
        pytest.skip(f"{archive.name} is not for CUDA")
    library = with_code["torch/lib/libtorch_cuda.so"]
    (section,) = [summarise(part) for part in library.code]
    assert (section.containers, section.damaged) == (475, None)
    assert {code.arch: code.count for code in section.code} == {
        **dict.fromkeys(("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"), 475),
        "sm_89": 1,
        "sm_90a": 4,
        "sm_100a": 59,
        "sm_103f": 59,
        "sm_120a": 1,
        "sm_121a": 1,
    }
    kept = {
        gpu: {part.arch: part.kept_entries for part in thin_file(library.code, rules, name="x").archs if part.kept_size}
        for gpu in ("89", "90", "103", "121")
        for rules in [ThinRules(gpus=(parse_gpu(gpu),))]
    }
    assert kept == {
        "89": {"sm_86": 474, "sm_89": 1},
        "90": {"sm_90": 475, "sm_90a": 4},
        "103": {"sm_100": 475, "sm_103f": 59},
        "121": {"sm_120": 475, "sm_121a": 1},
    }
    linalg = with_code["torch/lib/libtorch_cuda_linalg.so"]
    with pytest.raises(IntegrityError, match=r"65 containers in \.nv_fatbin"):
        thin_file(linalg.code, ThinRules(gpus=(parse_gpu("75"),)), name=linalg.path)
