"""The ELF reader against pyelftools and readelf, on real libraries of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from axletree.binary.elf.facts import ElfFacts, read_elf
from axletree.core.errors import HostError
from axletree.host.archive import map_file
from axletree.host.code_files import find_code
from axletree.package.wheel.scan import scan_wheel
from axletree.package.wheel.tree import scan_tree
from support.elfs import compile_library, need
from support.inputs import wheel
from support.wheels import make_elf, wheel_bytes

MODULES = [Path(str(sysconfig.get_path("stdlib"))) / "lib-dynload", Path(str(sysconfig.get_path("platlib")))]
NAMES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2", "libz.so.1")


def real_files() -> list[Path]:
    """System libraries, the interpreter, programs, and extension modules."""
    libraries = [folder / name for folder in map(Path, ("/lib64", "/usr/lib64", "/usr/lib")) for name in NAMES]
    libraries += [path for name in NAMES for path in sorted(Path("/usr/lib").glob(f"*-linux-gnu*/{name}"))]
    modules = [path for folder in MODULES for path in sorted(folder.rglob("*.so"))[:12]]
    programs = [
        Path(sys.executable).resolve(),
        *(Path(found) for name in ("ls", "uv") if (found := shutil.which(name))),
    ]
    return [
        path for path in (*libraries, *modules, *programs) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"
    ]


FILES = real_files()


def as_pyelftools_sees_it(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic = next((s for s in elf.iter_sections() if isinstance(s, DynamicSection)), None)
        tags = list(dynamic.iter_tags()) if dynamic else []
        texts = {
            name: [getattr(t, name) for t in tags if hasattr(t, name)]
            for name in ("needed", "soname", "rpath", "runpath")
        }
        symbols = [
            s
            for t in elf.iter_sections()
            if isinstance(t, SymbolTableSection) and t.name == ".dynsym"
            for s in t.iter_symbols()
        ]
        undefined = {s.name for s in symbols if s["st_shndx"] == "SHN_UNDEF" and s["st_info"]["bind"] != "STB_WEAK"}
        defined = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF"}
        stack = next((s["p_flags"] for s in elf.iter_segments() if s["p_type"] == "PT_GNU_STACK"), None)
        needs = [s for s in elf.iter_sections() if isinstance(s, GNUVerNeedSection)]
        defines = [s for s in elf.iter_sections() if isinstance(s, GNUVerDefSection)]
        return {
            "needed": tuple(texts["needed"]),
            "soname": texts["soname"][0] if texts["soname"] else None,
            "rpath": tuple(entry for text in texts["rpath"] for entry in text.split(":")),
            "runpath": tuple(entry for text in texts["runpath"] for entry in text.split(":")),
            "versions": {n.name: tuple(a.name for a in aux) for s in needs for n, aux in s.iter_versions()},
            "defined": tuple(next(a.name for a in aux) for s in defines for _, aux in s.iter_versions()),
            "stack": "unmarked" if stack is None else "executable" if stack & 1 else "plain",
            "python": tuple(sorted(n for n in undefined if n.startswith(("Py", "_Py")))),
            "modules": tuple(sorted(n.partition("_")[2] for n in defined if n.startswith(("PyInit_", "PyInitU_")))),
            "symtab": elf.get_section_by_name(".symtab") is not None,
            "cxx11": sum("cxx11" in s.name for s in symbols if s["st_info"]["bind"] not in {"STB_WEAK", "STB_LOCAL"}),
            "writable": next((bool(s["p_flags"] & 2) for s in elf.iter_segments("PT_LOAD")), False),
            "rewritten": any(t["d_tag"] == "DT_TEXTREL" or (t["d_tag"] == "DT_FLAGS" and t["d_val"] & 4) for t in tags),
        }


def as_we_see_it(facts: ElfFacts) -> dict[str, object]:
    return {
        "needed": facts.needed,
        "soname": facts.soname,
        "rpath": facts.rpath,
        "runpath": facts.runpath,
        "versions": {need.file: need.versions for need in facts.versions_needed},
        "defined": facts.versions_defined,
        "stack": facts.stack,
        "python": facts.python_symbols,
        "modules": facts.python_modules,
        "symtab": facts.symbol_table > 0,
        "cxx11": facts.abi.cxx11,
        "writable": facts.first_load_writable,
        "rewritten": facts.text_relocations,
    }


@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_pyelftools_agrees() -> None:
    for path in FILES:
        assert as_we_see_it(read_elf(path.read_bytes(), name=str(path))) == as_pyelftools_sees_it(path), path


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_readelf_agrees() -> None:
    for path in FILES[:12]:
        text = subprocess.run(["readelf", "-dVW", path], capture_output=True, text=True, check=True).stdout
        facts = read_elf(path.read_bytes())
        assert tuple(re.findall(r"\(NEEDED\).*\[(.*)\]", text)) == facts.needed
        assert [facts.soname or ""] == (re.findall(r"\(SONAME\).*\[(.*)\]", text) or [""])
        files = re.findall(r"Version: 1 +File: (\S+)", text)
        assert tuple(files) == tuple(need.file for need in facts.versions_needed)
        names = re.findall(r"^\s+(?:0x)?[0-9a-f]+: +Name: (\S+) +Flags: .* Version: \d+", text, re.MULTILINE)
        assert names == [version for need in facts.versions_needed for version in need.versions]


def test_text_relocations_are_those_of_readelf(tmp_path: Path) -> None:
    need("readelf")
    source = "extern int outside; int get(void) { return outside; } int *place = &outside;"
    absolute = ("-fno-pic", "-mcmodel=large", "-Wl,-z,notext")
    found = []
    for name, flags in (("libbad.so", absolute), ("libgood.so", ())):
        library = compile_library(tmp_path / name, *flags, source=source)
        text = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
        found.append(read_elf(library.read_bytes()).text_relocations)
        assert found[-1] == ("TEXTREL" in text)
    assert found == [True, False]


@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_sections_are_those_of_pyelftools_and_nothing_is_misaligned() -> None:
    for path in FILES:
        facts = read_elf(path.read_bytes())
        with path.open("rb") as file:
            sections = [
                (section.name, section["sh_size"], bool(section["sh_flags"] & 2))
                for section in ELFFile(file).iter_sections()
                if section["sh_type"] not in {"SHT_NULL", "SHT_NOBITS"} and section["sh_size"]
            ]
        assert [(section.name, section.size, section.loaded) for section in facts.sections] == sections, path
        assert facts.misaligned == (), path


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_readelf_sees_the_same_build_ids() -> None:
    for path in FILES[:20]:
        text = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True, check=True).stdout
        assert read_elf(path.read_bytes()).build_id == next(iter(re.findall(r"Build ID: (\w+)", text)), None), path


@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_in_an_archive_they_are_read_in_one_pass_with_the_same_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.package.wheel.scan.SMALL", 0)
    monkeypatch.setattr("axletree.binary.zip.members.HEAD", 1 << 20)
    files = {f"demo/{index}.so": path.read_bytes() for index, path in enumerate(FILES[:12])}
    scan = scan_wheel(wheel_bytes(files), filename="demo-1.0-py3-none-any.whl")
    assert {elf.path: elf.facts for elf in scan.elfs} == {path: read_elf(data) for path, data in files.items()}


@pytest.mark.proof
@pytest.mark.parametrize(
    "requirement", ["triton==3.9.0", "py-rattler==0.28.0", "nvidia-nccl-cu13==2.32.3", "torchvision==0.29.1"]
)
def test_real_wheels_are_read_in_one_pass_with_the_same_facts(requirement: str) -> None:
    """Linkers (GNU ld, LLD, patchelf) lay files out in their own ways; GPU code is found while it goes by."""
    path = wheel(requirement)
    scan = scan_wheel(map_file(path), filename=path.name)
    with zipfile.ZipFile(path) as archive:
        assert {elf.path: elf.facts for elf in scan.elfs} == {
            elf.path: read_elf(archive.read(elf.path)) for elf in scan.elfs
        }
    assert scan.elfs
    assert scan.damaged_elfs == ()


@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_the_code_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    for index, path in enumerate(FILES[:3]):
        (tmp_path / "lib" / f"{index}.so").write_bytes(path.read_bytes())
    (tmp_path / "lib" / "link.so").symlink_to("0.so")
    (tmp_path / "lib" / "text.py").write_bytes(FILES[0].read_bytes()[:100])
    (tmp_path / "empty").touch()
    scan = scan_tree(find_code(tmp_path))
    assert [elf.path for elf in scan.elfs] == ["lib/0.so", "lib/1.so", "lib/2.so"]
    assert [elf.facts for elf in scan.elfs] == [read_elf(path.read_bytes()) for path in FILES[:3]]
    with pytest.raises(HostError, match=r"absent.*: the file cannot be read"):
        list(find_code(tmp_path / "absent"))


@pytest.mark.skipif(not FILES, reason="no ELF files in the usual places")
def test_without_section_headers_the_same_is_read() -> None:
    """``sstrip`` and the like leave no sections; the loader does not need them, nor do we."""
    for path in FILES:
        data = bytearray(path.read_bytes())
        whole = read_elf(bytes(data))
        data[0x28:0x30] = bytes(8)  # e_shoff
        data[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
        bare = read_elf(bytes(data))
        assert {**as_we_see_it(bare), "symtab": whole.symbol_table > 0} == as_we_see_it(whole), path


@pytest.mark.skipif(shutil.which("readelf") is None, reason="no readelf")
@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("bits", [32, 64])
def test_readelf_reads_the_files_that_the_pure_tests_make(tmp_path: Path, bits: int, order: str) -> None:
    path = tmp_path / "made.so"
    path.write_bytes(make_elf(bits=bits, order=order, soname="libx.so", needed=("libc.so.6",), runpath="$ORIGIN"))
    done = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True)
    assert "[libx.so]" in done.stdout
    assert "[libc.so.6]" in done.stdout
    assert "[$ORIGIN]" in done.stdout
    assert done.stderr == ""
