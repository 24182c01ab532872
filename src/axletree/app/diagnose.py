"""Diagnose logs: files or what comes through a pipe -> what is to be said of each."""

from __future__ import annotations

from contextlib import nullcontext
from typing import IO, TYPE_CHECKING

from axletree.backends.bounds import TOOLCHAIN_BOUNDS
from axletree.check.diagnosis.engine import Diagnosis
from axletree.check.diagnosis.host import with_host
from axletree.check.diagnosis.log import BinaryLogError
from axletree.check.host.examined import Examined, Wish
from axletree.core.errors import Problem, UsageError
from axletree.execute.diagnosing import engine, read_chunks
from axletree.host.shipped_data import read_shipped
from axletree.report.diagnosis import DiagnosedLogs, LogReport

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from axletree.check.diagnosis.engine import Diagnosis
    from axletree.check.host.facts import HostFacts

_EMPTY = "also redirect stderr, where tools print their errors: BUILD 2>&1 | axletree diagnose -"


def diagnose_logs(
    paths: Sequence[Path],
    *,
    stdin: IO[bytes],
    facts: HostFacts | None = None,
    at_work: Callable[[str], None] = lambda _: None,
) -> DiagnosedLogs:
    """Read logs, each once, in memory that does not grow with them.

    Args:
        paths: Files; ``-`` is the standard input.
        stdin: The standard input.
        facts: Of the host that they come from. Nothing of this one is looked at: a log often comes from another.
        at_work: Told which log is read next.

    Raises:
        HostError: the table of what goes together can't be read.
        UsageError: one can't be read, is empty or is no text; names all of these.
    """
    found: list[tuple[str, Diagnosis]] = []
    problems = []
    for path in paths:
        name = str(path)
        at_work("standard input" if name == "-" else name)
        try:
            with nullcontext(stdin) if name == "-" else path.open("rb") as stream:
                diagnosis = engine().diagnose(read_chunks(stream), name)
        except OSError as error:
            problems.append(Problem(file=name, message=f"the file cannot be read: {error.strerror}"))
            continue
        except BinaryLogError as error:
            problems.append(Problem(file=name, message=f"the file is not a log: it is {error}"))
            continue
        if not diagnosis.outcome.lines:
            problems.append(Problem(file=name, message="the log is empty", hint=_EMPTY if name == "-" else None))
            continue
        found.append((name, diagnosis))
    if problems:
        raise UsageError(*problems)
    if facts is not None:
        examined = Examined(host=facts, wish=Wish(), bounds=read_shipped(TOOLCHAIN_BOUNDS))
        found = [(name, with_host(diagnosis, examined)) for name, diagnosis in found]
    return DiagnosedLogs(
        logs=tuple(LogReport(name=name, outcome=each.outcome, findings=each.findings) for name, each in found)
    )
