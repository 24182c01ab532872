"""Rules about a plan: what a build of it lacks on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Case, Found, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_INSTALLED = "not installed"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Something that stages need of this machine."""

    name: str
    """``Python 3.13t``."""
    command: str
    """Installs it."""
    installed: bool


def _lacking(facts: Part) -> Iterator[Found]:
    if not facts.installed:
        yield Found(where=facts.name, message=NOT_INSTALLED, fix=f"$ {facts.command}")


def _sample(*, installed: bool) -> Part:
    return Part(name="Python 3.13t", command="uv python install 3.13t", installed=installed)


PLAN_RULES: tuple[Rule[Part], ...] = (
    Rule(
        id="build/not-installed",
        severity="warning",
        title="This machine lacks a Python or a client that the plan needs",
        why=(
            "The keys of stages that use it are not known yet, so `plan` counts them as stages to run; `build` refuses "
            "to start."
        ),
        fix="install it, or choose other variants with -v or --skip",
        check=_lacking,
        cases=lambda: (
            Case(title="a free-threaded Python that is missing", facts=_sample(installed=False), fires=True),
            Case(title="a Python that is there", facts=_sample(installed=True), fires=False),
        ),
    ),
)
