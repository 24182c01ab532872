"""Reads a folder of TheRock's artifacts, unpacked or as archives, and stage folders of a build with a descriptor."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from axletree.core.errors import HostError, IntegrityError, Problem, some_problems
from axletree.host.files import file_errors
from axletree.host.sdk.scan import same_content, scan
from axletree.host.sdk.together import all_results
from axletree.host.sdk.unpack import base_folders, below_base, unpack_artifact
from axletree.package.sdk.artifact_name import (
    MANIFEST,
    SUFFIXES,
    ArtifactName,
    archive_stem,
    base_target,
    parse_artifact_name,
)
from axletree.package.sdk.descriptor import assign_files
from axletree.package.sdk.entries import GENERIC, SdkEntry
from axletree.package.sdk.merge import merge_entries, path_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from axletree.host.sdk.scan import ScannedFile
    from axletree.package.sdk.descriptor import Descriptor

CHECKSUM_SUFFIXES = (".sha256sum", ".sha256")
_SHA256 = re.compile(r"([0-9a-fA-F]{64})(?:[ \t]++\*?(\S.*))?")


def read_artifacts(
    folder: Path,
    *,
    cache: Path,
    targets: Collection[str] | None = None,
    note: Callable[[str], None] = lambda _: None,
    threads: int = 1,
) -> tuple[SdkEntry, ...]:
    """The files of all artifacts in a folder, sorted by path, each path once.

    Args:
        folder: holds folders ``NAME_COMPONENT_TARGET`` with an ``artifact_manifest.txt``, or archives of such. Folders
            without a manifest and other files are passed over. Where an artifact is there twice, its folder counts,
            then the archive that is read faster.
        cache: where archives are unpacked, once.
        targets: which artifacts count beside the generic ones; ``gfx90a`` means those for ``gfx90a:xnack+`` as well.
            ``None``: all.
        note: told what a user should know.
        threads: how many archives are unpacked at once.

    Raises:
        IntegrityError: a name is none of an artifact, an archive is damaged, hostile or not what its checksum says,
            two artifacts bring different content for a path, or there are none. Names all of one kind.
        HostError: something can't be read, or not be unpacked.
    """
    found = _choose(_artifacts(folder), targets, folder, note)
    archives = [place for place in found.values() if not place.is_dir()]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        # The largest first: it decides when the last one is done.
        pending = {
            place: pool.submit(unpack_artifact, place, cache, digest=checksum_of(place))
            for place in sorted(archives, key=lambda place: -place.stat().st_size)
        }
    unpacked = dict(zip(pending, all_results(pending.values()), strict=True))
    problems: list[Problem] = []
    entries: list[SdkEntry] = []
    for name, place in sorted(found.items()):
        entries += _read_artifact(name, unpacked.get(place, place), problems, shown=place)
    refuse(problems)
    return merge_entries(entries, same=same_content, note=note)


def read_stages(
    root: Path,
    descriptor: Descriptor,
    *,
    artifact: str,
    target: str = GENERIC,
    note: Callable[[str], None] = lambda _: None,
) -> tuple[SdkEntry, ...]:
    """The files of a build's stage folders, with components as a descriptor says.

    Args:
        root: folder of the build, from which the descriptor names stage folders.
        descriptor: see :func:`~axletree.package.sdk.descriptor.parse_descriptor`.
        artifact: name of the artifact that they make up.
        target: GPU or family that they were built for.
        note: told what a user should know.

    Raises:
        IntegrityError: a stage folder is missing, a file belongs to no component or to two, can't be packed, or is
            there twice with different content. Names all of them.
        HostError: something can't be read.
    """
    scanned = {stage: scan(root / stage) for stage in descriptor.stages if (root / stage).is_dir()}
    taken = assign_files(
        descriptor,
        {stage: [item.path for item in items if item.kind != "folder"] for stage, items in scanned.items()},
        folders={stage: [item.path for item in items if item.kind == "folder"] for stage, items in scanned.items()},
    )
    problems: list[Problem] = []
    entries: list[SdkEntry] = []
    for stage, items in scanned.items():
        for item in items:
            component = taken.get((stage, item.path))
            if component is not None:
                name = ArtifactName(artifact, component, target)
                entries += entry_of(item, item.path, name, problems, shown=f"{root}/{stage}/{item.path}")
    refuse(problems)
    return merge_entries(entries, same=same_content, note=note)


def refuse(problems: list[Problem]) -> None:
    """Raise what was found wrong, if anything: the first of it, and how much more there is.

    Raises:
        IntegrityError: something was.
    """
    if problems:
        raise IntegrityError(*some_problems(problems))


def entry_of(
    item: ScannedFile, path: str, name: ArtifactName, problems: list[Problem], *, shown: str
) -> Iterator[SdkEntry]:
    """What was found as an entry at a path below the prefix, or a problem: a device, an unsafe name or link."""
    fault = "the entry is not a file, link or folder" if item.kind == "other" else path_fault(path, item.link)
    if fault is not None or item.kind == "other":
        hint = f"the link points to {item.link!r}" if item.link else None
        problems.append(Problem(file=repr(shown)[1:-1], message=fault or "", hint=hint))
        return
    yield SdkEntry(
        path=path,
        kind=item.kind,
        artifact=name.name,
        component=name.component,
        target=name.target,
        source=item.place if item.kind == "file" else "",
        size=item.size,
        executable=item.executable,
        link=item.link,
    )


def checksum_of(place: Path) -> str | None:
    """SHA-256 that stands in the side file of an archive; ``None`` where there is none.

    Raises:
        IntegrityError: the side file holds no digest, or that of another file.
        HostError: it can't be read.
    """
    for suffix in CHECKSUM_SUFFIXES:
        side = place.with_name(place.name + suffix)
        if (text := file_text(side)) is not None:
            return parse_checksum(text, filename=place.name, shown=str(side))
    return None


def file_text(path: Path) -> str | None:
    """The text of a file; ``None`` where there is none.

    Raises:
        HostError: it can't be read.
    """
    with file_errors(path), suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8", errors="replace")
    return None


def parse_checksum(text: str, *, filename: str, shown: str) -> str:
    """The digest in a side file, as ``sha256sum`` writes it, or alone.

    Raises:
        IntegrityError: there is none in it, or it is of another file.
    """
    match = _SHA256.fullmatch(text.strip())
    if match is None:
        raise IntegrityError(
            Problem(file=shown, message="the file does not contain a SHA-256 checksum in sha256sum format")
        )
    named = match[2]
    if named is not None and named.rpartition("/")[2] != filename:
        raise IntegrityError(Problem(file=shown, message=f"the checksum is for a different file, {named!r}"))
    return match[1].lower()


def _artifacts(folder: Path) -> dict[ArtifactName, list[Path]]:
    """Artifact -> its folder, then its archives, the faster one first."""
    with file_errors(folder, precise=True):
        places = sorted(folder.iterdir())
        candidates = [
            (place.name if place.is_dir() else stem, place)
            for place in places
            if (stem := archive_stem(place.name)) is not None or place.is_dir()
            if not place.is_dir() or (place / MANIFEST).is_file()
        ]
    found: dict[ArtifactName, list[Path]] = {}
    problems: list[Problem] = []
    for stem, place in candidates:
        try:
            found.setdefault(parse_artifact_name(stem or ""), []).append(place)
        except IntegrityError as error:
            problems += error.problems
    refuse(problems)
    for places in found.values():
        places.sort(key=lambda place: (not place.is_dir(), [not place.name.endswith(suffix) for suffix in SUFFIXES]))
    return found


def _choose(
    found: dict[ArtifactName, list[Path]], targets: Collection[str] | None, folder: Path, note: Callable[[str], None]
) -> dict[ArtifactName, Path]:
    if not found:
        hint = (
            f"put artifacts here: folders called NAME_COMPONENT_TARGET with an {MANIFEST}, or archives "
            "NAME_COMPONENT_TARGET.tar.zst"
        )
        raise IntegrityError(Problem(file=str(folder), message="the folder contains no artifacts", hint=hint))
    built = {name.target for name in found} - {GENERIC}
    if targets is not None:
        wanted = {target for target in built if target in targets or base_target(target) in targets}
        missing = sorted(
            target for target in targets if not any(target in {it, base_target(it)} for it in built | {GENERIC})
        )
        if missing:
            hint = f"choose a GPU that the folder has artifacts for: {', '.join(sorted(built)) or 'no GPU at all'}"
            raise IntegrityError(
                Problem(
                    file=str(folder), message=f"the folder contains no artifacts for {', '.join(missing)}", hint=hint
                )
            )
        found = {name: places for name, places in found.items() if name.target in wanted | {GENERIC}}
    for name, places in sorted(found.items()):
        if len(places) > 1:
            note(f"{name.folder} occurs more than once; using {places[0].name}")
    return {name: places[0] for name, places in found.items()}


def _read_artifact(name: ArtifactName, root: Path, problems: list[Problem], *, shown: Path) -> Iterable[SdkEntry]:
    try:
        text = (root / MANIFEST).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise HostError(Problem(file=str(shown / MANIFEST), message=f"the file cannot be read: {error}")) from error
    bases = base_folders(text, filename=str(shown / MANIFEST))
    entries: list[SdkEntry] = []
    for item in scan(root):
        base = below_base(item.path, bases)
        if base is not None:
            entries += entry_of(item, item.path[len(base) + 1 :], name, problems, shown=f"{shown}/{item.path}")
        elif item.path != MANIFEST and not (item.kind == "folder" and _leads_to(item.path, bases)):
            message = f"the file is not in any folder that {MANIFEST} lists"
            problems.append(Problem(file=repr(f"{shown}/{item.path}")[1:-1], message=message))
    return entries


def _leads_to(folder: str, bases: Iterable[str]) -> bool:
    """Whether a folder is a base folder, or above one, or below: empty ones are no trouble."""
    return any(f"{base}/".startswith(f"{folder}/") for base in bases)
