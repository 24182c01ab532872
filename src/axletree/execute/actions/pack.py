"""Pack a package's part of a tree into a wheel of our own writing."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.binary.elf.facts import ElfFacts, is_elf, read_elf
from axletree.binary.zip.deflate import BLOCK
from axletree.core.errors import StageError
from axletree.execute.context import Outcome
from axletree.host.archive import map_file, write_wheel_file
from axletree.host.policies import read_policies
from axletree.package.partition import Claim, partition
from axletree.package.wheel.info import WheelInfo, carry_dist_info, parse_wheel_info
from axletree.package.wheel.metadata import Metadata, create_metadata, parse_metadata, with_requirement, with_version
from axletree.package.wheel.names import WheelName, dist_info_folder
from axletree.package.wheel.tags import Tags, compute_tags
from axletree.package.wheel.writer import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from axletree.core.trees import Entry
    from axletree.core.values import Digest
    from axletree.execute.context import Context
    from axletree.store.store import Store


def run(context: Context) -> Outcome:
    """Write the wheel: tag from the symbols used, metadata with what it was built for, RECORD, one date.

    Raises:
        IntegrityError: the tree can't be divided as the recipe says, or its metadata is unreadable.
        StageError: nothing is left for the package.
    """
    package = context.parameters["package"]
    entries = {entry.path: entry for entry in context.tree("tree").entries if entry.kind == "file"}
    brought = _dist_info(entries)
    targets = _targets(entries, package, context.parameters["siblings"], brought)
    if not targets:
        raise StageError(f"package {package['name']} has no files", hint="its files patterns match nothing in the tree")
    elfs = _elf_facts(context.store, entries, targets)
    original = parse_wheel_info(_read(context.store, entries[f"{brought}/WHEEL"])).tags if brought else ()
    tags = compute_tags(
        elfs,
        read_policies(),
        original=original,
        python=context.request.ingredients["axes"].get("python"),
    )
    metadata = _metadata(context, package, brought, entries)
    folder = context.work / "wheel"
    folder.mkdir()
    written = write_wheel_file(
        folder,
        _wheel_name(package, tags),
        [_member(context.store, entries[path], target) for path, target in targets.items()],
        metadata=metadata,
        wheel_info=WheelInfo(
            tags=tags.each,
            purelib=tags.pure,
            build=_build_tag(package),
            generator=context.parameters["generator"],
        ),
        epoch=context.request.ingredients["epoch"],
        level=context.parameters["level"],
        threads=len(os.sched_getaffinity(0)),
    )
    facts = {
        "filename": written.path.name,
        "size": written.size,
        "sha256": written.sha256,
        "requires": list(metadata.requires),
    }
    return Outcome(tree=context.store.ingest(folder, adopt=True), facts=facts)


def _dist_info(paths: Iterable[str]) -> str | None:
    """The metadata folder that the tree brings, if it brings one."""
    folders = {path.partition("/")[0] for path in paths if path.partition("/")[0].endswith(".dist-info")}
    if len(folders) > 1:
        raise StageError(f"the tree holds several distributions: {', '.join(sorted(folders))}")
    return next(iter(folders), None)


def _targets(
    entries: dict[str, Entry], package: dict[str, Any], siblings: dict[str, Any], brought: str | None
) -> dict[str, str]:
    """Path in the tree -> path in the wheel."""
    claims = {
        name: Claim(files=tuple(claim["files"]), exclude=tuple(claim["exclude"])) for name, claim in siblings.items()
    }
    content = [path for path in entries if brought is None or not path.startswith(f"{brought}/")]
    prefix = f"{package['prefix'].strip('/')}/" if package["prefix"].strip("/") else ""
    targets = {path: f"{prefix}{path}" for path in partition(content, claims)[package["name"]]}
    if brought is not None and targets:
        target = dist_info_folder(package["name"], package["version"])
        targets |= carry_dist_info(entries, source=brought, target=target)
    return targets


def _elf_facts(store: Store, entries: dict[str, Entry], targets: dict[str, str]) -> dict[str, ElfFacts]:
    found: dict[str, ElfFacts] = {}
    for path, target in targets.items():
        entry = entries[path]
        if entry.blob is None or entry.size == 0:
            continue
        with map_file(store.blob_path(entry.blob)) as view:
            if is_elf(bytes(view[:4])):
                found[target] = read_elf(view, name=path)
    return found


def _metadata(context: Context, package: dict[str, Any], brought: str | None, entries: dict[str, Entry]) -> Metadata:
    if brought is None:
        return create_metadata(
            name=package["name"],
            version=package["version"],
            summary=package["summary"],
            license=package["license"],
            requires_python=package["requires_python"],
            requires=package["requires"],
        )
    metadata = parse_metadata(_read(context.store, entries[f"{brought}/METADATA"]), file=f"{brought}/METADATA")
    if canonicalize_name(metadata.name) != canonicalize_name(package["name"]):
        fields = tuple((key, package["name"] if key.lower() == "name" else value) for key, value in metadata.fields)
        metadata = msgspec.structs.replace(metadata, fields=fields)
    metadata = with_version(metadata, package["version"])
    for requirement in package["requires"]:
        metadata = with_requirement(metadata, requirement)
    return metadata


def _wheel_name(package: dict[str, Any], tags: Tags) -> WheelName:
    return WheelName(
        project=canonicalize_name(package["name"]),
        version=str(Version(package["version"])),
        python=tags.python,
        abi=tags.abi,
        platform=tags.platform,
        build=_build_tag(package),
    )


def _build_tag(package: dict[str, Any]) -> str:
    return "" if package["build_tag"] is None else str(package["build_tag"])


def _member(store: Store, entry: Entry, target: str) -> Member:
    assert entry.blob is not None  # noqa: S101 (only files are packed)
    return Member(path=target, data=_chunks(store, entry.blob), size=entry.size, executable=entry.executable)


def _chunks(store: Store, blob: Digest) -> Callable[[], Iterator[bytes]]:
    """The content of a blob in pieces, verified while it is read; a file may be larger than memory."""

    def read() -> Iterator[bytes]:
        digest = hashlib.sha256()
        with store.blob_path(blob).open("rb") as stream:
            while chunk := stream.read(BLOCK):
                digest.update(chunk)
                yield chunk
        if digest.hexdigest() != blob:
            store.read_blob(blob)  # finds the damage again, puts the blob into quarantine and raises

    return read


def _read(store: Store, entry: Entry) -> bytes:
    assert entry.blob is not None  # noqa: S101 (only files are read)
    return store.read_blob(entry.blob)
