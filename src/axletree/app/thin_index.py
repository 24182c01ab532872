"""The file that describes the variants of a release on an index, from the wheels in a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.binary.zip.directory import read_directory
from axletree.binary.zip.members import read_member
from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.host.archive import map_file
from axletree.host.files import replace_file
from axletree.host.folder_lock import folder_locks
from axletree.package.gpu.variant import VARIANT_FILE, VariantSet, merge_variants, parse_variants, render_variants
from axletree.package.wheel.names import parse_wheel_name, stem

if TYPE_CHECKING:
    from pathlib import Path

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
    try:
        with folder_locks([folder], note):
            replace_file(target, render_variants(merge_variants(_variants(folder, release))))
    except OSError as error:
        raise HostError(Problem(file=str(target), message=f"cannot be written: {error.strerror}")) from error
    return str(target)


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
            data = read_member(view, entry, archive=path.name, limit=_MAX_VARIANT_FILE)
            described = parse_variants(data, file=f"{path.name}: {entry.name}")
            if name.variant != "null" and [variant.label for variant in described.variants] != [name.variant]:
                message = (
                    f"its {VARIANT_FILE} does not describe the variant {name.variant} that its file name specifies"
                )
                raise IntegrityError(Problem(file=path.name, message=message))
            return described
    raise IntegrityError(
        Problem(file=path.name, message=f"has a variant in its file name, but does not contain {VARIANT_FILE}")
    )
