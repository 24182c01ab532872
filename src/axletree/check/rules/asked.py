"""Rules about a build that CMake has configured: whether it is what the recipe asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.asked import Unlike
from axletree.check.engine import Found, Rule, fires, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.buildsystem.cmake.asked import Fate


class Configured(msgspec.Struct, frozen=True, kw_only=True):
    """What of a configured build is not as the recipe asks."""

    table: str
    """``stages.core``."""
    unlike: tuple[Unlike, ...] = ()


_LOST_FIX = (
    "check the spelling of the variable, and that the project passes it to this CMake run; `axletree cmake-cache "
    "FOLDER` lists the variables"
)


def _finds(*fates: Fate, says: Callable[[Unlike], str]) -> Callable[[Configured], Iterator[Found]]:
    def check(facts: Configured) -> Iterator[Found]:
        for one in facts.unlike:
            if one.fate in fates:
                fix = one.hint or (_LOST_FIX if one.fate == "lost" else None)
                yield Found(f"{facts.table}.{one.place}", says(one), evidence=one.why, fix=fix)

    return check


def _is_off(one: Unlike) -> str:
    return f"{one.place} is {one.wanted}, but {one.name} is {one.found or 'empty'} after configuring ({one.where})"


def _is_other(one: Unlike) -> str:
    if not one.where:
        return f"{one.place} is {one.wanted}, but CMake has no variable {one.name} after configuring"
    return _is_off(one)


def _is_unused(one: Unlike) -> str:
    return f"{one.place} is {one.wanted}, but no CMake file in the project reads {one.name}"


def _sample(fate: Fate, **more: str) -> Configured:
    one = Unlike(name="USE_CUDNN", wanted="ON", place="options.USE_CUDNN", fate=fate, **more)  # type: ignore[arg-type]
    return Configured(table="stages.core", unlike=(one,))


_OFF = _sample("off", found="OFF", where="CMakeCache.txt:199")
_OTHER = _sample("different", found="OFF", where="CMakeCache.txt:199")
_LOST = _sample("lost")
_UNUSED = _sample("unused", hint="use USE_CUDNN, which the project defines")
_CLEAN = Configured(table="stages.core")

ASKED_RULES: tuple[Rule[Configured], ...] = (
    Rule(
        id="build/option-off",
        severity="warning",
        title="CMake turned off a feature that the recipe turns on",
        why="The build succeeds without the feature, and users of the package are the first to notice.",
        fix=(
            "install what the feature needs, or turn the feature off in the recipe; to stop the build at this "
            "point, add the option to the stage's `expect`"
        ),
        check=_finds("off", says=_is_off),
        cases=lambda: (
            fires("an option turned off because a library is missing", _OFF),
            silent("an option that no CMake file reads", _UNUSED),
            silent("all options with the recipe's values", _CLEAN),
        ),
    ),
    Rule(
        id="build/option-different",
        severity="warning",
        title="A CMake variable does not have the value that the recipe sets",
        why=(
            "The project or an environment variable replaced the value, or the value never reached CMake, so the "
            "build is not the one that the recipe describes."
        ),
        fix=(
            "find the CMake file that overrides the variable, and set what that file reads instead; `axletree "
            "cmake-cache FOLDER` lists the configured values"
        ),
        check=_finds("different", "lost", says=_is_other),
        cases=lambda: (
            fires("a different value", _OTHER),
            fires("a variable that never reached CMake", _LOST),
            silent("an option turned off because a library is missing", _OFF),
            silent("all options with the recipe's values", _CLEAN),
        ),
    ),
    Rule(
        id="build/option-unused",
        severity="warning",
        title="The recipe sets a CMake variable that the project does not read",
        why="A misspelled or removed option has no effect, and CMake mentions it only in one line of a long log.",
        fix="check the spelling of the variable in the project's CMakeLists.txt, or remove it from the recipe",
        check=_finds("unused", says=_is_unused),
        cases=lambda: (
            fires("a misspelled option", _UNUSED),
            silent("an option turned off because a library is missing", _OFF),
            silent("all options with the recipe's values", _CLEAN),
        ),
    ),
)
