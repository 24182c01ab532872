"""Ninja's log: which steps were done, and how long they took.

``.ninja_log`` (versions 5 to 7) has a line for each output that a finished step made: start and end in milliseconds
since that run began, the file's time, its path, and a hash of the command. Steps that are running have none, so what it
lists need not be done again. Later lines for a path replace earlier ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = re.compile(r"# ninja log v([0-9]+)")


class NinjaStep(msgspec.Struct, frozen=True, kw_only=True):
    """A finished step's output."""

    path: str
    milliseconds: int
    command: str
    """Hash of the command."""
    start: int
    """When it began, in milliseconds since that run of ninja did."""
    lines: int = 1
    """How many lines the log has for the output: one for each run, until ninja or ``ninja -t restat`` rewrites it."""


def read_ninja_log(text: str) -> dict[str, NinjaStep]:
    """Path of an output -> its last step; lines that a killed ninja half wrote are left out."""
    lines = text.split("\n")
    if not _HEADER.match(lines[0]):
        return {}
    found: dict[str, NinjaStep] = {}
    for line in lines[1:]:
        fields = line.split("\t")
        if len(fields) != 5 or not all(field.isdigit() for field in fields[:3]):
            continue
        start, end, _, path, command = fields
        number = found[path].lines + 1 if path in found else 1
        took = int(end) - int(start)
        found[path] = NinjaStep(path=path, milliseconds=took, command=command, start=int(start), lines=number)
    return found


def rebuilt(before: Mapping[str, NinjaStep], after: Mapping[str, NinjaStep]) -> tuple[str, ...]:
    """Outputs that were made between two readings of a log, new ones too, sorted.

    The times of the step tell, not that of the file: ``ninja -t restat``, which CMake calls, changes the latter, and a
    step that found nothing to change in its output (``restat = 1``) leaves it. Two runs of a short step may begin and
    take the same milliseconds, so another line tells too.
    """

    def ran(path: str, step: NinjaStep) -> bool:
        known = before.get(path)
        return known is None or step.lines > known.lines or _ran(known) != _ran(step)

    return tuple(sorted(path for path, step in after.items() if ran(path, step)))


def _ran(step: NinjaStep) -> tuple[int, int, str]:
    return step.start, step.milliseconds, step.command
