"""The payload of the devel package as a tar archive, whose size is known before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from axletree.package.tar import END, header_size, padding, tar_header, whole_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from axletree.package.sdk.plan import DevelItem


class Content(Protocol):
    """The content of a member."""

    @property
    def size(self) -> int:
        """Bytes."""

    def chunks(self) -> Iterable[bytes]:
        """The bytes, in pieces."""


def tar_size(items: Sequence[DevelItem], sizes: Callable[[DevelItem], int]) -> int:
    """Bytes of the archive.

    Args:
        items: its members.
        sizes: bytes of the content of a file.
    """
    total = len(END)
    for item in items:
        total += header_size(_name(item), link=item.link or None)
        if item.kind == "file":
            total += whole_blocks(sizes(item))
    return total


def tar_chunks(items: Sequence[DevelItem], content: Callable[[DevelItem], Content], *, epoch: int) -> Iterator[bytes]:
    """The bytes of the archive, member by member; the same members give the same bytes.

    Args:
        items: its members, folders before what is in them.
        content: of a file.
        epoch: date of all members, seconds since 1970.
    """
    waiting: list[bytes] = []
    for item in items:
        if item.kind != "file":
            waiting.append(
                tar_header(
                    _name(item),
                    size=0,
                    executable=False,
                    mtime=epoch,
                    link=item.link or None,
                    folder=item.kind == "folder",
                )
            )
            continue
        found = content(item)
        waiting.append(tar_header(_name(item), size=found.size, executable=item.executable, mtime=epoch))
        if found.size < _SMALL:
            waiting += found.chunks()
        else:
            yield b"".join(waiting)
            yield from found.chunks()
            waiting = []
        waiting.append(padding(found.size))
        if sum(map(len, waiting)) > _SMALL:
            yield b"".join(waiting)
            waiting = []
    yield b"".join([*waiting, END])


_SMALL = 1 << 18
"""Bytes that are handed on together."""


def _name(item: DevelItem) -> str:
    return f"{item.path}/" if item.kind == "folder" else item.path
