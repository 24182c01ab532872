"""What the extras of a selector install: one rule for the wheel, whose GPUs are fixed, and what is built on a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Protocol

    class Package(Protocol):
        """A distribution of the SDK, as the builder or the runtime has it."""

        @property
        def package(self) -> str:
            """Name in the manifest."""

        @property
        def kind(self) -> str:
            """``device`` where it holds code for single GPUs."""

        @property
        def dist(self) -> str:
            """Its name."""

        @property
        def extra(self) -> str:
            """The extra that asks for it; empty: always there."""

        @property
        def targets(self) -> Sequence[str]:
            """GPU targets that it has code for."""


def extras_of(packages: Sequence[Package], chosen: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Extra -> distributions that it installs, sorted by extra.

    ``libraries`` is the part that all GPUs share and what some GPUs need; ``libraries-FAMILY`` and ``device-TARGET``
    the same for GPUs that are named; ``device`` and ``device-all`` what GPUs need, alone.

    Args:
        packages: all packages.
        chosen: distributions for the GPUs that are meant where none is named.
    """
    extras: dict[str, list[str]] = {}
    shared = {each.package: each for each in packages if each.kind != "device"}
    for each in packages:
        if each.extra and each.kind != "device":
            extras.setdefault(each.extra, []).append(each.dist)
    for each in packages:
        if each.kind != "device":
            continue
        extras.setdefault(each.extra, []).extend([shared[each.package].dist, each.dist])
        if each.dist in chosen:
            extras.setdefault(shared[each.package].extra, []).append(each.dist)
            extras.setdefault("device", []).append(each.dist)
        if len(each.targets) == 1:
            extras.setdefault("device-all", []).append(each.dist)
    return {extra: tuple(dict.fromkeys(extras[extra])) for extra in sorted(extras)}


def extra_fields(packages: Sequence[Package], chosen: Collection[str], version: str) -> list[tuple[str, str]]:
    """The fields of METADATA that say so, every distribution pinned to the selector's own version."""
    always = [each.dist for each in packages if not each.extra and each.kind != "device"]
    fields = [("Requires-Dist", f"{dist}=={version}") for dist in always]
    for extra, dists in extras_of(packages, chosen).items():
        fields.append(("Provides-Extra", extra))
        fields += [("Requires-Dist", f"{dist}=={version} ; extra == '{extra}'") for dist in dists]
    return fields
