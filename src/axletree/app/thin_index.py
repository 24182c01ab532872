"""The file that describes the variants of a release on an index, from the wheels in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import read_member
from axletree.core.errors import IntegrityError, Problem
from axletree.host.archive import map_file
from axletree.host.files import file_errors, replace_file
from axletree.host.folder_lock import folder_locks
from axletree.package.gpu.variant import VARIANT_FILE, VariantSet, merge_variants, parse_variants, render_variants
from axletree.package.wheel.names import parse_wheel_name, stem

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.binary.zip.directory import ZipEntry
    from axletree.host.folder_lock import Note
    from axletree.package.wheel.names import WheelName

_MAX_VARIANT_FILE = 1 << 20


def write_variant_index(folder: Path, release: WheelName, *, note: Note) -> str:
    """Write ``NAME-VERSION-variants.json`` for all variants of a release that lie in a folder; returns its path.

    One process at a time, so that each lists what the others wrote; ``note`` is told whom this waits for.

    Raises:
        IntegrityError: the wheels contradict each other, or one is damaged.
        HostError: a file can't be read or written.
    """
    target = folder / f"{stem(release.project, release.version)}-variants.json"
    with file_errors(target, "the folder cannot be written"), folder_locks([folder], note):
        replace_file(target, render_variants(merge_variants(_variants(folder, release))))
    return str(target)


def read_variants(view: memoryview, entry: ZipEntry, *, archive: str) -> VariantSet:
    """What a wheel says of its variant.

    Raises:
        IntegrityError: it is damaged.
    """
    data = read_member(view, entry, archive=archive, limit=_MAX_VARIANT_FILE)
    return parse_variants(data, file=f"{archive}: {entry.name}")


def _variants(folder: Path, release: WheelName) -> list[tuple[str, VariantSet]]:
    sets: list[tuple[str, VariantSet]] = []
    for path in sorted(folder.glob("*.whl")):
        try:
            name = parse_wheel_name(path.name)
        except IntegrityError:
            continue  # somebody else's file
        if name.variant and (name.project, name.version) == (release.project, release.version):
            sets.append((path.name, _read(path, name)))
    return sets


def _read(path: Path, name: WheelName) -> VariantSet:
    view = map_file(path)
    for entry in read_directory(view, archive=path.name):
        top, _, file = entry.name.partition("/")
        if file == VARIANT_FILE and top.endswith(".dist-info"):
            described = read_variants(view, entry, archive=path.name)
            if name.variant != "null" and [variant.label for variant in described.variants] != [name.variant]:
                message = (
                    f"the wheel's {VARIANT_FILE} does not describe variant {name.variant}, the one in its file name"
                )
                raise IntegrityError(Problem(file=path.name, message=message))
            return described
    raise IntegrityError(
        Problem(
            file=path.name, message=f"the wheel has a variant in its file name, but does not contain {VARIANT_FILE}"
        )
    )
