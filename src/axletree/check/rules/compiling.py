"""Rules about a build that is over: whether the compiler cache did what it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.ccache import CacheUse, describe
from axletree.check.engine import Found, Rule, fires, silent
from axletree.core.units import plural

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
        facts.stage,
        (
            f"{plural(count, 'compilation')} of GPU code bypassed the compiler cache; "
            f"ccache reports: {describe(refused)}"
        ),
        evidence=tuple(f"{why}: {file}" for why, files in sorted(refused.items()) for file in files[:3]),
    )


def _cold(facts: Compiling) -> Iterator[Found]:
    use = facts.use
    if not facts.expected or use.hits or not (use.misses or use.past):
        return
    why = f"; ccache reports: {describe(use.refused)}" if use.refused else "; ccache gives no reason"
    yield Found(
        facts.stage, f"the compiler cache had {use.misses:,} misses and no hits, although {facts.expected}{why}"
    )


_USUAL = Compiling(stage="lib", use=CacheUse(hits=3, misses=1))

COMPILING_RULES: tuple[Rule[Compiling], ...] = (
    Rule(
        id="build/compiler-cache-refused",
        severity="warning",
        title="Compilations of GPU code bypass the compiler cache",
        why="Compiling CUDA code takes hours, and each build in a new folder or store repeats all of it.",
        fix=(
            "remove the compiler option that ccache reports, such as --keep, --save-temps or -arch=native; if "
            "it reports linking, compile and link in separate steps"
        ),
        check=_refused,
        cases=lambda: (
            fires(
                "an option that ccache does not support",
                Compiling(
                    stage="lib", use=CacheUse(misses=1, refused={"unsupported compiler option": ("a.cu", "b.cu")})
                ),
            ),
            silent(
                "a C++ file", Compiling(stage="lib", use=CacheUse(misses=1, refused={"multiple source files": ("",)}))
            ),
            silent("all compilations cached", _USUAL),
        ),
    ),
    Rule(
        id="build/compiler-cache-cold",
        severity="warning",
        title="The compiler cache had no hits when it should have",
        why="Files that were compiled before are compiled again, so a build that was killed or moved to a new "
        "folder takes hours instead of minutes.",
        fix='to see the reason, set env = { CCACHE_LOGFILE = "/tmp/ccache.log" } for the stage, build again, and read '
        "that file",
        check=_cold,
        cases=lambda: (
            fires(
                "a build after a killed attempt",
                Compiling(stage="lib", use=CacheUse(misses=4), expected="the killed attempt filled it"),
            ),
            fires(
                "a build after a killed attempt, in which ccache refused every compilation",
                Compiling(
                    stage="lib", use=CacheUse(refused={"disabled": ("a.c",)}), expected="the killed attempt filled it"
                ),
            ),
            silent("a first build", Compiling(stage="lib", use=CacheUse(misses=4))),
            silent(
                "hits", Compiling(stage="lib", use=CacheUse(hits=1, misses=4), expected="the killed attempt filled it")
            ),
        ),
    ),
)
