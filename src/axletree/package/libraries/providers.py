"""Who brings which shared libraries: families of SONAMEs that a distribution, a driver or a system owns.

The data lies in ``axletree/backends/data/providers-*.toml``. Naming owners by distribution, not by lists of file names,
is what keeps a new CUDA major from being grafted into every wheel.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec
from packaging.markers import Marker, UndefinedComparison, UndefinedEnvironmentName
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion

from axletree.core.errors import IntegrityError, Problem
from axletree.core.shipped import shipped_list
from axletree.package.wheel.metadata import parse_requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Provider(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An owner of shared libraries."""

    name: str
    """What messages call it: ``torch``, ``nvidia-cublas``, ``NVIDIA driver``."""
    kind: Literal["distribution", "driver", "system", "host"] = "distribution"
    """``driver``: comes with the GPU's; ``system``: comes with what every platform tag promises; ``host``: the
    machine's own, which no tag promises (and no wheel may bring, where it is ``exclusive``)."""
    distributions: tuple[str, ...] = ()
    """Patterns (``*`` is anything) of normalised names, any of which brings them, with an extra where only that does:
    ``nvidia-cublas``, ``nvidia-cublas-cu*``, ``cuda-toolkit[cublas]``."""
    sonames: tuple[str, ...]
    """Patterns of SONAMEs: ``libcublas.so*``."""
    folders: tuple[str, ...] = ()
    """Where they lie below site-packages, newest layout first: ``nvidia/cu13/lib``, ``nvidia/cublas/lib``. A number in
    a folder's name stands for any: see :meth:`lies_in`."""
    exclusive: bool = False
    """Whether its libraries must never be copied into another wheel, required or not: a process may hold one only."""
    loads: tuple[str, ...] = ()
    """Names of providers whose libraries are in a process that has imported this one."""
    copies: tuple[str, ...] = ()
    """Patterns of SONAMEs of others that it ships and loads a copy of: they serve who requires it."""
    symbols: dict[str, str] = {}
    """Pattern of SONAMEs -> what the names of all symbols of such a library begin with, a regular expression. For
    libraries that the machine need not have."""

    def brings(self, soname: str) -> bool:
        """Whether a library is one of its."""
        return _matcher(self.sonames)(soname)

    def carries(self, soname: str) -> bool:
        """Whether a library of others is in a process that has imported this one."""
        return _matcher(self.copies)(soname)

    def symbols_of(self, soname: str) -> str | None:
        """What the names of all symbols of a library begin with, where that is known."""
        return next((names for pattern, names in self.symbols.items() if _matcher((pattern,))(soname)), None)

    def declared_by(self, required: Iterable[str]) -> bool:
        """Whether requirements, as :func:`required_names` gives them, install it."""
        matches = _matcher(self.distributions)
        return any(matches(name) for name in required)

    def lies_in(self, folder: str) -> bool:
        """Whether its libraries may lie in a folder below site-packages, whatever the version in the folder's name."""
        return _unnumbered(folder) in {_unnumbered(own) for own in self.folders}


def parse_providers(data: bytes, *, file: str) -> tuple[Provider, ...]:
    """Read a data file: a list of tables ``provider``.

    Raises:
        IntegrityError: it is not in that form.
    """
    try:
        table = tomllib.loads(data.decode("utf-8"))
        if table.keys() != {"provider"}:
            raise IntegrityError(Problem(file=file, message="the file contains keys other than 'provider'"))
        return msgspec.convert(table["provider"], tuple[Provider, ...])
    except (ValueError, msgspec.ValidationError) as error:
        raise IntegrityError(Problem(file=file, message=f"the file is not a list of providers: {error}")) from error


LIBRARY_PROVIDERS = shipped_list("providers-*.toml", parse_providers)
"""The providers that ship."""


def find_providers(providers: Iterable[Provider], soname: str) -> tuple[Provider, ...]:
    """All providers that own a SONAME, in the order of the data: several distributions may bring the same library."""
    return tuple(provider for provider in providers if provider.brings(soname))


def required_names(
    requires: Iterable[str], *, environment: Mapping[str, str] | None = None, extras: bool = False
) -> frozenset[str]:
    """What requirements (PEP 508) install: normalised names, and ``name[extra]`` for each extra that they ask for.

    Args:
        requires: values of ``Requires-Dist``; what is none counts for nothing.
        environment: values of marker variables, such as ``sys_platform``; without any, all markers but those on extras
            hold.
        extras: count what only an extra of the wheel itself requires too.
    """
    names: set[str] = set()
    for text in requires:
        requirement = parse_requirement(text)
        if requirement is None or not _holds(requirement.marker, environment, extras=extras):
            continue
        name = canonicalize_name(requirement.name)
        names |= {name, *(f"{name}[{canonicalize_name(extra)}]" for extra in requirement.extras)}
    return frozenset(names)


def _holds(marker: Marker | None, environment: Mapping[str, str] | None, *, extras: bool) -> bool:
    if marker is None:
        return True
    asked = re.findall(r"\bextra\s*==\s*[\"']([^\"']+)", str(marker)) if extras else []
    if environment is None:
        return extras or not re.search(r"\bextra\b", str(marker))
    try:
        return any(marker.evaluate({**environment, "extra": extra}) for extra in ("", *asked))
    except (UndefinedComparison, UndefinedEnvironmentName, InvalidVersion):
        return True  # what can't be told counts as required: only what is surely missing is an error


@cache
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """What tells whether any of some patterns fits, in which ``*`` stands for anything and all else for itself.

    To compile them as regular expressions would take longer than all else that an audit does with providers.
    """
    plain = frozenset(pattern for pattern in patterns if "*" not in pattern)
    parts = tuple(pattern.split("*") for pattern in patterns if "*" in pattern)
    starts = tuple(first for first, *_ in parts)
    return lambda text: text in plain or (text.startswith(starts) and any(_fits(text, pattern) for pattern in parts))


def _fits(text: str, parts: list[str]) -> bool:
    """Whether a text is these parts with anything between them."""
    first, *others, last = parts
    position, end = len(first), len(text) - len(last)
    if not (text.startswith(first) and text.endswith(last)):
        return False
    for part in others:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return position <= end


@lru_cache(maxsize=4096)
def _unnumbered(folder: str) -> str:
    return re.sub(r"\d+", "#", folder)
