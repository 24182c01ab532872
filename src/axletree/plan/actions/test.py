"""``test``: built packages, installed from their index by a real client and used."""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.core.values import Digest
from axletree.plan.actions.spec import ActionSpec, Facts, Parameters


class WantedPackage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A package under test."""

    name: str
    version: str
    build: str | None = None
    """Build string, where a conda client installs."""


class CarriedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the recipe that the commands use."""

    path: str
    blob: Digest
    """Its content, which is in the store."""
    at: str = ""
    """Path in the folder of the commands; its name there by default."""


class ClientTestParameters(Parameters, frozen=True, kw_only=True):
    """What is installed, and how it is used."""

    installer: Literal["pip", "uv", "conda"]
    client: str = ""
    """Version of the installer."""
    packages: tuple[WantedPackage, ...]
    imports: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    files: tuple[CarriedFile, ...] = ()
    names: Digest | None = None
    """Digest of the table of conda names, where a conda client installs."""
    virtual: dict[str, str] = {}
    """Virtual package that a conda client is told of -> version."""


class ClientTestFacts(Facts, frozen=True, kw_only=True):
    """What was installed and how the tests of the commands ended, where they say so as pytest does."""

    installer: str
    installed: dict[str, str]
    outside: dict[str, tuple[str, ...]] = {}
    """Package -> its dependencies that nothing here could bring."""
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None


SPEC = ActionSpec(
    module="axletree.execute.actions.test",
    revision=3,
    parameters=ClientTestParameters,
    facts=ClientTestFacts,
    host=True,
)
