"""Every deliberate error, with its exit code.

Expected trouble in what a user gave (a recipe, an index, a store) is an :class:`AxletreeError`; it lists *all* problems
of one input, and each problem says what, where and what to do. A stage that fails is no exception but a result. Only
``cli`` turns an error into an exit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.units import and_more

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.core.findings import Finding


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error in an input."""

    message: str
    """The error, in one sentence without a full stop."""
    file: str | None = None
    """Path as given."""
    line: int | None = None
    """Line number, starting at 1."""
    key: str | None = None
    """Dotted key inside the file, such as ``stages.build.axes``."""
    excerpt: str | None = None
    """The text of that line."""
    hint: str | None = None
    """What to do about it."""


BUILD_AGAIN = "download the file or build it again"


def damaged_archive(file: str, message: str, *, key: str | None = None) -> Problem:
    """Of an archive whose parts contradict each other or its format."""
    return Problem(file=file, key=key, message=f"damaged archive: {message}", hint=BUILD_AGAIN)


def refused_archive(file: str, message: str, *, key: str | None = None) -> Problem:
    """Of an archive that may be sound, but has what its reader does not accept."""
    hint = "build the archive again without this, or report it to its author"
    return Problem(file=file, key=key, message=f"unsupported archive: {message}", hint=hint)


def some_problems(problems: Sequence[Problem], most: int = 20, *, what: str = "") -> tuple[Problem, ...]:
    """The first of many problems of one input, and one that says how many more there are."""
    more = len(problems) - most
    return (*problems[:most], *([Problem(message=and_more(more, what))] if more > 0 else []))


def render_problem(problem: Problem) -> str:
    """Plain text of one problem: place, message, excerpt with its line number, hint."""
    place = problem.file or ""
    if place and problem.line is not None:
        place = f"{place}:{problem.line}"
    head = ": ".join(part for part in (place, problem.key, problem.message) if part)
    lines = [head]
    if problem.excerpt is not None:
        number = str(problem.line) if problem.line is not None else ""
        lines.append(f"  {number:>4} | {problem.excerpt}")
    if problem.hint is not None:
        lines.append(f"  hint: {problem.hint}")
    return "\n".join(lines)


class AxletreeError(Exception):
    """Base of all deliberate errors. ``exit_code`` is what the command line ends with."""

    exit_code = 2

    def __init__(self, *problems: Problem | str, hint: str | None = None) -> None:
        """Collect the problems; a plain string becomes one. ``hint`` is for all, and is said once, after the last."""
        found = [p if isinstance(p, Problem) else Problem(message=p) for p in problems]
        if found and found[-1].hint is None:
            found[-1] = msgspec.structs.replace(found[-1], hint=hint)
        self.problems = tuple(found)
        super().__init__(str(self))

    def name_command(self, general: str, command: str) -> None:
        """Put a command that works as it is where hints have one with a placeholder, such as ``RECIPE``."""
        self.problems = tuple(
            msgspec.structs.replace(each, hint=each.hint and each.hint.replace(general, command))
            for each in self.problems
        )

    def __str__(self) -> str:
        """All problems, one below the other; a hint that several in a row have is said once, after the last."""
        following = (*self.problems[1:], None)
        shown = (
            msgspec.structs.replace(each, hint=None) if later is not None and later.hint == each.hint else each
            for each, later in zip(self.problems, following, strict=True)
        )
        return "\n".join(map(render_problem, shown))


class UsageError(AxletreeError):
    """The command line asks for something that does not exist or cannot be combined (exit 2)."""


class RecipeError(AxletreeError):
    """A recipe or its lock is wrong; holds all its problems (exit 2)."""


class LockError(RecipeError):
    """A lock of a recipe is missing or out of date, which a new one mends (exit 2)."""


class StoreError(AxletreeError):
    """The store cannot be used: unwritable, full, of another format (exit 3)."""

    exit_code = 3


class HostError(AxletreeError):
    """The host lacks something: a compiler, an interpreter, the network, room on a disk (exit 3)."""

    exit_code = 3


class IntegrityError(AxletreeError):
    """Content is not what its name or its lock says (exit 2)."""


class PublishError(AxletreeError):
    """The output folder already holds something else under that name (exit 2)."""


class StageError(AxletreeError):
    """An action could not do its work: a compile error, a failing test, an audit finding (exit 1)."""

    exit_code = 1

    def __init__(self, *problems: Problem | str, hint: str | None = None, findings: tuple[Finding, ...] = ()) -> None:
        """As the base class; ``findings`` are what an audit found."""
        self.findings = findings
        super().__init__(*problems, hint=hint)


class ExpectationError(StageError):
    """What a stage found is not what its recipe expects; the message says all that there is to say (exit 1)."""
