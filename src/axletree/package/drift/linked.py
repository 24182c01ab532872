"""What the libraries of a wheel are really linked with: the names they need, and the versions of their symbols."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from packaging.version import Version

from axletree.package.drift import ranges
from axletree.package.drift.evidence import Evidence
from axletree.package.drift.names import is_known, look_up, own_version

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.drift.names import DependencyTable

_SONAME = re.compile(r"(?P<name>lib[\w+.-]+?)(?:-(?P<inside>\d+(?:\.\d+)+))?\.so(?:\.(?P<version>\d+(?:\.\d+)*))?")
_GLIBC = re.compile(r"GLIBC_(\d+\.\d+(?:\.\d+)?)")


def of_libraries(
    libraries: Iterable[tuple[str, ElfFacts]], *, file: str, table: DependencyTable, gpus: tuple[str, ...] = ()
) -> tuple[Evidence, ...]:
    """What libraries need, for the SONAMEs that the table knows, and the newest glibc that they need.

    Args:
        libraries: path and facts of each library.
        file: the wheel that they are in.
        table: what dependencies are called.
        gpus: the GPU world of the wheel.
    """
    needed: dict[str, str] = {}
    floor: tuple[Version, str, str] | None = None
    for path, facts in libraries:
        for soname in facts.needed:
            needed.setdefault(soname, path)
        for need in facts.versions_needed:
            for text in need.versions:
                found = _GLIBC.fullmatch(text)
                if found is not None and (floor is None or Version(found[1]) > floor[0]):
                    floor = Version(found[1]), path, f"{need.file} {text}"
    evidence = [each for soname, path in needed.items() if (each := _of_soname(soname, path, file, table, gpus))]
    if floor is not None:
        version, path, text = floor
        evidence.append(
            Evidence(
                dependency="glibc",
                column="linked",
                role="mention",
                file=f"{file}: {path}",
                text=text,
                spec=f">={version}",
                range=ranges.between(version, None),
                gpus=gpus,
            )
        )
    return tuple(evidence)


def _of_soname(soname: str, path: str, file: str, table: DependencyTable, gpus: tuple[str, ...]) -> Evidence | None:
    parts = _SONAME.fullmatch(soname)
    if parts is None or not is_known(table, "soname", parts["name"]):
        return None
    name = look_up(table, "soname", parts["name"])
    version = parts["version"] or parts["inside"]
    own = None if version is None else own_version(table, name, "soname", version)
    found = None if own is None else ranges.of_own(own)
    return Evidence(
        dependency=name,
        column="linked",
        role="mention",
        file=f"{file}: {path}",
        text=soname,
        spec=own or soname,
        range=found,
        gpus=gpus,
        note="" if own is not None else "its SONAME has no version",
    )
