"""Names that the probes look for: libraries, headers, packages, variables. They lie in a table."""

from __future__ import annotations

import re
import tomllib

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.shipped import shipped_file
from axletree.host.shipped_data import read_shipped

Names = tuple[str, ...]


class VersionMacros(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a library states its version."""

    files: Names
    """Headers; the first that there is counts."""
    macros: Names
    """Macros with the numbers of the version, in order."""


class ProcessorNames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What Linux calls properties of processors."""

    flags: frozenset[str]
    levels: dict[str, frozenset[str]]
    """From the lowest on."""
    implementers: dict[str, str]


class HostNames(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """What ``backends/data/host-names.toml`` holds; it says what each list is."""

    pip_options: Names
    uv_options: Names
    git_settings: Names
    python_families: Names
    python_packages: Names
    conda_packages: Names
    network_file_systems: frozenset[str]
    rocm_tools: Names
    variables: dict[str, Names]
    compiler_places: dict[str, dict[str, str]]
    libraries: dict[str, Names]
    nvidia_wheels: dict[str, str]
    parts: dict[str, dict[str, str]]
    math_headers: dict[str, Names]
    version_macros: dict[str, VersionMacros]
    hypervisors: dict[str, str]
    processor: ProcessorNames


def decode_host_names(data: bytes, *, file: str) -> HostNames:
    """Read the table of names (TOML).

    Raises:
        IntegrityError: it is not in its form.
    """
    try:
        return msgspec.convert(tomllib.loads(data.decode("utf-8")), HostNames)
    except (ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(Problem(file=file, message=f"the file is not a valid table of names: {error}")) from error


HOST_NAMES = shipped_file("host-names.toml", decode_host_names)
"""The table that ships."""


def host_names() -> HostNames:
    """The names that ship, read once."""
    return read_shipped(HOST_NAMES)


def library_names(group: str) -> re.Pattern[str]:
    """An expression that matches what the libraries of a group are called between ``lib`` and ``.so``."""
    return re.compile("|".join(host_names().libraries[group]))
