"""The flavours of an SDK's selector in index roots: a wheel in the root itself, an sdist in one that links the rest."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from axletree.app.index_root import Addition, StagedFile, add_to_roots, index_line
from axletree.core.values import Digest
from axletree.host.files import file_errors
from axletree.package.sdk.release import check_flavour, check_pins, distributions_of, order_notes
from axletree.package.sdk.wheels import REQUIRES_PYTHON

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from axletree.host.folder_lock import Note
    from axletree.package.sdk.release import Flavour
    from axletree.package.sdk.selector import SelectorSdist
    from axletree.package.sdk.shipped import SdkFile
    from axletree.package.wheel.metadata import Metadata
    from axletree.report.sdk import Selector

AT_INSTALL = "at-install"
"""Folder of the root with the sdist, where the root itself has the wheel."""


def sdist_root(out: Path, selector: Selector) -> Path:
    """The root that an sdist goes into."""
    return out / AT_INSTALL if selector == "both" else out


def check_release(out: Path, sdk: SdkFile, selector: Selector, metadata: Iterable[Metadata]) -> tuple[str, ...]:
    """What must hold before anything is written, and notes about what will be there.

    Args:
        out: the root.
        sdk: what is to be added.
        selector: its flavours.
        metadata: of all wheels, the selector's with all extras included.

    Raises:
        IntegrityError: a wheel requires a package that will not be there.
        PublishError: the root has the other flavour at this version.
    """
    there = _names(out)
    flavours: dict[Path, Flavour] = {out: "sdist" if selector == "sdist" else "wheel"}
    if selector == "both":
        flavours[out / AT_INSTALL] = "sdist"
    for root, flavour in flavours.items():
        check_flavour(sdk.dist, sdk.version, flavour, _names(root), root=str(root))
    held = distributions_of(there)
    check_pins(metadata, held)
    for dist in (sdk.dist, *(each.dist for each in sdk.packages)):
        held.setdefault(dist, set()).add(sdk.version)
    return tuple(order_notes(held))


def stage_sdist(folder: Path, made: SelectorSdist) -> StagedFile:
    """Write an sdist into a staging folder.

    Raises:
        HostError: it can't be written.
    """
    path = folder / made.file
    with file_errors(path, "the folder cannot be written"):
        path.write_bytes(made.data)
    digest = Digest(hashlib.sha256(made.data).hexdigest())
    return StagedFile(path=path, size=len(made.data), sha256=digest, requires_python=REQUIRES_PYTHON)


def place_sdk(
    out: Path,
    selector: Selector,
    wheels: list[StagedFile],
    sdist: StagedFile | None,
    *,
    sdk: SdkFile,
    metadata: Sequence[Metadata],
    note: Note,
) -> tuple[str, ...]:
    """Move all packages of an SDK into their roots, and list them.

    What :func:`check_release` says is asked for again, of the roots as they are when nobody else writes into them.

    Args:
        out: the root.
        selector: flavours.
        wheels: all wheels.
        sdist: the selector as an sdist; None where that is not wanted.
        sdk: what the packages are of.
        metadata: of all wheels, the selector's with all extras included.
        note: told whom this waits for, when it has to.

    Returns:
        Notes about what is there then.

    Raises:
        IntegrityError: a wheel requires a package that will not be there.
        PublishError: a file of the same name with other content is there, or the other flavour of the selector. Nothing
            was changed then.
        HostError: the folder can't be written to.
    """
    notes: tuple[str, ...] = ()

    def decide() -> list[Addition]:
        nonlocal notes
        notes = check_release(out, sdk, selector, metadata)
        if sdist is None or selector == "sdist":
            everything = [*wheels, *([sdist] if sdist else [])]
            return [Addition(out=out, staged=everything, links_page=True)]
        lines = (index_line(each) for each in wheels)
        linked = [msgspec.structs.replace(line, folder="..") for line in lines if line.project != sdk.dist]
        other = Addition(out=out / AT_INSTALL, staged=[sdist], linked=linked, links_page=True)
        return [Addition(out=out, staged=wheels, links_page=True), other]

    roots = [out, out / AT_INSTALL] if selector == "both" else [out]
    add_to_roots(roots, decide, durable=True, note=note)
    return notes


def _names(root: Path) -> list[str]:
    with file_errors(root), suppress(FileNotFoundError):
        return sorted(path.name for path in root.iterdir())
    return []
