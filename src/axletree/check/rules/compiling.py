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
        message=f"{count:,} compile{'s' if count > 1 else ''} of GPU code went past the compiler cache, which ccache "
        f"gives as: {describe(refused)}",
        evidence=tuple(f"{why}: {file}" for why, files in sorted(refused.items()) for file in files[:3]),
    )


def _cold(facts: Compiling) -> Iterator[Found]:
    use = facts.use
    if not facts.expected or use.hits or not (use.misses or use.past):
        return
    why = f"; ccache says: {describe(use.refused)}" if use.refused else "; ccache gives no reason"
    yield Found(
        where=facts.stage,
        message=f"nothing came from the compiler cache, though {facts.expected}: {use.misses:,} compiled{why}",
    )


_USUAL = Compiling(stage="lib", use=CacheUse(hits=3, misses=1))

COMPILING_RULES: tuple[Rule[Compiling], ...] = (
    Rule(
        id="build/compiler-cache-refused",
        severity="warning",
        title="GPU code is compiled past the compiler cache",
        why="Compiling CUDA code takes hours, and each build in a new folder or store takes them again.",
        fix="do without the option in builds that are repeated (--keep and --save-temps are for looking inside, "
        "-arch=native is another architecture on each machine), and compile and link in two steps",
        check=_refused,
        cases=lambda: (
            Case(
                title="an option that ccache does not take",
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
            Case(title="all is cached", facts=_USUAL, fires=False),
        ),
    ),
    Rule(
        id="build/compiler-cache-cold",
        severity="warning",
        title="The compiler cache had nothing, where it should have",
        why="What was compiled before is compiled again: a kill or a new folder costs hours instead of minutes.",
        fix="look at what ccache says: `axletree shell STAGE`, then `CCACHE_LOGFILE=log` before the compile command",
        check=_cold,
        cases=lambda: (
            Case(
                title="after a kill",
                facts=Compiling(stage="lib", use=CacheUse(misses=4), expected="the killed attempt filled it"),
                fires=True,
            ),
            Case(
                title="after a kill, all refused",
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
