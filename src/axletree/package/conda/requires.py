"""What a wheel requires, said as conda dependencies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.core.errors import IntegrityError, Problem
from axletree.core.shipped import read_table, shipped_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.package.wheel.metadata import Metadata

Names = Mapping[str, tuple[str, ...]]
"""Distribution (normalised, with extras: ``cuda-toolkit[cublas]``) -> conda packages. A package without a version gets
the requirement's; ``libcublas >=13,<14`` stays as it is, with ``{version}``, ``{major}``, ``{minor}`` and ``{next}``
filled in from the version that is pinned; no package at all drops the requirement."""

_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "osx": ("darwin", "Darwin", "posix"),
    "win": ("win32", "Windows", "nt"),
}
_MACHINES = {
    "64": {"linux": "x86_64", "osx": "x86_64", "win": "AMD64"},
    "32": {"linux": "i686", "win": "x86"},
    "arm64": {"osx": "arm64", "win": "ARM64"},
}
_PLATFORM = re.compile(
    r"(?:manylinux_(?P<glibc>\d+_\d+)|(?P<old>manylinux1|manylinux2010|manylinux2014)|macosx_(?P<osx>\d+_\d+)"
    r"|(?P<musl>musllinux_\d+_\d+)|linux|win)_?(?P<machine>\w*)"
)
_OLD_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}


class _NamesFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    same: tuple[str, ...]
    names: dict[str, tuple[str, ...]]


class CondaTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where a package will be installed."""

    subdir: str
    """``linux-64``, or ``noarch``."""
    python: str | None = None
    """``3.11`` or ``3.13t``; ``None`` for any."""


class Requires(msgspec.Struct, frozen=True, kw_only=True):
    """The dependencies that metadata ask for."""

    depends: tuple[str, ...]
    constrains: tuple[str, ...]
    """Bounds of what is optional (extras): not installed, but held to its version where it is."""
    guessed: tuple[str, ...]
    """Distributions that the table of names does not have; their own name was taken."""


def parse_names(data: bytes, *, file: str) -> Names:
    """Read a table of names: a list ``same``, a table ``names``.

    Raises:
        IntegrityError: it is not in that form.
    """
    table = read_table(data, _NamesFile, file=file, wrong="the file is not a valid table of names")
    return {name: (name,) for name in table.same} | table.names


CONDA_NAMES = shipped_file("conda-names.toml", parse_names)
"""The table that ships."""


def conda_name(project: str, names: Names) -> str:
    """What a distribution is called as a conda package: its own name, unless the table has one other for it."""
    found = names.get(project, ())
    return found[0] if len(found) == 1 and " " not in found[0] else project


def convert_requires(metadata: Metadata, target: CondaTarget, names: Names | None = None) -> Requires:
    """Turn ``Requires-Dist`` into conda's dependencies, for one target.

    Markers are evaluated for the target. What only an extra asks for goes to ``constrains``.

    Raises:
        IntegrityError: a requirement is invalid, points to a URL, or has a marker that can't be decided without a
            Python version or platform. Lists all.
    """
    depends: list[str] = []
    constrains: list[str] = []
    guessed: list[str] = []
    problems: list[Problem] = []
    for text in metadata.requires:
        try:
            requirement = Requirement(text)
            kind = _applies(requirement, target)
            specs = tuple(_specs(requirement, names or {}, guessed)) if kind else ()
        except (
            InvalidRequirement,
            InvalidSpecifier,
            UndefinedComparison,
            UndefinedEnvironmentName,
            ValueError,
        ) as error:
            message = f"the requirement cannot be expressed as a conda dependency: {error}"
            problems.append(Problem(file=f"{metadata.name} METADATA", key=text[:200], message=message))
            continue
        if kind == "always":
            depends.extend(specs)
        else:
            constrains.extend(spec for spec in specs if " " in spec)
    if problems:
        raise IntegrityError(*problems)
    wanted = {spec.partition(" ")[0] for spec in depends}
    optional = (spec for spec in constrains if spec.partition(" ")[0] not in wanted)
    return Requires(
        depends=tuple(dict.fromkeys(depends)),
        constrains=tuple(dict.fromkeys(optional)),
        guessed=tuple(dict.fromkeys(guessed)),
    )


def convert_specifiers(specifiers: SpecifierSet | str) -> str:
    """A PEP 440 specifier set as a conda version spec: ``~=1.4.2`` is ``>=1.4.2,1.4.*``; empty for any version.

    Raises:
        InvalidSpecifier: the text is none.
    """
    found = SpecifierSet(specifiers) if isinstance(specifiers, str) else specifiers
    order = {">=": 0, ">": 0, "~=": 0, "==": 1, "===": 1, "!=": 2, "<": 3, "<=": 3}
    ordered = sorted(found, key=lambda one: (order[one.operator], one.version))
    return ",".join(_specifier(one) for one in ordered)


def python_depends(metadata: Metadata, target: CondaTarget) -> tuple[str, ...]:
    """The dependencies on Python: the one minor version that a package has files for, else ``Requires-Python``."""
    if target.python is None:
        bound = convert_specifiers(metadata.get("Requires-Python") or "")
        return (f"python {bound}".rstrip(),)
    major, minor = map(int, target.python.removesuffix("t").split("."))
    flags = "t" if target.python.endswith("t") else ""
    return (
        f"python >={major}.{minor},<{major}.{minor + 1}.0a0",
        f"python_abi {major}.{minor}.* *_cp{major}{minor}{flags}",
    )


def platform_depends(platforms: Iterable[str], subdir: str) -> tuple[str, ...]:
    """What platform tags of a wheel ask of the system: ``__glibc >=2.28,<3.0.a0`` for ``manylinux_2_28_x86_64``.

    Raises:
        IntegrityError: a tag is for another system or machine than the subdir, or for musl, which conda has not.
    """
    system, _, machine = subdir.partition("-")
    wanted = _MACHINES.get(machine, {}).get(system, machine).lower()
    problems: list[Problem] = []
    floors: list[tuple[tuple[int, ...], str]] = []
    for tag in sorted(set(platforms) - {"any"}):
        found = _PLATFORM.fullmatch(tag)
        own = "osx" if tag.startswith("macosx") else "win" if tag.startswith("win") else "linux"
        fits = found and own == system and (found["machine"] in {wanted, "universal2"} or tag in {"win32", "linux"})
        if found is None or found["musl"] or not fits:
            problems.append(
                Problem(
                    key=tag, message=f"a wheel for this platform cannot be converted to a conda package for {subdir}"
                )
            )
            continue
        glibc = _OLD_GLIBC.get(found["old"] or "") or (found["glibc"] or "").replace("_", ".")
        floor = (
            f"__glibc >={glibc},<3.0.a0"
            if glibc
            else f"__osx >={found['osx'].replace('_', '.')}"
            if own == "osx"
            else ""
        )
        if floor:
            version = glibc or found["osx"].replace("_", ".")
            floors.append((tuple(map(int, version.split("."))), floor))
    if problems:
        raise IntegrityError(*problems)
    return (min(floors)[1],) if floors else ()  # a wheel with several tags runs where its lowest one does


def _applies(requirement: Requirement, target: CondaTarget) -> str:
    """``always``, ``optional`` (some extra asks for it), or nothing."""
    marker = requirement.marker
    if marker is None:
        return "always"
    environment = _environment(target, str(marker))
    if marker.evaluate(environment | {"extra": ""}):
        return "always"
    extras = re.findall(r"""extra\s*==\s*['"]([^'"]+)['"]""", str(marker))
    return "optional" if any(marker.evaluate(environment | {"extra": extra}) for extra in extras) else ""


def _environment(target: CondaTarget, marker: str) -> dict[str, str]:
    """Marker variables of a target; those that it leaves open must not occur in the marker."""
    system, _, machine = target.subdir.partition("-")
    known = {"implementation_name": "cpython", "platform_python_implementation": "CPython", "platform_release": ""}
    known["platform_version"] = ""
    if machine:
        name, kernel, family = _SYSTEMS.get(system, (system, system, "posix"))
        known |= {"sys_platform": name, "platform_system": kernel, "os_name": family}
        known["platform_machine"] = _MACHINES.get(machine, {}).get(system, machine)
    if target.python is not None:
        version = target.python.removesuffix("t")
        known |= {
            "python_version": version,
            "python_full_version": f"{version}.0",
            "implementation_version": f"{version}.0",
        }
    names = ("sys_platform", "platform_system", "os_name", "platform_machine", "python_version", "python_full_version")
    missing = [name for name in names if name not in known and re.search(rf"\b{name}\b", marker)]
    if missing:
        where = "for any Python version" if target.python is None else "for any platform"
        raise ValueError(f"its marker depends on {', '.join(missing)}, but the package is {where}")
    return known


def _specs(requirement: Requirement, names: Names, guessed: list[str]) -> Iterator[str]:
    if requirement.url:
        raise ValueError("it is a URL requirement")
    project = canonicalize_name(requirement.name)
    plain = project if project in names else re.sub(r"-cu\d+$", "", project)  # nvidia-cublas-cu12 and its like
    keys = [f"{plain}[{canonicalize_name(extra)}]" for extra in sorted(requirement.extras)]
    found = [names[key] for key in keys if key in names]
    if plain in names:
        found.append(names[plain])
    elif not found:
        found.append((project,))
        guessed.append(project)
    for packages in found:
        for package in packages:
            yield _spec(package, requirement.specifier)


def _spec(package: str, specifiers: SpecifierSet) -> str:
    """A package of the table as the dependency that a requirement asks for."""
    name, _, wanted = package.partition(" ")
    if "{" not in wanted:
        return package.removesuffix(" *") if wanted else f"{package} {convert_specifiers(specifiers)}".rstrip()
    pins = [Version(one.version) for one in specifiers if one.operator == "==" and not one.version.endswith(".*")]
    if len(pins) != 1:
        return name
    pin = pins[0]
    filled = wanted.format(version=pin.public, major=pin.major, minor=pin.minor, next=pin.major + 1)
    return f"{name} {filled}"


def _specifier(one: Specifier) -> str:
    operator, version = one.operator, one.version
    if operator == "===":
        return f"=={version}"
    if operator == "~=":
        release = Version(version).release[:-1]
        epoch = f"{Version(version).epoch}!" if Version(version).epoch else ""
        return f">={version},{epoch}{'.'.join(map(str, release))}.*"
    if version.endswith(".*"):
        return version if operator == "==" else f"!={version}"
    return f"{operator}{version}"
