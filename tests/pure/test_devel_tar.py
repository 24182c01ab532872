"""The payload of a devel package: an archive that tar reads, of the size that was told before."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.package.sdk import devel_tar
from axletree.package.sdk.devel_tar import tar_chunks, tar_size
from axletree.package.sdk.plan import DevelItem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Piecewise(NamedTuple):
    """Content in pieces."""

    data: bytes
    step: int = 7

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        """The bytes, a few at a time."""
        return (self.data[start : start + self.step] for start in range(0, len(self.data), self.step))


NAME = st.text(st.sampled_from("ab.-é文"), min_size=1, max_size=30).filter(lambda name: name.strip("."))
ITEM = st.tuples(
    st.lists(NAME, min_size=1, max_size=6).map("/".join),
    st.sampled_from(["file", "link", "folder"]),
    st.binary(max_size=1200),
    st.booleans(),
    st.sampled_from(["x.so", "../../_rocm_sdk_core/lib/x.so", "../" * 40 + "far", "é"]),
)


def archive(rows: Sequence[tuple[str, str, bytes, bool, str]]) -> tuple[list[DevelItem], dict[str, bytes]]:
    items = [
        DevelItem(path=path, kind=kind, executable=executable, link=link if kind == "link" else "")  # type: ignore[arg-type]
        for path, kind, _, executable, link in rows
    ]
    return items, {row[0]: row[2] for row in rows}


@settings(max_examples=40)
@given(rows=st.lists(ITEM, max_size=8, unique_by=lambda row: row[0]), epoch=st.integers(0, 1 << 32))
def test_tar_reads_what_was_put_in(rows: list[tuple[str, str, bytes, bool, str]], epoch: int) -> None:
    items, contents = archive(rows)
    data = b"".join(tar_chunks(items, lambda item: Piecewise(contents[item.path]), epoch=epoch))
    assert len(data) == tar_size(items, lambda item: len(contents[item.path]))
    assert data == b"".join(tar_chunks(items, lambda item: Piecewise(contents[item.path], 1000), epoch=epoch))
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        assert [member.name for member in members] == [item.path for item in items]
        for item, member in zip(items, members, strict=True):
            assert (member.uid, member.gid, member.mtime) == (0, 0, epoch)
            assert (member.isfile(), member.isdir(), member.issym()) == tuple(
                item.kind == kind for kind in ("file", "folder", "link")
            )
            if item.kind == "file":
                content = tar.extractfile(member)
                assert content is not None
                assert content.read() == contents[item.path]
                assert member.mode == (0o755 if item.executable else 0o644)
            if item.kind == "link":
                assert member.linkname == item.link


@pytest.mark.parametrize("small", [1, 600, 5000])
def test_large_content_goes_by_in_its_own_pieces(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        ("lib", "folder", b"", False, ""),
        *((f"lib/{n}", "file", bytes([n]) * 1000 * n, False, "") for n in range(5)),
    ]
    items, contents = archive(rows)
    whole = b"".join(tar_chunks(items, lambda item: Piecewise(contents[item.path], 500), epoch=1))
    monkeypatch.setattr(devel_tar, "_SMALL", small)
    chunks = list(tar_chunks(items, lambda item: Piecewise(contents[item.path], 500), epoch=1))
    assert b"".join(chunks) == whole
    assert max(map(len, chunks)) <= small + 4096 + 1024


def test_an_empty_archive_is_its_end() -> None:
    assert b"".join(tar_chunks([], lambda _: Piecewise(b""), epoch=0)) == bytes(1024)
    assert tar_size([], lambda _: 0) == 1024
