"""The rule about archives that are not opened at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, fires, silent
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
        yield Found(problem.key or refusal.file, problem.message, fix=problem.hint)


_FILE = "demo-1.0-py3-none-any.whl"

ARCHIVE_RULES: tuple[Rule[Refusal], ...] = (
    Rule(
        id="archive/refused",
        severity="error",
        title="The archive is damaged, ambiguous or unsafe",
        why="Two programs could interpret the archive differently, or unpacking it could write outside its folder, "
        "fill "
        "the disk or produce content that differs from what was checked. The audit rejects paths that leave the "
        "folder, "
        "symbolic links, duplicate member names, overlapping members, incorrect sizes and CRCs, bytes before "
        "or after the archive, encryption, and compression methods other than stored and deflated. It then "
        "ignores the content of the archive.",
        fix="download the file again, or rebuild it with `python -m build` or `axletree pack`",
        check=_refused,
        cases=lambda: (
            fires(
                "a member whose path leads outside the folder",
                Refusal(
                    file=_FILE,
                    problems=(
                        Problem(file=_FILE, key="../../etc/profile", message="the path leads outside the folder"),
                    ),
                ),
            ),
            fires(
                "a truncated archive",
                Refusal(
                    file=_FILE,
                    problems=(
                        Problem(
                            file=_FILE,
                            message="the file is truncated: the end-of-central-directory record is missing",
                        ),
                    ),
                ),
            ),
            silent("a readable archive", Refusal(file=_FILE)),
        ),
    ),
)
"""Every rule over :class:`Refusal`."""
