"""Wheels of one environment as conda packages among themselves, and channels that must do without the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.conda.repodata import ChannelFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from axletree.package.conda.requires import Names


def local_names(distributions: Iterable[str], names: Names) -> dict[str, str]:
    """Distribution -> the package that it becomes: what others require where they require the distribution.

    Two distributions that share a package in the table get two: the second is called as it is.

    Args:
        distributions: normalised names.
        names: table of conda names.
    """
    found: dict[str, str] = {}
    for distribution in distributions:
        packages = names.get(distribution) or names.get(re.sub(r"-cu\d+$", "", distribution)) or ()
        name = packages[0].partition(" ")[0] if packages else distribution
        found[distribution] = distribution if name in found.values() else name
    return found


def local_table(called: Mapping[str, str], names: Names) -> dict[str, tuple[str, ...]]:
    """The table of names for packages of one environment: each distribution is one package, extras bring nothing.

    What an extra would bring is in the environment itself.

    Args:
        called: as :func:`local_names` has it.
        names: table of conda names.
    """
    bases = {re.sub(r"-cu\d+$", "", distribution) for distribution in called} | called.keys()
    kept = {key: () if "[" in key and key.partition("[")[0] in bases else value for key, value in names.items()}
    return {**kept, **{distribution: (name,) for distribution, name in called.items()}}


class Reduced(msgspec.Struct, frozen=True, kw_only=True):
    """Channels without dependencies that nothing in them brings."""

    channels: tuple[tuple[ChannelFile, ...], ...]
    dropped: dict[str, tuple[str, ...]]
    """Name of a package -> its dependencies that were dropped."""


def without_absent(channels: Sequence[Collection[ChannelFile]]) -> Reduced:
    """Drop dependencies on packages that no channel has, so that the rest can be solved and tried.

    Virtual packages, those of the system, are never dropped.

    Args:
        channels: all that a client will see.
    """
    present = {str(file.record["name"]) for files in channels for file in files}
    dropped: dict[str, dict[str, None]] = {}
    reduced: list[tuple[ChannelFile, ...]] = []
    for files in channels:
        lines: list[ChannelFile] = []
        for file in files:
            wanted: list[str] = file.record.get("depends", [])
            absent = [spec for spec in wanted if not spec.startswith("__") and _name(spec) not in present]
            if absent:
                dropped.setdefault(str(file.record["name"]), {}).update(dict.fromkeys(absent))
            depends = [spec for spec in wanted if spec not in absent]
            lines.append(msgspec.structs.replace(file, record={**file.record, "depends": depends}))
        reduced.append(tuple(lines))
    return Reduced(channels=tuple(reduced), dropped={name: tuple(specs) for name, specs in sorted(dropped.items())})


def _name(spec: str) -> str:
    return re.split(r"[ =<>!~]", spec, maxsplit=1)[0]
