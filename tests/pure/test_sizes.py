"""Where the bytes are: sums of files, sections and GPU code that lose nothing and come in one order."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.binary.elf.facts import ElfFacts, SectionSize, read_elf
from axletree.binary.gpu.code import DeviceCode, DeviceSection
from axletree.package.sizes import PartSize, SizedFile, UnloadedSize, measure_sizes
from support.device import bundle
from support.hip_elf import make_hip_elf
from support.wheels import make_elf

NAMES = st.sampled_from(["torch", "lib", "include", "a.so", "b.py", "c", "d"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
SECTIONS = st.builds(
    SectionSize, name=st.sampled_from([".text", ".data", ".debug_info"]), size=st.integers(1, 99), loaded=st.booleans()
)
CODE = st.builds(
    DeviceCode,
    section=st.sampled_from([".nv_fatbin", ".hip_fatbin"]),
    arch=st.sampled_from(["sm_90", "sm_100", "gfx90a"]),
    form=st.sampled_from(["binary", "intermediate"]),
    packing=st.sampled_from(["none", "zstd"]),
    count=st.integers(1, 9),
    size=st.integers(1, 99),
    unpacked=st.integers(0, 99),
    containers=st.just(1),
)
FACTS = st.builds(
    ElfFacts,
    bits=st.just(64),
    order=st.just("little"),
    kind=st.just("shared"),
    machine=st.just(62),
    symbol_table=st.integers(0, 9),
    debug=st.integers(0, 9),
    sections=st.lists(SECTIONS, max_size=4).map(tuple),
    device=st.lists(
        st.builds(
            DeviceSection,
            section=st.just(".nv_fatbin"),
            containers=st.just(1),
            size=st.integers(1, 99),
            code=st.lists(CODE, max_size=4).map(tuple),
            damaged=st.sampled_from([None, "cut off"]),
        ),
        max_size=2,
    ).map(tuple),
)
FILES = st.lists(
    st.builds(
        SizedFile,
        path=PATHS,
        size=st.integers(0, 1000),
        compressed=st.integers(0, 1000),
        facts=st.one_of(st.none(), FACTS),
    ),
    max_size=15,
)


@settings(max_examples=25)
@given(files=FILES, seed=st.integers())
def test_nothing_is_lost_and_the_order_of_files_is_nothing(files: list[SizedFile], seed: int) -> None:
    report = measure_sizes(files, name="x", compressed=7)
    assert (report.files, report.size) == (len(files), sum(file.size for file in files))
    assert sum(part.files for part in report.parts) == report.files
    assert sum(part.size for part in report.parts) == report.size
    assert sum(part.compressed for part in report.parts) == sum(file.compressed for file in files)
    assert all(part.path.count("/") <= 1 for part in report.parts)
    facts = [file.facts for file in files if file.facts is not None]
    assert sum(each.size for each in report.sections) == sum(each.size for fact in facts for each in fact.sections)
    codes = [code for fact in facts for section in fact.device for code in section.code]
    assert sum(each.entries for each in report.archs) == sum(code.count for code in codes)
    assert sum(each.size for each in report.archs) == sum(code.size for code in codes)
    assert sum(each.unpacked for each in report.archs) == sum(code.unpacked for code in codes)
    assert len({(each.section, each.arch, each.form) for each in report.archs}) == len(report.archs)
    assert report.strippable == sum(fact.symbol_table + fact.debug for fact in facts)
    assert len(report.damaged) == sum(section.damaged is not None for fact in facts for section in fact.device)
    for row in (report.parts, report.largest, report.sections):
        sizes = [each.size for each in row]
        assert sizes == sorted(sizes, reverse=True)
    shuffled = list(files)
    random.Random(seed).shuffle(shuffled)
    again = measure_sizes(shuffled, name="x", compressed=7)
    assert (again.parts, again.sections, again.strippable) == (report.parts, report.sections, report.strippable)


def test_folders_two_deep_and_single_files() -> None:
    files = [
        SizedFile(path=path, size=size, compressed=size // 2)
        for path, size in (
            ("torch/lib/libtorch.so", 100),
            ("torch/lib/cuda/libx.so", 50),
            ("torch/__init__.py", 10),
            ("six.py", 10),
        )
    ]
    report = measure_sizes(files, name="torch.whl", compressed=60, damaged=["torch/y.so: no ELF file"])
    assert report.parts == (
        PartSize(path="torch/lib", files=2, size=150, compressed=75),
        PartSize(path="six.py", files=1, size=10, compressed=5),
        PartSize(path="torch", files=1, size=10, compressed=5),
    )
    assert [each.path for each in report.largest] == [files[0].path, files[1].path, "six.py", "torch/__init__.py"]
    assert (report.input, report.compressed, report.packed) == ("torch.whl", 60, True)
    assert report.damaged == ("torch/y.so: no ELF file",)
    folder = measure_sizes(files, name="torch")
    assert (folder.compressed, folder.packed) == (170, False)


def test_ten_single_files_are_named() -> None:
    report = measure_sizes([SizedFile(path=f"f{n}", size=n, compressed=n) for n in range(12)], name="x")
    assert [each.size for each in report.largest] == list(range(11, 1, -1))


def test_what_is_said_of_real_files() -> None:
    """A library with GPU code and symbols, read by our reader: its sections, architectures and what strip takes."""
    prefix = "hipv4-amdgcn-amd-amdhsa--"
    hip = make_hip_elf([bundle({prefix + "gfx90a": b"a" * 5000, prefix + "gfx1030": b"b" * 3000})] * 2)
    plain = make_elf(symtab=240)
    files = [
        SizedFile(path=f"demo/{name}.so", size=len(data), compressed=len(data), facts=read_elf(data))
        for name, data in (("hip", hip.data), ("plain", plain))
    ]
    report = measure_sizes(files, name="demo")
    assert [(each.section, each.arch, each.entries, each.size) for each in report.archs] == [
        (".hip_fatbin", "gfx90a", 2, 10000),
        (".hip_fatbin", "gfx1030", 2, 6000),
    ]
    sections = {each.name: each for each in report.sections}
    assert (sections[".hip_fatbin"].size, sections[".hip_fatbin"].loaded) == (hip.parts[".hip_fatbin"].size, True)
    symtabs = {(each.loaded, each.files) for each in report.sections if each.name == ".symtab"}
    assert symtabs == {(True, 1), (False, 1)}  # make_elf says that its own is loaded: they are not added up
    symbols = hip.parts[".symtab"].size + hip.parts[".strtab"].size
    assert report.unloaded == (
        UnloadedSize(path="demo/plain.so", symbols=240, debug=8),
        UnloadedSize(path="demo/hip.so", symbols=symbols, debug=0),
    )
    assert report.strippable == 248 + symbols
