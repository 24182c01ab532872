"""Rules about a build that is over: whether the compiler cache did what it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.ccache import CacheUse, describe
from axletree.check.engine import Case, Found, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


class Compiling(msgspec.Struct, frozen=True, kw_only=True):
    """How a stage used the compiler cache."""

    stage: str
    use: CacheUse
    expected: str = ""
    """Why much of it should have been in the cache; empty where nobody knows."""


def _refused(facts: Compiling) -> Iterator[Found]:
    refused = facts.use.refused_gpu()
    if not refused:
        return
    count = sum(map(len, refused.values()))
    yield Found(
        where=facts.stage,
        message=f"the compiler cache did not handle {count:,} compilation{'s' if count > 1 else ''} of GPU code; "
        f"ccache reports: {describe(refused)}",
        evidence=tuple(f"{why}: {file}" for why, files in sorted(refused.items()) for file in files[:3]),
    )


def _cold(facts: Compiling) -> Iterator[Found]:
    use = facts.use
    if not facts.expected or use.hits or not (use.misses or use.past):
        return
    why = f"; ccache reports: {describe(use.refused)}" if use.refused else "; ccache gives no reason"
    yield Found(
        where=facts.stage,
        message=f"the compiler cache had {use.misses:,} misses and no hits, although {facts.expected}{why}",
    )


_USUAL = Compiling(stage="lib", use=CacheUse(hits=3, misses=1))

COMPILING_RULES: tuple[Rule[Compiling], ...] = (
    Rule(
        id="build/compiler-cache-refused",
        severity="warning",
        title="Compilations of GPU code bypass the compiler cache",
        why="Compiling CUDA code takes hours, and each build in a new folder or store repeats all of it.",
        fix="remove the option from repeated builds (--keep and --save-temps are for debugging, and -arch=native "
        "depends on the machine), and compile and link in separate steps",
        check=_refused,
        cases=lambda: (
            Case(
                title="an option that ccache does not support",
                facts=Compiling(
                    stage="lib", use=CacheUse(misses=1, refused={"unsupported compiler option": ("a.cu", "b.cu")})
                ),
                fires=True,
            ),
            Case(
                title="a C++ file",
                facts=Compiling(stage="lib", use=CacheUse(misses=1, refused={"multiple source files": ("",)})),
                fires=False,
            ),
            Case(title="all compilations cached", facts=_USUAL, fires=False),
        ),
    ),
    Rule(
        id="build/compiler-cache-cold",
        severity="warning",
        title="The compiler cache had no hits when it should have",
        why=(
            "Files that were compiled before are compiled again, so a build that was killed or moved to a new "
            "folder takes hours instead of minutes."
        ),
        fix=(
            "let ccache report the reason: run `axletree shell STAGE`, then set `CCACHE_LOGFILE=log` for the "
            "compile command"
        ),
        check=_cold,
        cases=lambda: (
            Case(
                title="a build after a killed attempt",
                facts=Compiling(stage="lib", use=CacheUse(misses=4), expected="the killed attempt filled it"),
                fires=True,
            ),
            Case(
                title="a build after a killed attempt, with every compilation refused",
                facts=Compiling(
                    stage="lib", use=CacheUse(refused={"disabled": ("a.c",)}), expected="the killed attempt filled it"
                ),
                fires=True,
            ),
            Case(title="a first build", facts=Compiling(stage="lib", use=CacheUse(misses=4)), fires=False),
            Case(
                title="hits",
                facts=Compiling(stage="lib", use=CacheUse(hits=1, misses=4), expected="the killed attempt filled it"),
                fires=False,
            ),
        ),
    ),
)
