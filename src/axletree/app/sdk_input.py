"""The manifest of an SDK, and its files, from wherever they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.app.shipped import recipes_folder
from axletree.core.errors import HostError, Problem, UsageError
from axletree.host.sdk.artifacts import read_artifacts
from axletree.host.sdk.prefix import read_debs, read_prefix
from axletree.package.sdk.entries import SdkEntry
from axletree.package.sdk.manifest import Manifest, parse_manifest
from axletree.recipe.faults import suggestion
from axletree.store.layout import StoreLayout

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_LARGEST = 1 << 20
"""Bytes of a manifest."""


class SdkInput(msgspec.Struct, frozen=True, kw_only=True):
    """The files of an SDK."""

    entries: tuple[SdkEntry, ...]
    """Sorted by path."""
    notes: tuple[str, ...]
    """What a user should know of the reading."""


def load_manifest(name: str, *, folder: Path) -> Manifest:
    """A manifest by its path, or by the name of one that ships with Axletree: ``rocm``.

    Args:
        name: as the user gave it.
        folder: in which relative paths are looked for.

    Raises:
        UsageError: there is none.
        RecipeError: it is wrong; with everything that is.
        HostError: it can't be read.
    """
    path, shipped = folder / name, recipes_folder()
    if not path.is_file() and "/" not in name and shipped is not None:
        ours = shipped / "sdk" / f"{name.removesuffix('.toml')}.toml"
        path = ours if ours.is_file() else path
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except FileNotFoundError:
        known = [each.stem for each in sorted((shipped / "sdk").glob("*.toml"))] if shipped else []
        hint = suggestion(name, known, "manifests that ship with Axletree")
        raise UsageError(Problem(file=name, message="the manifest does not exist", hint=hint)) from None
    except OSError as error:
        raise HostError(Problem(file=name, message=f"the manifest cannot be read: {error.strerror}")) from error
    if len(data) > _LARGEST:
        most = f"{_LARGEST >> 20} MiB"
        raise UsageError(Problem(file=name, message=f"the file is larger than {most}, the limit for manifests"))
    try:
        return parse_manifest(data.decode(), filename=name)
    except UnicodeDecodeError:
        raise UsageError(Problem(file=name, message="the manifest is not UTF-8 text")) from None


def read_sdk_input(
    manifest: Manifest,
    *,
    store: Path,
    artifacts: Path | None = None,
    debs: Path | None = None,
    prefix: Path | None = None,
    targets: Collection[str] | None = None,
    threads: int = 1,
) -> SdkInput:
    """The files of an SDK from exactly one kind of input.

    Args:
        manifest: says how Debian packages make up the SDK.
        store: folder of the store; archives are unpacked into its cache, once.
        artifacts: folder with TheRock's artifacts, as folders or archives.
        debs: folder with Debian packages.
        prefix: an install prefix.
        targets: artifacts for which GPUs count; ``None`` for all.
        threads: how many archives are unpacked at once.

    Raises:
        UsageError: not exactly one input is given, or Debian packages of a manifest that does not know any.
        IntegrityError: the input is damaged or contradicts itself.
        HostError: something can't be read.
    """
    if sum(each is not None for each in (artifacts, debs, prefix)) != 1:
        raise UsageError(
            "exactly one location of the SDK is required", hint="use --artifacts DIR, --debs DIR or --prefix DIR"
        )
    notes: list[str] = []
    cache = StoreLayout(store).cache / "sdk"
    if artifacts is not None:
        entries = read_artifacts(artifacts, cache=cache, targets=targets, note=notes.append, threads=threads)
    elif debs is not None:
        if manifest.debs is None:
            hint = "add a [debs] table that assigns packages to artifacts"
            raise UsageError(Problem(key="--debs", message="the manifest does not support Debian packages", hint=hint))
        entries = read_debs(debs, manifest.debs, cache=cache, note=notes.append, threads=threads)
    else:
        assert prefix is not None  # noqa: S101 (counted above)
        components = manifest.debs.components if manifest.debs is not None else None
        entries = read_prefix(prefix, components=components, note=notes.append)
    return SdkInput(entries=entries, notes=tuple(notes))
