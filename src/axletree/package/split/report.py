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
    """Number of the rule that decided, counted from 1; 0 for the metadata folder, which needs none."""
    packages: tuple[str, ...] = ()
    """One; several for licence files, which go with each package; none for what is dropped."""
    target: str | None = None
    """Path in the package where it is another."""
    change: Change = ""
    """Changed by text edits, or in the search path of an ELF file; else its compressed bytes are copied."""


class SplitRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule and what it took."""

    number: int
    takes: str
    """Its globs, modules and SONAMEs."""
    to: str | None
    drop: str | None
    """Why its files go nowhere."""
    files: int
    size: int
    """Bytes."""


class SplitPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution that comes out."""

    name: str
    version: str
    filename: str
    """Of the wheel."""
    files: int
    """Files of the original that it holds, licences not counted."""
    size: int
    """Bytes of them as they were in the original."""
    requires: tuple[str, ...]
    identity: str
    """Stands for its files and requirements; the check at import knows it by this."""
    added: tuple[str, ...]
    """Paths of files that the original does not have, its metadata folder left out."""


class SplitConda(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conda package that comes out."""

    name: str
    filename: str
    """Path below the output folder."""
    depends: tuple[str, ...]
    constrains: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()
    """Distributions that it requires and the table of conda names does not have: their own name was taken."""
    compiled: int = 0
    """Compiled Python files that it holds."""


class SplitReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a split does, all of it."""

    wheel: str
    """File name of the original."""
    version: str
    """Of all packages."""
    install: str
    """The requirement that installs all of it."""
    packages: tuple[SplitPackage, ...]
    rules: tuple[SplitRule, ...]
    files: tuple[SplitFile, ...]
    """Each file of the original once, in its order."""
    requirements: tuple[Share, ...]
    conda: tuple[SplitConda, ...] = ()
    notes: tuple[str, ...] = ()
    """What is worth knowing and no error."""

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
