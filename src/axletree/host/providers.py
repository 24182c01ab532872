"""The providers of shared libraries that ship with Axletree."""

from __future__ import annotations

from functools import cache

from axletree.core.values import Digest, digest_of
from axletree.host.shipped_data import TABLES, read_shipped
from axletree.package.libraries.providers import Provider, parse_providers


@cache
def read_providers() -> tuple[Provider, ...]:
    """Every provider of the data files, in the order of the files' names and of their lines.

    Raises:
        HostError: the data files are missing or can't be read.
        IntegrityError: one is not in its form.
    """
    return tuple(provider for name, data in _files() for provider in parse_providers(data, file=name))


@cache
def providers_digest() -> Digest:
    """What stands for the providers in keys.

    Raises:
        HostError: the data files are missing or can't be read.
    """
    return digest_of(b"".join(data for _, data in _files()))


@cache
def _files() -> tuple[tuple[str, bytes], ...]:
    return read_shipped(TABLES, "providers-*.toml")
