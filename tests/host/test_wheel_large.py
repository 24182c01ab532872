"""Archives beyond 4 GiB. They are written sparse: zeros take no disk space."""

from __future__ import annotations

import hashlib
import io
import zipfile
from typing import TYPE_CHECKING

import pytest

from axletree.binary.zips import read_directory
from axletree.host.archive import map_file
from axletree.package.record import encode_hash
from axletree.package.writer import Member, write_wheel
from support.wheels import demo_info, demo_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SIZE = (4 << 30) + 12345
ZEROS = bytes(1 << 20)


class Sparse(io.FileIO):
    """A file that skips over zeros instead of writing them."""

    def write(self, data) -> int:  # type: ignore[no-untyped-def]
        view = memoryview(data)
        for start in range(0, len(view), 1 << 16):
            piece = view[start : start + (1 << 16)]
            if piece == ZEROS[: len(piece)]:
                self.seek(len(piece), io.SEEK_CUR)
            else:
                super().write(piece)
        return len(view)


def chunks() -> Iterator[bytes]:
    whole, rest = divmod(SIZE, len(ZEROS))
    for _ in range(whole):
        yield ZEROS
    yield ZEROS[:rest]


@pytest.mark.slow
def test_a_member_and_an_archive_beyond_4_gib(tmp_path: Path) -> None:
    path = tmp_path / "demo-1.0-py3-none-any.whl"
    members = [Member(path="a/zeros", data=chunks, size=SIZE), Member(path="b/after", data=b"here")]
    with Sparse(str(path), "w") as sink:
        written = write_wheel(sink, members, metadata=demo_metadata(), wheel_info=demo_info(), level=0)
    assert written.size == path.stat().st_size > SIZE
    entries = {entry.name: entry for entry in read_directory(map_file(path))}
    assert entries["a/zeros"].size == SIZE
    assert entries["b/after"].offset > SIZE
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("a/zeros").file_size == SIZE
        assert archive.read("b/after") == b"here"
        digest = hashlib.sha256()
        with archive.open("a/zeros") as member:
            while chunk := member.read(1 << 20):
                digest.update(chunk)
    lines = {entry.path: entry.hash for entry in written.record}
    assert lines["a/zeros"] == encode_hash(digest.digest())
