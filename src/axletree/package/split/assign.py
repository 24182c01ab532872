"""Which file of a wheel goes to which package, and where in it: total and disjoint, or an error with the paths."""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from axletree.core.errors import IntegrityError, Problem
from axletree.core.globs import glob_matcher
from axletree.core.trees import paths_above_others
from axletree.core.units import some_of
from axletree.package.partition import Claim, first_claims
from axletree.package.split.rules import module_globs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from axletree.package.split.rules import FileRule, SplitRules


class Destination(NamedTuple):
    """Where a file goes."""

    path: str
    """In the original."""
    rule: int
    """Position of the rule that took it."""
    package: str | None
    """``None`` where it is dropped."""
    target: str
    """Path in the package."""


def assign_files(
    paths: Sequence[str], rules: SplitRules, *, soname: Callable[[str], str | None]
) -> tuple[Destination, ...]:
    """The place of each file, in the order of ``paths``.

    Args:
        paths: the wheel's files without its metadata folder.
        rules: tried in order; the first that takes a file decides.
        soname: path of a file -> the SONAME of the shared library that it is, ``None`` for what is none. Asked only
            where the rules go by it.

    Raises:
        IntegrityError: files that no rule takes, required rules that take none, two files in one place. Names all.
    """
    active = [
        rule if rule.when is None or any(map(glob_matcher((rule.when,)), paths)) else None  # keeps the rules' numbers
        for rule in rules.rule
    ]
    taken = _taken(paths, active, soname)
    places = tuple(
        Destination(path, number, rules.rule[number].to, _target(path, rules.rule[number]))
        for path, number in zip(paths, taken, strict=True)
        if number is not None
    )
    problems = list(_gaps(paths, taken, active))
    problems += _clashes(place for place in places if place.package is not None)
    if problems:
        raise IntegrityError(*problems)
    return places


def describe_rule(rule: FileRule) -> str:
    """A rule in few words: what it takes."""
    words = [*rule.files, *(f"module {name}" for name in rule.modules), *(f"soname {name}" for name in rule.soname)]
    return ", ".join(words)


def _taken(
    paths: Sequence[str], active: Sequence[FileRule | None], soname: Callable[[str], str | None]
) -> tuple[int | None, ...]:
    claims = [_claim(rule) for rule in active]
    taken = first_claims(paths, claims)
    by_soname = [(number, rule) for number, rule in enumerate(active) if rule is not None and rule.soname]
    if not by_soname:
        return taken
    return tuple(_first_soname(path, number, by_soname, soname) for path, number in zip(paths, taken, strict=True))


def _claim(rule: FileRule | None) -> Claim:
    if rule is None:
        return Claim(files=())
    modules = tuple(pattern for module in rule.modules for pattern in module_globs(module))
    return Claim(files=(*rule.files, *modules), exclude=rule.exclude)


def _first_soname(
    path: str, number: int | None, rules: Sequence[tuple[int, FileRule]], soname: Callable[[str], str | None]
) -> int | None:
    """The first rule that takes a file, of those that go by SONAME and the one that goes by path."""
    earlier = [(at, rule) for at, rule in rules if number is None or at < number]
    if not earlier or (name := soname(path)) is None:
        return number
    for at, rule in earlier:
        if not glob_matcher(rule.exclude)(path) and any(fnmatchcase(name, pattern) for pattern in rule.soname):
            return at
    return number


def _target(path: str, rule: FileRule) -> str:
    for folder, target in rule.place.items():
        if path.startswith(f"{folder}/"):
            return f"{target}{path[len(folder) :]}"
    return path


def _gaps(paths: Sequence[str], taken: Sequence[int | None], active: Sequence[FileRule | None]) -> Iterator[Problem]:
    orphans = [path for path, number in zip(paths, taken, strict=True) if number is None]
    if orphans:
        hint = "add a rule that puts the files into a package or drops them"
        count = f"{len(orphans)} files" if len(orphans) > 1 else "a file"
        yield Problem(message=f"no rule matches {count}: {some_of(orphans)}", hint=hint)
    used = set(taken)
    for number, rule in enumerate(active):
        if rule is not None and rule.required and number not in used:
            yield Problem(
                key=f"rule[{number}]", message=f"the rule must match a file, but matches none: {describe_rule(rule)}"
            )


def _clashes(places: Iterable[Destination]) -> Iterator[Problem]:
    """Two files in one place, or a file where another needs a folder: whichever package they are in."""
    targets: dict[str, str] = {}
    twice: Counter[str] = Counter()
    for path, _, _, target in places:
        if targets.setdefault(target, path) != path:
            twice[target] += 1
    yield from (Problem(key=target, message="the path is the destination of more than one file") for target in twice)
    both = "the path is both a file and a folder in the parts"
    yield from (Problem(key=target, message=both) for target in sorted(paths_above_others(targets)))
