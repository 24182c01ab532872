"""The rule about archives that are not opened at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Case, Found, Rule
from axletree.core.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why the strict reader refused an archive; nothing where it did not."""

    file: str
    """The archive."""
    problems: tuple[Problem, ...] = ()


def _refused(refusal: Refusal) -> Iterator[Found]:
    for problem in refusal.problems:
        yield Found(where=problem.key or refusal.file, message=problem.message, fix=problem.hint)


_FILE = "demo-1.0-py3-none-any.whl"

ARCHIVE_RULES: tuple[Rule[Refusal], ...] = (
    Rule(
        id="archive/refused",
        severity="error",
        title="The archive is damaged, ambiguous or unsafe",
        why="Two programs could understand it differently, or unpacking it could write outside of its folder, fill the "
        "disk or give other content than was checked. Paths that leave the folder, symbolic links, two members of one "
        "name, members that overlap, sizes and CRCs that are not true, bytes before or after the archive, encryption "
        "and methods other than stored and deflated are all refused, and nothing of the archive is trusted.",
        fix="get the file again, or make it again with a tool that writes plain archives",
        check=_refused,
        cases=lambda: (
            Case(
                title="a member whose path leaves the folder",
                facts=Refusal(
                    file=_FILE, problems=(Problem(file=_FILE, key="../../etc/profile", message="its path leaves"),)
                ),
                fires=True,
            ),
            Case(
                title="an archive that is cut off",
                facts=Refusal(file=_FILE, problems=(Problem(file=_FILE, message="cut off: it has no end record"),)),
                fires=True,
            ),
            Case(title="an archive that was read", facts=Refusal(file=_FILE), fires=False),
        ),
    ),
)
"""Every rule over :class:`Refusal`."""
