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
        why="Two programs could interpret it differently, or unpacking it could write outside its folder, fill the "
        "disk or produce content other than what was checked. The audit rejects paths that leave the folder, "
        "symbolic links, duplicate member names, overlapping members, incorrect sizes and CRCs, bytes before "
        "or after the archive, encryption, and compression methods other than stored and deflated. It then "
        "trusts nothing in the archive.",
        fix="download the file again, or rebuild it with a tool that writes standard archives",
        check=_refused,
        cases=lambda: (
            Case(
                title="a member whose path leads outside the folder",
                facts=Refusal(
                    file=_FILE,
                    problems=(
                        Problem(file=_FILE, key="../../etc/profile", message=("its path leads outside the folder")),
                    ),
                ),
                fires=True,
            ),
            Case(
                title="a truncated archive",
                facts=Refusal(
                    file=_FILE,
                    problems=(Problem(file=_FILE, message=("truncated: it has no end-of-central-directory record")),),
                ),
                fires=True,
            ),
            Case(title="a readable archive", facts=Refusal(file=_FILE), fires=False),
        ),
    ),
)
"""Every rule over :class:`Refusal`."""
