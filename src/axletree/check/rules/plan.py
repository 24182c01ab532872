"""Rules about a plan: what a build of it lacks on this machine, and what it could not publish."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, fires, silent
from axletree.core.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_INSTALLED = "not installed"
NOT_LOCKED = "not locked yet"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Something that stages need of this machine."""

    name: str
    """``Python 3.13t``."""
    fix: str
    """What installs it."""
    installed: bool


class Unlocked(msgspec.Struct, frozen=True, kw_only=True):
    """What of a recipe is not locked."""

    source: bool
    environments: int
    fix: str


class Republished(msgspec.Struct, frozen=True, kw_only=True):
    """A package of the output folder, and what changed since it was made."""

    path: str
    reasons: tuple[str, ...]


def _republished(facts: Republished) -> Iterator[Found]:
    if facts.reasons:
        message = (
            "the file is already published, and a build with these changes cannot publish different content "
            "under the same name"
        )
        yield Found(facts.path, message, evidence=facts.reasons)


def _lacking(facts: Part) -> Iterator[Found]:
    if not facts.installed:
        yield Found(facts.name, NOT_INSTALLED, fix=facts.fix)


def _unlocked(facts: Unlocked) -> Iterator[Found]:
    named = [*(["the source"] if facts.source else [])]
    named += [plural(facts.environments, "environment")] if facts.environments else []
    if named:
        several = len(named) > 1 or facts.environments > 1
        message = f"{' and '.join(named)} {'are' if several else 'is'} {NOT_LOCKED}"
        yield Found("locks", message, fix=facts.fix)


def _sample(*, installed: bool) -> Part:
    return Part(name="Python 3.13t", fix="$ uv python install 3.13t", installed=installed)


PLAN_RULES: tuple[Rule[Part], ...] = (
    Rule(
        id="build/not-installed",
        severity="warning",
        title="This machine lacks a Python version, a program or a package client that the plan needs",
        why="The keys of stages that use a missing part are not known yet, so `plan` counts these stages as stages "
        "to run, "
        "and `build` refuses to start.",
        fix="install the missing part, or choose different variants with -v or --skip",
        check=_lacking,
        cases=lambda: (
            fires("a missing free-threaded Python", _sample(installed=False)),
            silent("an installed Python", _sample(installed=True)),
        ),
    ),
)

LOCK_RULES: tuple[Rule[Unlocked], ...] = (
    Rule(
        id="build/not-locked",
        severity="warning",
        title="The recipe's source or environments are not locked yet",
        why=(
            "A lock pins the exact source and the exact wheels of each environment. Until then, `plan` does not "
            "know the content of these stages, counts them as stages to run and cannot list their downloads."
        ),
        fix="lock the recipe: axletree lock RECIPE",
        check=_unlocked,
        cases=lambda: (
            fires("a new recipe", Unlocked(source=True, environments=2, fix="$ axletree lock RECIPE")),
            fires("one new environment", Unlocked(source=False, environments=1, fix="$ axletree lock RECIPE")),
            silent("everything locked", Unlocked(source=False, environments=0, fix="$ axletree lock RECIPE")),
        ),
    ),
)

REPUBLISHING_RULES: tuple[Rule[Republished], ...] = (
    Rule(
        id="build/published-before",
        severity="warning",
        title="A package with the same name but different content is already published",
        why="Clients and caches assume that files with the same name are identical, so the content of a published file "
        "never changes. Publishing would reject the package after everything has been compiled.",
        fix="change the version, local label or build tag of the package\nor replace the old file: use build --replace",
        check=_republished,
        cases=lambda: (
            fires(
                "a changed source with an unchanged version",
                Republished(path="dist/demo-1.0-py3-none-any.whl", reasons=("fetch: a.c changed",)),
            ),
            silent("nothing changed", Republished(path="dist/demo.whl", reasons=())),
        ),
    ),
)
