"""Diagnose logs: files or what comes through a pipe -> what is to be said of each."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import msgspec

from axletree.check.diagnosis.engine import Diagnosis
from axletree.check.diagnosis.host import with_host
from axletree.check.diagnosis.log import BinaryLogError
from axletree.check.host.examined import Examined, Wish
from axletree.core.errors import Problem, UsageError
from axletree.execute.diagnosing import engine, read_chunks
from axletree.host.bounds import read_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from axletree.check.host.facts import HostFacts

_EMPTY = "tools print errors to stderr: `BUILD 2>&1 | axletree diagnose -`"


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """A log and what is in it."""

    name: str
    """As the user gave it; ``-`` is the standard input."""
    diagnosis: Diagnosis


def diagnose_logs(paths: Sequence[Path], *, stdin: IO[bytes], facts: HostFacts | None = None) -> tuple[LogReport, ...]:
    """Read logs, each once, in memory that does not grow with them.

    Args:
        paths: Files; ``-`` is the standard input.
        stdin: The standard input.
        facts: Of the host that they come from. Nothing of this one is looked at: a log often comes from another.

    Raises:
        HostError: the table of what goes together can't be read.
        UsageError: one can't be read, is empty or is no text; names all of these.
    """
    reports, problems = [], []
    for path in paths:
        name = str(path)
        try:
            if name == "-":
                diagnosis = engine().diagnose(read_chunks(stdin))
            else:
                with path.open("rb") as stream:
                    diagnosis = engine().diagnose(read_chunks(stream))
        except OSError as error:
            problems.append(Problem(file=name, message=f"cannot be read: {error.strerror}"))
            continue
        except BinaryLogError as error:
            problems.append(Problem(file=name, message=f"is not a log: it is {error}"))
            continue
        if not diagnosis.outcome.lines:
            problems.append(Problem(file=name, message="is empty", hint=_EMPTY if name == "-" else None))
            continue
        reports.append(LogReport(name=name, diagnosis=diagnosis))
    if problems:
        raise UsageError(*problems)
    if facts is None:
        return tuple(reports)
    examined = Examined(host=facts, wish=Wish(), bounds=read_bounds())
    return tuple(msgspec.structs.replace(report, diagnosis=with_host(report.diagnosis, examined)) for report in reports)
