"""The log of what failed: the lines that name the root cause, and what is known of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.bringers import BRINGERS
from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Engine, cause_lines, error_line
from axletree.check.diagnosis.log import BinaryLogError
from axletree.core.findings import Finding
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.providers import LIBRARY_PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    from axletree.check.diagnosis.engine import Diagnosed
    from axletree.core.setting import StageSetting

_CHUNK = 1 << 18
_REPEATS = 10
"""Kinds that are no more specific say that there is an error: the lines of the log beside them do so already."""
_WARNINGS = 5
"""Silent downgrades of what failed that are told, at most."""


@cache
def engine() -> Engine:
    """All kinds, made ready once.

    Raises:
        HostError: the data files are missing or can't be read.
        IntegrityError: one is not in its form.
    """
    return Engine(
        read_shipped(FAILURE_KINDS), providers=read_shipped(LIBRARY_PROVIDERS), bringers=read_shipped(BRINGERS)
    )


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """A stream, piece by piece."""
    while chunk := stream.read(_CHUNK):
        yield chunk


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """What the log of something that failed says."""

    cause: tuple[str, ...] = ()
    """The lines that name the root cause; none where nothing looks like one."""
    error_line: str | None = None
    """The one of them that names the error."""
    findings: tuple[Finding, ...] = ()
    """The kind of failure, where one is known, and what the build went on without."""


def read_failure(log: Path, setting: StageSetting | None = None) -> Failure:
    """The root cause in the log of something that failed; of a stage, with what to do in its recipe."""
    try:
        with log.open("rb") as stream:
            # It is a log, whatever a program printed into it.
            chunks = (chunk.replace(b"\0", b"") for chunk in read_chunks(stream))
            diagnosis = engine().diagnose(chunks, log.name, setting=setting)
    except BinaryLogError:
        return Failure()
    known = [finding for finding in diagnosis.findings if finding.specific > _REPEATS]
    errors = [finding for finding in known if finding.severity == "error"]
    warnings = [finding for finding in known if finding.severity == "warning"]
    return Failure(
        cause=cause_lines(diagnosis),
        error_line=error_line(diagnosis),
        findings=tuple(map(_finding, (*errors[:1], *warnings[:_WARNINGS]))),
    )


def _finding(diagnosed: Diagnosed) -> Finding:
    """What of a diagnosis goes into events and records."""
    return Finding(**{name: getattr(diagnosed, name) for name in Finding.__struct_fields__})
