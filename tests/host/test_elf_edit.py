"""Edited files load, run and please other tools: real linkers' libraries and programs, and official ones."""

from __future__ import annotations

import random
import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.facts import read_elf
from axletree.binary.elf.layout import PT_LOAD, read_image
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from axletree.host.edit import edit_elf
from support import inputs
from support.elfs import compile_library, compile_program, complaints, load, need, printed, run

LONG = ("$ORIGIN", "$ORIGIN/../../some/other/library/far/away/that/has/a/long/name")
LAYOUTS = {
    "plain": (),
    "separate": ("-Wl,-z,separate-code",),
    "joined": ("-Wl,-z,noseparate-code",),
    "pages-64k": ("-Wl,-z,max-page-size=65536",),
    "pages-2m": ("-Wl,-z,max-page-size=0x200000",),
    "no-build-id": ("-Wl,--build-id=none",),
    "sysv-hash": ("-Wl,--hash-style=sysv",),
    "no-relro": ("-Wl,-z,norelro",),
    "no-spare-tags": ("-Wl,--spare-dynamic-tags=0",),
    "padded": (f"-Wl,-rpath,{':' * 120}",),
    "stripped": ("-s",),
    "gold": ("-fuse-ld=gold",),
    "lld": ("-fuse-ld=lld",),
    "mold": ("-fuse-ld=mold",),
}
PROGRAMS = {
    "pie": ("-pie", "-fPIE"),
    "fixed": ("-no-pie",),
    "pie-64k": ("-pie", "-fPIE", "-Wl,-z,max-page-size=65536"),
    "fixed-joined": ("-no-pie", "-Wl,-z,noseparate-code"),
    "no-build-id": ("-pie", "-fPIE", "-Wl,--build-id=none"),
}


def layout(name: str) -> tuple[str, ...]:
    flags = LAYOUTS[name]
    for flag in flags:
        if flag.startswith("-fuse-ld="):
            need(f"ld.{flag.partition('=')[2]}")
    return flags


def pieces(folder: Path, count: int) -> tuple[str, ...]:
    """Libraries to need as well."""
    return tuple(
        compile_library(folder / f"libpiece{number}.so", source=f"int piece{number};").name for number in range(count)
    )


def cut_sections(path: Path) -> None:
    """Remove the section table, as some strippers do."""
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HH", data, 60, 0, 0)
    path.write_bytes(data)


@pytest.mark.parametrize("name", LAYOUTS)
def test_libraries_of_all_layouts(tmp_path: Path, name: str) -> None:
    library = compile_library(tmp_path / "libdemo.so", "-lm", *layout(name))
    change = ElfChange(rpath=LONG, soname="libdemo-12345678.so.1", add_needed=("libdl.so.2",))
    assert edit_elf(library, change)
    assert load(library) == 42
    assert not complaints(library)
    assert printed(library) == (["libm.so.6", "libc.so.6", "libdl.so.2"], ":".join(LONG), "libdemo-12345678.so.1")
    for tool in (("strip", "--strip-unneeded"), ("objcopy",)):
        copy = tmp_path / f"lib{tool[0]}.so"
        shutil.copy(library, copy)
        run(*tool, copy)
        assert load(copy) == 42
        assert printed(copy) == printed(library)
        assert not complaints(copy)


@pytest.mark.parametrize("name", ["plain", "joined", "no-build-id", "lld", "mold"])
def test_a_dynamic_section_that_moves(tmp_path: Path, name: str) -> None:
    library = compile_library(tmp_path / "libdemo.so", "-lm", *layout(name))
    names = pieces(tmp_path, 9)
    edit_elf(library, ElfChange(rpath=("$ORIGIN",), add_needed=names))
    assert load(library) == 42
    assert not complaints(library)
    assert printed(library)[0] == ["libm.so.6", "libc.so.6", *names]
    size = library.stat().st_size
    edit_elf(library, ElfChange(remove_needed=names[:8]))
    edit_elf(library, ElfChange(add_needed=names[:8], rpath=(str(tmp_path),), kind="runpath"))
    assert (load(library), library.stat().st_size) == (42, size)
    run("strip", library)
    assert load(library) == 42


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("sections", [True, False])
def test_programs_run(tmp_path: Path, name: str, *, sections: bool) -> None:
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    program = compile_program(tmp_path / "program", library, *PROGRAMS[name])
    if not sections:
        cut_sections(program)
    edit_elf(program, ElfChange(rpath=("$ORIGIN", "/" + "z" * 100)))
    assert run(program) == "42\n"
    assert printed_path(program) == "$ORIGIN:/" + "z" * 100
    edit_elf(program, ElfChange(add_needed=pieces(tmp_path, 8)))
    assert run(program) == "42\n"
    assert not complaints(program)
    if sections:
        for tool in ("strip", "objcopy"):
            run(tool, program)
            assert run(program) == "42\n"


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("folder", ["x", "long/" * 60])
@pytest.mark.parametrize("sections", [True, False])
def test_programs_run_with_another_loader(tmp_path: Path, name: str, folder: str, *, sections: bool) -> None:
    need("readelf", "patchelf")
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    program = compile_program(tmp_path / "program", library, *PROGRAMS[name])
    old = run("patchelf", "--print-interpreter", program).strip()
    if not sections:
        cut_sections(program)
    loader = tmp_path / folder / "own-loader.so"
    loader.parent.mkdir(parents=True)
    assert edit_elf(program, ElfChange(interpreter=str(loader), rpath=("$ORIGIN", "/" + "z" * 100)))
    with pytest.raises(FileNotFoundError):  # Linux asks for that loader, and no other
        subprocess.run([program], check=False)
    shutil.copy(old, loader)
    assert run(program) == "42\n"
    assert "own-loader.so" in run(program, LD_TRACE_LOADED_OBJECTS="1")
    assert f"program interpreter: {loader}]" in run("readelf", "-lW", program)
    assert not edit_elf(program, ElfChange(interpreter=str(loader)))
    if sections:
        for tool in ("strip", "objcopy"):
            run(tool, program)
            assert run(program) == "42\n"
    assert edit_elf(program, ElfChange(interpreter=old))  # shorter: where it stands
    assert run(program) == "42\n"
    assert not complaints(program)


def test_what_has_no_loader_gets_none(tmp_path: Path) -> None:
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    content = library.read_bytes()
    with pytest.raises(IntegrityError, match="has no interpreter"):
        edit_elf(library, ElfChange(interpreter="/lib/ld.so"))
    for wrong in ("ld.so", "", "/a\0b", "/" + "x" * 5000):
        with pytest.raises(IntegrityError, match="expected an absolute path"):
            edit_elf(library, ElfChange(interpreter=wrong))
    assert library.read_bytes() == content


def printed_path(program: Path) -> str:
    """The search path as the loader's own listing has it."""
    listing = run("readelf", "-dW", program)
    return next(line.rpartition("[")[2].rstrip("]") for line in listing.splitlines() if "path: [" in line)


def test_libraries_without_sections(tmp_path: Path) -> None:
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    cut_sections(library)
    edit_elf(library, ElfChange(rpath=LONG))
    size = library.stat().st_size
    for number in range(10):
        edit_elf(library, ElfChange(rpath=("$ORIGIN", "/" + "q" * (7 * number + 1))))
    assert (load(library), library.stat().st_size) == (42, size)


def test_headers_stay_at_the_start(tmp_path: Path) -> None:
    """Kernels before 5.18 take AT_PHDR from there."""
    program = compile_program(tmp_path / "program", compile_library(tmp_path / "libdemo.so", "-lm"))
    edit_elf(program, ElfChange(rpath=LONG))
    image = read_image(BufferSource(program.read_bytes()))
    assert image.phoff == 64
    cut_sections(program)
    edit_elf(program, ElfChange(rpath=tuple("/" + letter * 300 for letter in "abc"), add_needed=pieces(tmp_path, 9)))
    image = read_image(BufferSource(program.read_bytes()))
    (head,) = [load for load in image.loads if load.offset <= image.phoff < load.file_end]
    assert head.vaddr - head.offset == image.loads[0].vaddr - image.loads[0].offset
    assert [each.vaddr for each in image.loads] == sorted(each.vaddr for each in image.loads)
    assert {each.type for each in image.programs[-len(image.loads) :]} != {PT_LOAD}


def test_symbol_versions_follow_a_renamed_library(tmp_path: Path) -> None:
    """Otherwise the loader stops with an assertion."""
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    math = next(
        Path(line.split()[2]) for line in run("ldd", library).splitlines() if line.strip().startswith("libm.so.6 =>")
    )
    shutil.copy(math, tmp_path / "libm-0123abcd.so.6")
    edit_elf(tmp_path / "libm-0123abcd.so.6", ElfChange(soname="libm-0123abcd.so.6"))
    edit_elf(library, ElfChange(rpath=("$ORIGIN",), replace_needed={"libm.so.6": "libm-0123abcd.so.6"}))
    assert load(library) == 42
    assert "File: libm-0123abcd.so.6" in run("readelf", "-VW", library)
    assert "libm.so.6" not in run("readelf", "-dVW", library)


def test_fifty_edits_keep_the_size(tmp_path: Path) -> None:
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    edit_elf(library, ElfChange(rpath=LONG))
    size, chance = library.stat().st_size, random.Random(7)
    for _ in range(50):
        path = tuple("$ORIGIN/" + "x" * chance.randrange(30) for _ in range(chance.randrange(1, 5)))
        edit_elf(library, ElfChange(rpath=path, soname="lib" + "n" * chance.randrange(30) + ".so"))
        assert library.stat().st_size == size
    assert load(library) == 42


def test_after_patchelf_and_before_it(tmp_path: Path) -> None:
    need("patchelf")
    library = compile_library(tmp_path / "libdemo.so", "-lm")
    run("patchelf", "--set-rpath", ":".join(LONG), "--set-soname", "libpatched-by-another-tool.so", library)
    size = library.stat().st_size
    edit_elf(library, ElfChange(rpath=("$ORIGIN/lib",)))
    assert (load(library), library.stat().st_size) == (42, size)
    edit_elf(library, ElfChange(rpath=tuple(f"{each}/and/more" * 5 for each in LONG)))
    assert load(library) == 42
    assert not complaints(library)
    assert read_image(BufferSource(library.read_bytes())).phoff == 64
    run("patchelf", "--force-rpath", "--set-rpath", "/x" * 700, library)
    assert load(library) == 42
    edit_elf(library, ElfChange(rpath=("$ORIGIN",), kind="runpath"))
    assert (load(library), printed(library)[1]) == (42, "$ORIGIN")


def test_static_programs_are_refused(tmp_path: Path) -> None:
    need("gcc")
    code = tmp_path / "main.c"
    code.write_text("int main(void) { return 0; }")
    for flags, message in ((("-static",), "no dynamic section"), (("-static-pie",), "is statically linked")):
        program = tmp_path / "program"
        run("gcc", *flags, code, "-o", program)
        before = program.read_bytes()
        with pytest.raises(IntegrityError, match=message):
            edit_elf(program, ElfChange(rpath=("$ORIGIN",)))
        assert program.read_bytes() == before


def test_a_static_program_is_told_from_a_library(tmp_path: Path) -> None:
    base = compile_library(tmp_path / "libbase.so", "-nostdlib", source="int one(void) { return 1; }\n")
    program = compile_program(tmp_path / "program", compile_library(tmp_path / "liba.so", "-lm"))
    static = tmp_path / "static"
    (tmp_path / "main.c").write_text("int main(void) { return 0; }")
    run("gcc", "-static-pie", tmp_path / "main.c", "-o", static)
    told = {path.name: read_elf(path.read_bytes()).static_program for path in (base, program, static)}
    assert told == {"libbase.so": False, "program": False, "static": True}
    assert "Flags: PIE" in run("readelf", "-dW", static)


@pytest.mark.parametrize("name", ["libtorch_python.so", "libc10.so", "torch_shm_manager"])
def test_files_of_the_official_wheel(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(inputs.wheel("torch==2.13.0")) as archive:
        member = next(each for each in archive.namelist() if each.endswith(f"/{name}"))
        path = tmp_path / name
        path.write_bytes(archive.read(member))
    needed, search_path, soname = printed(path) if name.endswith(".so") else ([], printed_path(path), "")
    wanted = (*search_path.split(":"), "$ORIGIN/../../one/more/folder", "$ORIGIN/../../and/one/more/of/them")
    before, warnings = path.stat().st_size, complaints(path)
    edit_elf(path, ElfChange(rpath=wanted))
    assert printed_path(path) == ":".join(wanted)
    assert complaints(path) == warnings
    size = path.stat().st_size
    edit_elf(path, ElfChange(rpath=("$ORIGIN",), kind="runpath"))
    assert path.stat().st_size == size <= before + (8 << 20)
    if name.endswith(".so"):
        assert printed(path) == (needed, "$ORIGIN", soname)
    if name == "libc10.so":
        run("python3", "-c", f"import ctypes; ctypes.CDLL({str(path)!r})")


def test_a_gigabyte_is_edited_in_place(tmp_path: Path) -> None:
    original = next((inputs.deb("librocsparse0") / "usr/lib").rglob("librocsparse.so.0.*"))
    path = tmp_path / "librocsparse.so.0"
    with original.open("rb") as source, path.open("wb") as copy:  # its tables; the code in between stays a hole
        copy.write(source.read(1 << 20))
        copy.seek(source.seek(-(4 << 20), 2))
        copy.write(source.read())
    edit_elf(path, ElfChange(rpath=LONG))
    node, grown = path.stat().st_ino, path.stat().st_size - original.stat().st_size
    edit_elf(path, ElfChange(rpath=("$ORIGIN",), replace_needed={"libamdhip64.so.5": "libamdhip64.so"}))
    assert (path.stat().st_ino, path.stat().st_size - original.stat().st_size) == (node, grown)
    assert grown < 100_000
    listing = run("readelf", "-dW", path)
    for line in ("RPATH)              Library rpath: [$ORIGIN]", "soname: [librocsparse.so.0]", "[libamdhip64.so]"):
        assert line in listing
    assert path.stat().st_blocks * 512 < 10 << 20


CHANGES = st.builds(
    ElfChange,
    rpath=st.none() | st.lists(st.sampled_from(["$ORIGIN", "/a", "/bb" * 40, "/c" * 200]), max_size=4).map(tuple),
    kind=st.sampled_from(["rpath", "runpath"]),
    soname=st.none() | st.text("abc", min_size=1, max_size=60),
    add_needed=st.lists(st.sampled_from(["libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1"])).map(tuple),
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["plain", "joined", "sysv-hash", "no-spare-tags"]), changes=st.lists(CHANGES, max_size=8))
def test_random_changes_keep_it_loading(
    tmp_path_factory: pytest.TempPathFactory, name: str, changes: list[ElfChange]
) -> None:
    library = compile_library(tmp_path_factory.mktemp("random") / "libdemo.so", "-lm", *LAYOUTS[name])
    for change in changes:
        edit_elf(library, change)
    assert load(library) == 42
    assert not complaints(library)
