"""What can be said of a library, a symbol or a header whose name stands in the log, whatever kind found it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.cpp.demangle import demangle
from axletree.check.diagnosis.linear import expression
from axletree.package.libraries.providers import find_providers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.check.diagnosis.bringers import Bringers
    from axletree.package.libraries.providers import Provider

_KNOWN = 60
"""Kinds as specific as this say who brings what themselves."""

_OLD_STRING = expression(r"(?<![0-9A-Za-z_])S[sS]|RKSs|ISs|ESs|[EiRjPb]Ss")

Said = tuple[str, str]
"""Sentences for the cause, lines for what to do; either may be empty."""


def enrich(groups: Mapping[str, str], *, specific: int, providers: Sequence[Provider], bringers: Bringers) -> Said:
    """More about what a match names.

    Args:
        groups: What the match caught; ``library``, ``symbol`` and ``header`` are looked at.
        specific: How much the kind says itself.
        providers: Owners of shared libraries.
        bringers: Who brings what else.
    """
    said = list(_of_symbol(groups.get("symbol", ""), bringers))
    if specific < _KNOWN:
        said += _of_library(groups.get("library", ""), providers, bringers)
        said += _of_header(groups.get("header", ""), bringers)
    causes = " ".join(cause for cause, _ in said if cause)
    fixes = "\n".join(fix for _, fix in said if fix)
    return causes, fixes


def _of_symbol(symbol: str, bringers: Bringers) -> Iterator[Said]:
    name = symbol.partition("@")[0]
    readable = demangle(name)
    if readable != name:
        yield f"The demangled symbol is {readable}.", ""
        if "__cxx11" in name or "B5cxx11" in name:
            yield "It uses the C++11 ABI for std::string, but the library that lacks it was built with the old ABI.", ""
        elif _OLD_STRING.search(name):
            yield "It uses the old ABI for std::string, but the library that lacks it was built with the C++11 ABI.", ""
    owner = bringers.symbol_owner(name) if name else None
    if owner:
        yield f"The name suggests that the symbol belongs to {owner}.", ""


def _of_library(library: str, providers: Sequence[Provider], bringers: Bringers) -> Iterator[Said]:
    if not library:
        return
    soname = library.rpartition("/")[2]
    soname = soname if ".so" in soname else f"lib{soname}.so"
    found = find_providers(providers, soname)
    for provider in found[:2]:
        yield from _of_provider(soname, provider, bringers)
    packages = None if found else bringers.library_packages(soname)
    if packages:
        yield f"{soname} is a system library.", _install(packages)


def _of_provider(soname: str, provider: Provider, bringers: Bringers) -> Iterator[Said]:
    if provider.kind == "driver":
        yield f"{soname} comes with the GPU driver ({provider.name}), never with a Python package.", ""
    elif provider.kind == "distribution":
        plain = [name for name in provider.distributions if "*" not in name]
        names = ", ".join(name.replace("*", "NN") for name in provider.distributions)
        folder = f", in site-packages/{provider.folders[0]}" if provider.folders else ""
        yield (
            f"{names or provider.name} provides {soname}{folder}.",
            f"Install the matching version:\n$ python -m pip install '{plain[0]}'" if plain else "",
        )
    else:
        packages = bringers.library_packages(soname)
        yield f"{soname} is part of the system ({provider.name}).", _install(packages) if packages else ""


def _of_header(header: str, bringers: Bringers) -> Iterator[Said]:
    packages = bringers.header_packages(header) if header else None
    if packages:
        yield (
            f"{packages[0]} (Debian, Ubuntu) or {packages[1]} (conda-forge) provides {header}.",
            _install(packages),
        )


def _install(packages: tuple[str, str]) -> str:
    debian, conda = packages
    return "\n".join(
        (
            "On Debian and Ubuntu:",
            f"$ apt-get install {debian}",
            "In a conda environment:",
            f"$ conda install -c conda-forge {conda}",
        )
    )
