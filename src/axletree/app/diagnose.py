"""Diagnose logs: files or what comes through a pipe -> what is to be said of each."""

from __future__ import annotations

from functools import cache
from typing import IO, TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.engine import Diagnosis, Engine
from axletree.check.diagnosis.log import BinaryLogError
from axletree.core.errors import Problem, UsageError
from axletree.host.kinds import read_kinds
from axletree.host.providers import read_providers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

_CHUNK = 1 << 18


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """A log and what is in it."""

    name: str
    """As the user gave it; ``-`` is the standard input."""
    diagnosis: Diagnosis


def diagnose_logs(paths: Sequence[Path], *, stdin: IO[bytes]) -> tuple[LogReport, ...]:
    """Read logs, each once, in memory that does not grow with them.

    Args:
        paths: Files; ``-`` is the standard input.
        stdin: The standard input.

    Raises:
        UsageError: one can't be read, is empty or is no text; names all of these.
    """
    reports, problems = [], []
    for path in paths:
        name = str(path)
        try:
            if name == "-":
                diagnosis = _engine().diagnose(_chunks(stdin))
            else:
                with path.open("rb") as stream:
                    diagnosis = _engine().diagnose(_chunks(stream))
        except OSError as error:
            problems.append(Problem(file=name, message=f"can't be read: {error.strerror}"))
            continue
        except BinaryLogError as error:
            problems.append(Problem(file=name, message=f"is no log: it is {error}"))
            continue
        if not diagnosis.outcome.lines:
            problems.append(Problem(file=name, message="is empty", hint=_EMPTY if name == "-" else None))
            continue
        reports.append(LogReport(name=name, diagnosis=diagnosis))
    if problems:
        raise UsageError(*problems)
    return tuple(reports)


_EMPTY = "tools print errors to the other stream: `BUILD 2>&1 | axletree diagnose -`"


def diagnose_lines(chunks: Iterable[bytes]) -> Diagnosis:
    """What is to be said of one log.

    Raises:
        BinaryLogError: it is no text.
    """
    return _engine().diagnose(chunks)


@cache
def _engine() -> Engine:
    return Engine(read_kinds(), providers=read_providers())


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk
