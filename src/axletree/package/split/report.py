"""The proof of a split: each file with its package and the rule that put it there, each requirement with its owners."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.package.split.assign import describe_rule
from axletree.package.split.metadata import Share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.package.split.assign import Destination
    from axletree.package.split.rules import FileRule
    from axletree.package.wheel.metadata import Metadata

Change = Literal["", "edited", "relocated"]


class SplitFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of the original."""

    path: str
    size: int
    """Bytes of its content in the original."""
    rule: int
    """Number of the rule that matched it, starting at 1; 0 for the metadata folder, which needs none."""
    packages: tuple[str, ...] = ()
    """One package; several for license files, which are in each package; none for dropped files."""
    target: str | None = None
    """Path in the package, if it differs."""
    change: Change = ""
    """Whether it is changed by text edits or in its search path; otherwise its compressed bytes are copied."""


class SplitRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule and the files that it matched."""

    number: int
    takes: str
    """Its globs, modules and SONAMEs."""
    to: str | None
    drop: str | None
    """Why its files are dropped."""
    files: int
    size: int
    """Bytes."""


class SplitPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A resulting distribution."""

    name: str
    version: str
    filename: str
    """Of the wheel."""
    files: int
    """Files of the original in it, without licenses."""
    size: int
    """Their bytes in the original."""
    requires: tuple[str, ...]
    identity: str
    """Identifies its files and requirements; the check at import uses it."""
    added: tuple[str, ...]
    """Paths of files that the original does not have, without its metadata folder."""


class SplitConda(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A resulting conda package."""

    name: str
    filename: str
    """Path relative to the output folder."""
    depends: tuple[str, ...]
    constrains: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    """Required distributions that are missing in the table of conda names; they keep their own names."""
    compiled: int = 0
    """Compiled Python files in it."""


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a split does."""

    wheel: str
    """File name of the original."""
    version: str
    """Version of all packages."""
    install: str
    """The requirement that installs all packages."""
    packages: tuple[SplitPackage, ...]
    rules: tuple[SplitRule, ...]
    files: tuple[SplitFile, ...]
    """Each file of the original once, in its order."""
    requirements: tuple[Share, ...]
    conda: tuple[SplitConda, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes."""

    @property
    def dropped(self) -> tuple[SplitRule, ...]:
        """Rules that dropped files."""
        return tuple(rule for rule in self.rules if rule.drop is not None and rule.files)


def report_package(
    *, name: str, metadata: Metadata, sizes: Sequence[int], identity: str, added: Sequence[str]
) -> SplitPackage:
    """What to say of a package: its wheel's name, and the sizes of the original's files that it holds."""
    return SplitPackage(
        name=metadata.name,
        version=metadata.version,
        filename=name,
        files=len(sizes),
        size=sum(sizes),
        requires=metadata.requires,
        identity=identity,
        added=tuple(added),
    )


def report_rules(
    rules: Sequence[FileRule], places: Sequence[Destination], sizes: Mapping[str, int]
) -> tuple[SplitRule, ...]:
    """Each rule and what it took."""
    files: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for path, number, _, _ in places:
        files[number] += 1
        total[number] += sizes[path]
    return tuple(
        SplitRule(
            number=number + 1,
            takes=describe_rule(rule),
            to=rule.to,
            drop=rule.drop,
            files=files[number],
            size=total[number],
        )
        for number, rule in enumerate(rules)
    )


def report_files(
    places: Sequence[Destination], sizes: Mapping[str, int], changes: Mapping[str, Change]
) -> Iterator[SplitFile]:
    """Each file that a rule placed or dropped."""
    owners: dict[str | None, tuple[str, ...]] = {None: ()}
    for path, number, package, target in places:
        yield SplitFile(
            path=path,
            size=sizes[path],
            rule=number + 1,
            packages=owners.setdefault(package, (package,) if package is not None else ()),
            target=target if package is not None and target != path else None,
            change=changes.get(path, ""),
        )
