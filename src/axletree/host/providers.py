"""The providers of shared libraries that ship with Axletree."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from axletree.core.errors import HostError
from axletree.core.values import Digest, digest_of
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
    folder = files("axletree.backends") / "data"
    try:
        found = sorted(
            (file.name, file.read_bytes())
            for file in folder.iterdir()
            if file.name.startswith("providers-") and file.name.endswith(".toml")
        )
    except OSError as error:
        raise HostError(f"the lists of library providers can't be read: {error}", hint="reinstall axletree") from error
    if not found:
        raise HostError("the lists of library providers are missing", hint="reinstall axletree")
    return tuple(found)
