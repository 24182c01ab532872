"""When a build folder is configured, and what CMake must have enabled then.

CMake runs each time the stage does: a build that only compiles what changed would not see that a file is new, or that a
header which the configuration reads has another version. Where settings or anything but the content of code changed,
its cache goes first. An edited cache would keep what was found by the old settings, and what PyTorch turned off because
of them; from an empty one the configuration is that of a fresh folder, and objects stay: ninja compiles what has
another command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.asked import asked_of, compare
from axletree.buildsystem.cmake.cache import CACHE_FILE, parse_cache
from axletree.buildsystem.cmake.features import WRITTEN, check_features
from axletree.buildsystem.code import is_compiled
from axletree.buildsystem.pytorch.forwarding import ACT_ON_EACH_BUILD, Era
from axletree.check.engine import apply_rules
from axletree.check.rules.asked import ASKED_RULES, Configured
from axletree.core.errors import AxletreeError, ExpectationError, Problem, StageError
from axletree.core.units import some_lines
from axletree.core.values import Digest
from axletree.execute.context import ActionContext
from axletree.host.files import replace_file
from axletree.plan.actions.build import BuildParameters
from axletree.plan.actions.compile import cmake_options
from axletree.plan.actions.project import ProjectParameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.core.trees import Tree
    from axletree.execute.context import Context

_STAMP = "axletree-built.json"
_OF_EACH_RUN = ACT_ON_EACH_BUILD | {"AXLETREE_JOBS", "DIST_EXTRA_CONFIG"}


class Build(msgspec.Struct, frozen=True, kw_only=True):
    """A build that CMake configures for a stage."""

    context: ActionContext[ProjectParameters]
    driver: str
    """What configures it: a driver, or a way of `axletree dev`."""
    rules: Era | None
    """How PyTorch's own tree makes CMake variables of the environment; ``None`` for other projects."""
    env: Mapping[str, str]
    """Variables of the build."""


class _Stamp(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder was configured with when a build in it went well."""

    settings: dict[str, str]
    source: Digest
    inputs: dict[str, Digest]


def make_room(context: Context, build: Path, *, env: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    """Make a build folder fit for being configured; whether its cache had to go.

    What vouches for the folder goes in any case, until :func:`vouch`: after a build that failed or was killed the next
    one looks for everything again, since a missing library may be there by then.

    Args:
        context: the stage's surroundings.
        build: the folder.
        env: variables of the build.
        settings: CMake variables, and whatever else it is configured with.
    """
    wanted = _stamp(context, env, settings)
    before = _read(build / _STAMP)
    (build / _STAMP).unlink(missing_ok=True)
    cache = build / CACHE_FILE
    if before is not None and cache.exists():
        changes = _changes(context, before, wanted)
        if not changes:
            return False
        context.log.say(f"changed: {', '.join(changes)}; configuring from an empty cache")
    cache.unlink(missing_ok=True)
    return True


def vouch(context: Context, build: Path, *, env: Mapping[str, str], settings: Mapping[str, str]) -> None:
    """Say that a build went well in a folder, with these settings."""
    replace_file(build / _STAMP, msgspec.json.encode(_stamp(context, env, settings)))


def _stamp(context: Context, env: Mapping[str, str], settings: Mapping[str, str]) -> _Stamp:
    work = str(context.work)  # another one for each key, and nothing of it may reach a result
    variables = {f"${name}": value for name, value in env.items() if name not in _OF_EACH_RUN and work not in value}
    inputs = {name: digest for name, digest in context.request.inputs.items() if name != "source"}
    return _Stamp(settings={**variables, **settings}, source=context.request.inputs["source"], inputs=inputs)


def _read(path: Path) -> _Stamp | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Stamp)
    except (OSError, msgspec.MsgspecError):
        return None


def _changes(context: Context, before: _Stamp, now: _Stamp) -> list[str]:
    """What differs that a cache may not outlive, as people call it."""
    old, new = before.settings, now.settings
    changes = sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))
    changes += sorted(
        name for name in before.inputs.keys() | now.inputs.keys() if before.inputs.get(name) != now.inputs.get(name)
    )
    if before.source != now.source:
        try:
            then = context.store.get_tree(before.source)
        except AxletreeError:  # the store let it go
            return [*changes, "the source"]
        changes += _changed_files(then, context.store.get_tree(now.source))
    return changes


def _changed_files(before: Tree, now: Tree) -> list[str]:
    """Files that are new or gone, or are no code and have other content."""
    old = {entry.path: entry for entry in before.entries}
    new = {entry.path: entry for entry in now.entries}
    moved = sorted(old.keys() ^ new.keys())
    edited = sorted(path for path in old.keys() & new.keys() if old[path] != new[path])
    found = [*moved, *(path for path in edited if not is_compiled(path))]
    return some_lines(found, 3, what="file")


def check_expectations(expected: Mapping[str, str], cache: Path, lines: list[str]) -> None:
    """Compare what CMake enabled with what the recipe expects.

    Raises:
        ExpectationError: something is otherwise; all of it.
        IntegrityError: the cache is damaged.
    """
    if not expected:
        return
    text = cache.read_bytes().decode("utf-8", "surrogateescape")
    mismatches = check_features(expected, parse_cache(text, file=CACHE_FILE), lines)
    if mismatches:
        raise ExpectationError(
            *(
                Problem(message=str(each), excerpt="\n".join(each.why) or None, hint=each.hint or None)
                for each in mismatches
            )
        )


def check_configured(build: Build, cache: Path, lines: list[str]) -> None:
    """Compare a configured folder with all that the recipe sets and expects.

    What differs from a setting is a finding of the stage.

    Args:
        build: the build.
        cache: CMake's cache.
        lines: what configuring printed.

    Raises:
        ExpectationError: something differs from what the recipe expects; all of it.
        IntegrityError: the cache is damaged.
    """
    context = build.context
    parameters = context.parameters
    check_expectations(parameters.expect, cache, lines)
    given = {name: value for name, value in context.ingredients.environ.items() if value is not None}
    asked = asked_of(
        options=cmake_options(parameters),
        config=parameters.config if isinstance(parameters, BuildParameters) else {},
        env={**given, **parameters.env},
        driver=build.driver,
        rules=build.rules,
    )
    unchecked = {name: each for name, each in asked.items() if name not in parameters.expect}
    if not unchecked or not cache.exists():
        return
    text = cache.read_bytes().decode("utf-8", "surrogateescape")
    unlike = compare(unchecked, parse_cache(text, file=CACHE_FILE), lines, env=build.env)
    facts = Configured(table=f"stages.{context.request.stage.partition('[')[0]}", unlike=unlike)
    context.notes.findings.extend(apply_rules(ASKED_RULES, facts))


def checking(build: Build, source: Path) -> tuple[Callable[[str], None], Callable[[], None]]:
    """Check a build whose backend configures and compiles in one go: as soon as CMake says that it has configured.

    Returns:
        What gets each line of the backend and raises before anything is compiled; and what raises at the end if CMake
        never configured the source. Other projects that the build configures on its way count for nothing.
    """
    expected = build.context.parameters.expect
    lines: list[str] = []
    checked: list[str] = []

    def watch(line: str) -> None:
        lines.append(line)
        if checked or not (at := line.find(WRITTEN)) + 1:
            return
        cache = Path(line[at + len(WRITTEN) :].strip()) / CACHE_FILE
        if _is_of(cache, source):
            check_configured(build, cache, lines)
            checked.append(line)

    def end() -> None:
        if expected and not checked:
            raise StageError(
                "the build never ran CMake on the source, so the enabled features are unknown",
                hint="`expect` works only with CMake builds",
            )

    return watch, end


def _is_of(cache: Path, source: Path) -> bool:
    """Whether a cache belongs to a source or to a folder in it."""
    try:
        text = cache.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return False
    home = parse_cache(text, file=CACHE_FILE).get("CMAKE_HOME_DIRECTORY")
    return home is not None and Path(os.path.realpath(home)).is_relative_to(os.path.realpath(source))
