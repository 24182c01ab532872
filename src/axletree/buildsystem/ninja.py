"""Ninja's log: which steps were done, and how long they took.

``.ninja_log`` (versions 5 to 7) has a line for each output that a finished step made: start and end in milliseconds
since that run began, the file's time, its path, and a hash of the command. Steps that are running have none, so what it
lists need not be done again. Later lines for a path replace earlier ones.
"""

from __future__ import annotations

import re

import msgspec

_HEADER = re.compile(r"# ninja log v([0-9]+)")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A finished step's output."""

    path: str
    milliseconds: int
    stamp: int
    """Time of the output as ninja saw it; another after each time that it was made."""
    command: str
    """Hash of the command."""
    start: int = 0
    """When it began, in milliseconds since that run of ninja did."""


def read_ninja_log(text: str) -> dict[str, Step]:
    """Path of an output -> its last step; lines that a killed ninja half wrote are left out."""
    lines = text.split("\n")
    if not _HEADER.match(lines[0]):
        return {}
    found: dict[str, Step] = {}
    for line in lines[1:]:
        fields = line.split("\t")
        if len(fields) != 5 or not all(field.isdigit() for field in fields[:3]):
            continue
        start, end, stamp, path, command = fields
        duration = int(end) - int(start)
        found[path] = Step(path=path, milliseconds=duration, stamp=int(stamp), command=command, start=int(start))
    return found


def rebuilt(before: dict[str, Step], after: dict[str, Step]) -> tuple[str, ...]:
    """Outputs of ``before`` that were made again, sorted.

    The times of the step tell, not that of the file: ``ninja -t restat``, which CMake calls, changes the latter, and a
    step that found nothing to change in its output (``restat = 1``) leaves it.
    """
    return tuple(sorted(path for path, step in before.items() if path in after and _ran(after[path]) != _ran(step)))


def _ran(step: Step) -> tuple[int, int, str]:
    return step.start, step.milliseconds, step.command
