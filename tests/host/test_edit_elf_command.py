"""``axletree edit-elf``: what it says, and what readelf and patchelf say of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.cli.edit_elf import command
from axletree.core.errors import IntegrityError, UsageError
from support.elfs import compile_library, compile_program, complaints, load, need, printed, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """It needs libm and libc; its answer is 42."""
    need("patchelf", "readelf")
    return compile_library(tmp_path / "libdemo.so", "-lm")


def edit(path: Path, *words: str) -> list[str]:
    """What the command prints below the file's name."""
    result = CliRunner().invoke(command, [str(path), *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    first, *lines = result.output.splitlines()
    assert first == str(path)
    return [line.strip() for line in lines]


def tags(path: Path) -> list[str]:
    """Tags of the search path, as readelf sees them."""
    lines = run("readelf", "-dW", path).splitlines()
    return [tag for line in lines for tag in ("(RPATH)", "(RUNPATH)") if tag in line]


def test_search_path_of_either_kind(library: Path) -> None:
    assert edit(library, "--runpath", "$ORIGIN:/opt/x") == ["search path: none -> DT_RUNPATH $ORIGIN:/opt/x"]
    assert (printed(library)[1], tags(library)) == ("$ORIGIN:/opt/x", ["(RUNPATH)"])
    assert edit(library, "--rpath", "$ORIGIN") == ["search path: DT_RUNPATH $ORIGIN:/opt/x -> DT_RPATH $ORIGIN"]
    assert (printed(library)[1], tags(library)) == ("$ORIGIN", ["(RPATH)"])
    assert edit(library, "--no-rpath") == ["search path: DT_RPATH $ORIGIN -> none"]
    assert (printed(library)[1], tags(library)) == ("", [])
    assert edit(library, "--no-rpath") == ["nothing to change: the file already has these values"]
    assert (load(library), complaints(library)) == (42, "")


def test_names_of_libraries(library: Path, tmp_path: Path) -> None:
    piece = compile_library(tmp_path / "libpiece.so", source="int piece;").name
    assert edit(library, "--soname", "libdemo.so.1", "--add-needed", piece, "--rpath", "$ORIGIN") == [
        "search path: none -> DT_RPATH $ORIGIN",
        "SONAME: libdemo.so -> libdemo.so.1",
        "added needed libraries: libpiece.so",
    ]
    assert printed(library) == (["libm.so.6", "libc.so.6", piece], "$ORIGIN", "libdemo.so.1")
    assert load(library) == 42
    content = library.read_bytes()
    assert edit(library, "--add-needed", piece, "--soname", "libdemo.so.1") == [
        "nothing to change: the file already has these values"
    ]
    assert library.read_bytes() == content
    assert edit(library, "--remove-needed", piece, "--replace-needed", "libm.so.6=libm-1.so.6") == [
        "removed needed libraries: libm.so.6, libpiece.so",
        "added needed libraries: libm-1.so.6",
        "symbol versions required from: libm.so.6 -> libm-1.so.6",
    ]
    assert printed(library)[0] == ["libm-1.so.6", "libc.so.6"]
    versions = run("readelf", "-VW", library)
    assert ("File: libm-1.so.6" in versions, "File: libm.so.6" in versions) == (True, False)
    assert not complaints(library)


def test_the_loader_of_a_program(library: Path, tmp_path: Path) -> None:
    program = compile_program(tmp_path / "program", library)
    old = run("patchelf", "--print-interpreter", program).strip()
    assert edit(program, "--interpreter", "/opt/x/ld.so") == [f"interpreter: {old} -> /opt/x/ld.so"]
    assert run("patchelf", "--print-interpreter", program) == "/opt/x/ld.so\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to change\n  hint: specify --rpath, "),
        (("--rpath", "a", "--no-rpath"), "one of --rpath, --runpath and --no-rpath"),
        (("--runpath", "a", "--rpath", "b"), "one of --rpath, --runpath and --no-rpath"),
        (("--rpath", ""), "the search path is empty\n  hint: use --no-rpath to remove it"),
        (("--replace-needed", "libm.so.6"), "is not a pair of names\n  hint: write OLD=NEW"),
        (("--replace-needed", "a=b", "--replace-needed", "a=c"), "gives two new names to the same library"),
        (("--add-needed", "a", "--remove-needed", "a"), "a cannot be removed and also be added or replaced"),
    ],
)
def test_what_can_not_be_asked_for(library: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        edit(library, *words)
    assert message in str(caught.value)


def test_what_can_not_be_changed_stays_as_it_is(library: Path, tmp_path: Path) -> None:
    content = library.read_bytes()
    for words in (("--remove-needed", "libm.so.6"), ("--replace-needed", "libx.so=liby.so"), ("--rpath", "a::b")):
        with pytest.raises(IntegrityError, match=r"libdemo\.so: "):
            edit(library, *words)
    assert library.read_bytes() == content
    text = tmp_path / "text"
    text.write_text("no library")
    with pytest.raises(IntegrityError):
        edit(text, "--soname", "x")
