"""Edits on disk: only this name of the file changes, and what can't be written in place is replaced."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from axletree.binary.edits import Blank, Edit, EditedSource, Move, Put
from axletree.binary.source import BufferSource
from axletree.core.errors import HostError, IntegrityError
from axletree.host.edit import apply_edits

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = random.Random(5).randbytes(3 << 20)
EDITS: tuple[Edit, ...] = (
    Put(0, b"head"),
    Move(100, 1 << 20, 300),
    Blank(2 << 20, 70_000),
    Put(len(CONTENT) + 10, b"tail"),
)


def wanted(edits: tuple[Edit, ...], content: bytes = CONTENT) -> bytes:
    source = EditedSource(BufferSource(content), edits)
    return source.read(0, source.size)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "lib.so"
    file.write_bytes(CONTENT)
    file.chmod(0o755)
    return file


def test_in_place(path: Path) -> None:
    node = path.stat().st_ino
    apply_edits(path, EDITS)
    assert path.read_bytes() == wanted(EDITS)
    assert (path.stat().st_ino, path.stat().st_mode & 0o777) == (node, 0o755)


def test_another_name_keeps_its_content(path: Path) -> None:
    other = path.with_name("cache.so")
    other.hardlink_to(path)
    apply_edits(path, EDITS)
    assert path.read_bytes() == wanted(EDITS)
    assert other.read_bytes() == CONTENT
    assert (path.stat().st_nlink, path.stat().st_mode & 0o777) == (1, 0o755)
    assert sorted(each.name for each in path.parent.iterdir()) == ["cache.so", "lib.so"]


def test_a_link_leads_to_the_file(path: Path) -> None:
    link = path.with_name("link.so")
    link.symlink_to("lib.so")
    os.link(path, path.with_name("cache.so"))  # so it is replaced
    apply_edits(link, EDITS)
    assert link.is_symlink()
    assert path.read_bytes() == wanted(EDITS)


def test_moves_towards_the_end_read_the_original(path: Path) -> None:
    edits: tuple[Edit, ...] = (Put(0, b"x" * 5000), Move(1000_000, 1500_000, 10))
    apply_edits(path, edits)
    assert path.read_bytes() == wanted(edits)


def test_a_running_program(tmp_path: Path) -> None:
    program = tmp_path / "sleep"
    found = shutil.which("sleep")
    assert found is not None
    shutil.copy(found, program)
    content = program.read_bytes()
    with subprocess.Popen([program, "60"]) as process:
        try:
            apply_edits(program, [Put(len(content), b"more")])
        finally:
            process.kill()
    assert program.read_bytes() == content + b"more"


def test_what_can_not_be_edited(path: Path, tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="overlap"):
        apply_edits(path, [Put(0, b"abc"), Put(2, b"d")])
    with pytest.raises(IntegrityError, match="too short for the requested edits"):
        apply_edits(path, [Move(0, 10, len(CONTENT))])
    with pytest.raises(HostError, match=r"none\.so: the file cannot be changed: No such file"):
        apply_edits(tmp_path / "none.so", [Put(0, b"x")])
    with pytest.raises(HostError, match="not a regular file"):
        apply_edits(tmp_path, [Put(0, b"x")])
    assert path.read_bytes() == CONTENT


def test_a_full_disk_leaves_it_as_it_was(path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    code = f"""
import os, pathlib, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({len(CONTENT) + 1000}, {len(CONTENT) + 1000}))
from axletree.binary.edits import Put
from axletree.core.errors import HostError
from axletree.host.edit import apply_edits
path = pathlib.Path({str(path)!r})
for another in (False, True):
    if another:
        os.link(path, path.with_name("cache.so"))
    try:
        apply_edits(path, [Put(0, b"head"), Put({len(CONTENT)}, bytes(5000))])
    except HostError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.count("cannot be changed: File too large") == 2
    assert path.read_bytes() == CONTENT
    assert sorted(each.name for each in path.parent.iterdir()) == ["cache.so", "lib.so"]


@st.composite
def edit_lists(draw: st.DrawFn) -> tuple[Edit, ...]:
    places = sorted(draw(st.sets(st.integers(0, 400), min_size=2, max_size=12)))
    edits: list[Edit] = []
    for start, end in zip(places[::2], places[1::2], strict=False):
        match draw(st.integers(0, 2)):
            case 0:
                edits.append(Put(start, draw(st.binary(min_size=end - start, max_size=end - start))))
            case 1:
                edits.append(Blank(start, end - start))
            case _:
                size = min(end - start, 300)
                edits.append(Move(start, size, draw(st.integers(0, 300 - size))))
    return tuple(edits)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=edit_lists(), linked=st.booleans())
@example(edits=(Move(0, 1, 2), Blank(2, 299)), linked=False)  # what lies behind the end is written first
def test_random_edits(tmp_path: Path, edits: tuple[Edit, ...], *, linked: bool) -> None:
    file, other, content = tmp_path / "random", tmp_path / "other", CONTENT[:300]
    other.unlink(missing_ok=True)
    file.write_bytes(content)
    if linked:
        os.link(file, other)
    apply_edits(file, edits)
    assert file.read_bytes() == wanted(edits, content)
    assert not linked or other.read_bytes() == content
