"""What git says of a commit, and what a tag says of a version.

``git submodule status`` shows ``git describe`` of annotated tags first, and so hides a later lightweight one; here both
are asked, and ``--contains`` too, which gives an upper bound.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.wheel.metadata import parse_version

if TYPE_CHECKING:
    from packaging.version import Version

_DESCRIBED = re.compile(r"(?P<tag>.+)-(?P<commits>\d+)-g(?P<commit>[0-9a-f]{4,64})")
_CONTAINED = re.compile(r"(?P<tag>[^~^]+)(?P<way>(?:[~^]\d*)*)")
_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9+]*[-_.])*?(?:v|ver|version|r|n|rel|release)?[-_.]?(?=\d)", re.IGNORECASE)
_LONGEST = 200


class TagDistance(msgspec.Struct, frozen=True, kw_only=True):
    """Output of ``git describe --long``."""

    tag: str
    commits: int
    """Commits since the tag; 0 where the commit has it. A measure of age, no version."""
    commit: str


class Contained(msgspec.Struct, frozen=True, kw_only=True):
    """Output of ``git describe --contains``: the commit is an ancestor of the tag."""

    tag: str
    exact: bool


def parse_describe(text: str) -> TagDistance | None:
    """Read ``v2.1.0-705-ga6bfc23...``, from the right, as tags have hyphens too; ``None`` for a bare digest."""
    found = _DESCRIBED.fullmatch(text.strip())
    if found is None:
        return None
    return TagDistance(tag=found["tag"], commits=int(found["commits"]), commit=found["commit"])


def parse_contains(text: str) -> Contained | None:
    """Read ``v9.0~3^2``, ``v9.0^0`` or ``v9.0``."""
    found = _CONTAINED.fullmatch(text.strip().removeprefix("tags/"))
    if found is None:
        return None
    return Contained(tag=found["tag"], exact=found["way"] in {"", "^0", "~0"})


def tag_version(tag: str) -> Version | None:
    """The version that a tag names: ``v1.2``, ``release-1.8.0``, ``curl-7_88_1``, ``v3.7.0-rc.2``; ``None`` for others.

    ``v2.21.5-1`` is 2.21.5.post1, as PEP 440 reads it; what a project means by it is a matter of its table.
    """
    if len(tag) > _LONGEST:
        return None
    text = _PREFIX.sub("", tag.rpartition("/")[2], count=1)
    return parse_version(text) or parse_version(text.replace("_", "."))
