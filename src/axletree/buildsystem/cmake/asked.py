"""What a recipe asks of CMake against what became of it.

``expect`` is checked because somebody thought of it; here everything that a recipe sets is. An option is off for want
of a library, a name is misspelt, a variable never arrives: PyTorch 2.12 and 2.13 take the environment apart
as a list of CMake's, in which an unbalanced bracket in one value hides all variables behind it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.buildsystem.cmake.cache import is_true
from axletree.buildsystem.cmake.features import check_features, last_run
from axletree.buildsystem.pytorch.forwarding import forward

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.buildsystem.cmake.cache import Cache
    from axletree.buildsystem.pytorch.forwarding import Era

Fate = Literal["off", "different", "lost", "unused"]
"""``off``: turned off by the project; ``different``: another value; ``lost``: it never arrived; ``unused``: unread."""

_DEFINE = re.compile(r"-D([^=:]+)(?::\w+)?=(.*)", re.DOTALL)
_CONFIG = "cmake.define."
_UNUSED = "Manually-specified variables were not used by the project:"
_COMPOSED = re.compile(
    r"CMAKE_(?:PREFIX_PATH|INSTALL_PREFIX|MODULE_PATH|GENERATOR.*|BUILD_PARALLEL_LEVEL|MAKE_PROGRAM|\w+_LAUNCHER"
    r"|\w+_FLAGS(?:_\w+)?)"
)
"""Variables that drivers and backends add to, or that are no entries of the cache."""
_READ_BY_SETUP = frozenset({"BUILD_LIBTORCH_WHL", "BUILD_PYTHON_ONLY", "USE_NIGHTLY", "USE_NINJA"})
"""What PyTorch's setup.py reads itself: CMake gets it as well, and need not read it."""
_SWITCH = re.compile(r"ON|YES|TRUE|Y|1|OFF|NO|FALSE|N|0", re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a recipe sets a CMake variable to."""

    value: str
    place: str
    """Key below the stage: ``options.USE_CUDNN``, ``env.USE_CUDNN``."""


class Unlike(msgspec.Struct, frozen=True, kw_only=True):
    """A variable that did not become what was asked for."""

    name: str
    wanted: str
    place: str
    fate: Fate
    found: str = ""
    where: str = ""
    """``summary``, ``CMakeCache.txt:12`` or ``configure log:34``."""
    why: tuple[str, ...] = ()
    """Messages of the configure log that explain it."""
    hint: str = ""
    """What to do, where that is known."""


def asked_of(
    *, options: Mapping[str, str], config: Mapping[str, str], env: Mapping[str, str], driver: str, rules: Era | None
) -> dict[str, Asked]:
    """The CMake variables that a stage of a recipe sets.

    Args:
        options: the stage's ``options``, ``NAME`` or ``NAME:TYPE``.
        config: the stage's ``config``.
        env: variables that the recipe sets or lets through.
        driver: what configures the build; scikit-build-core reads ``CMAKE_ARGS`` and ``cmake.define`` as well.
        rules: how PyTorch's own tree makes CMake variables of the environment; ``None`` for other projects.
    """
    found: dict[str, Asked] = {}
    if rules is not None and driver in {"setup.py", "scikit-build-core"}:
        told = forward(env, rules)
        by_setup = _READ_BY_SETUP if driver == "setup.py" else frozenset()
        for name, origin in told.origin.items():
            if origin not in told.ignored and name not in by_setup:
                found[name] = Asked(value=told.options[name], place=f"env.{origin}")
    if driver == "scikit-build-core":
        with suppress(ValueError):  # a quote without its partner: the backend will say so
            for word in shlex.split(env.get("CMAKE_ARGS", "")):
                if define := _DEFINE.fullmatch(word):
                    found[define[1]] = Asked(value=define[2], place="env.CMAKE_ARGS")
        for key, value in config.items():
            if key.startswith(_CONFIG):
                found[key.removeprefix(_CONFIG)] = Asked(value=value, place=f"config.{key}")
    for key, value in options.items():
        found[key.partition(":")[0]] = Asked(value=value, place=f"options.{key}")
    return {name: asked for name, asked in found.items() if not _COMPOSED.fullmatch(name)}


def compare(
    asked: Mapping[str, Asked], cache: Cache, log: Sequence[str], *, env: Mapping[str, str]
) -> tuple[Unlike, ...]:
    """Everything that was asked for and is otherwise.

    Args:
        asked: what was asked for.
        cache: what the configured folder's cache says.
        log: lines that configuring printed.
        env: variables of the build: one of them may be what hides others from CMake.
    """
    unread = set(unused_variables(last_run(log, cache.get("CMAKE_CACHEFILE_DIR"))))
    found = [_unused(name, asked[name], cache) for name in asked if name in unread]
    wanted = {name: each.value for name, each in asked.items() if name not in unread}
    broken = tuple(name for name in sorted(env) if not _is_balanced(env[name]))
    for each in check_features(wanted, cache, log):
        one = asked[each.feature]
        entry = cache.entries.get(each.feature)
        if each.found is not None and _is_same_path(one.value, each.found):
            continue
        lost = each.found is None or (not each.why and one.place.startswith("env.") and entry is not None and broken)
        off = is_true(one.value) and each.found is not None and not is_true(each.found)
        fate: Fate = "lost" if lost else "off" if off and _SWITCH.fullmatch(one.value) else "different"
        found.append(
            Unlike(
                name=each.feature,
                wanted=one.value,
                place=one.place,
                fate=fate,
                found=each.found or "",
                where=each.where,
                why=each.why,
                hint=_hidden_by(broken) if lost and broken else each.hint if each.why else "",
            )
        )
    return tuple(found)


def unused_variables(log: Iterable[str]) -> tuple[str, ...]:
    """Variables that CMake got and that no file of the project read, by its own word."""
    names: list[str] = []
    inside = False
    for line in log:
        if _UNUSED in line:
            inside = True
        elif inside and line.startswith("    "):
            names.append(line.strip())
        elif inside and line.strip():
            inside = False
    return tuple(dict.fromkeys(names))


def _unused(name: str, asked: Asked, cache: Cache) -> Unlike:
    others = [other for other, entry in cache.entries.items() if other != name and entry.type != "INTERNAL"]
    close = get_close_matches(name, others, n=1, cutoff=0.8)
    hint = f"use {close[0]}, which the project defines" if close else ""
    return Unlike(name=name, wanted=asked.value, place=asked.place, fate="unused", hint=hint)


def _is_same_path(wanted: str, found: str) -> bool:
    """Whether CMake only made a path of what was asked for: ``gcc`` is ``/usr/bin/gcc``, ``lib/`` is ``/src/lib``."""
    path = posixpath.normpath(wanted)
    return found.startswith("/") and (found == path or found.endswith(f"/{path}"))


def _is_balanced(value: str) -> bool:
    """Whether CMake sees every semicolon of a list with this value: between brackets it does not."""
    depth = 0
    for bracket in re.findall(r"[\[\]]", value):
        depth += 1 if bracket == "[" else -1
    return depth == 0


def _hidden_by(names: Sequence[str]) -> str:
    which = " and ".join(names)
    return f"balance the brackets in the value of {which}: CMake may treat the variables that follow as part of it"
