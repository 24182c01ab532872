"""Rules about a plan: what a build of it lacks on this machine, and what it could not publish."""

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


class Republished(msgspec.Struct, frozen=True, kw_only=True):
    """A package of the output folder, and what changed since it was made."""

    path: str
    reasons: tuple[str, ...]


def _republished(facts: Republished) -> Iterator[Found]:
    if facts.reasons:
        message = "is published; a build after these changes cannot publish other content under the same name"
        yield Found(where=facts.path, message=message, evidence=facts.reasons)


def _lacking(facts: Part) -> Iterator[Found]:
    if not facts.installed:
        yield Found(where=facts.name, message=NOT_INSTALLED, fix=f"$ {facts.command}")


def _sample(*, installed: bool) -> Part:
    return Part(name="Python 3.13t", command="uv python install 3.13t", installed=installed)


PLAN_RULES: tuple[Rule[Part], ...] = (
    Rule(
        id="build/not-installed",
        severity="warning",
        title="This machine lacks a Python version or a package client that the plan needs",
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

REPUBLISHING_RULES: tuple[Rule[Republished], ...] = (
    Rule(
        id="build/published-before",
        severity="warning",
        title="What will be built is published under the same name with other content",
        why=(
            "Clients and caches take files of one name for the same file, so an index never gets other content under a "
            "name that it has. Publishing would refuse the package, after everything was compiled."
        ),
        fix="change the version, local label or build tag of the package\nor remove the old file",
        check=_republished,
        cases=lambda: (
            Case(
                title="a source that changed, its version did not",
                facts=Republished(path="dist/demo-1.0-py3-none-any.whl", reasons=("fetch: a.c changed",)),
                fires=True,
            ),
            Case(title="nothing changed", facts=Republished(path="dist/demo.whl", reasons=()), fires=False),
        ),
    ),
)
