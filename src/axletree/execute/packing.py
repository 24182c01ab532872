"""What the actions that pack share: a package's part of a tree, its metadata, its content out of the store."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.binary.elf.facts import ElfFacts, is_elf, read_elf
from axletree.binary.zip.deflate import BLOCK
from axletree.core.errors import ExpectationError, IntegrityError, Problem, StageError
from axletree.core.stated import Stated
from axletree.core.trees import Entry
from axletree.execute.agreeing import refuse, wanted_of
from axletree.host.archive import map_file
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import MANYLINUX_POLICIES
from axletree.package.partition import Claim, partition
from axletree.package.sbom.read import FOLDER as SBOMS
from axletree.package.sbom.read import read_bundled
from axletree.package.sbom.write import SBOM_NAME, TREE_SBOM_NAME, wheel_sbom
from axletree.package.wheel.agreement import disagreements, said_otherwise
from axletree.package.wheel.info import carry_dist_info, parse_wheel_info
from axletree.package.wheel.metadata import (
    Metadata,
    create_metadata,
    parse_metadata,
    with_field,
    with_requirement,
    with_version,
)
from axletree.package.wheel.names import dist_info_folder
from axletree.package.wheel.tags import Tags, compute_tags, takes
from axletree.package.wheel.writer import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from axletree.core.values import Digest
    from axletree.execute.context import ActionContext, Context
    from axletree.package.sbom.write import Component
    from axletree.plan.actions.pack import WheelParameters
    from axletree.plan.actions.packages import TreePart
    from axletree.store.store import Store


_INSTALLED = re.compile(r"(?:.*/)?site-packages/[^/]+\.dist-info/METADATA")
_CPYTHON = re.compile(r"\d\.\d+t?")


class PackageContent(msgspec.Struct, frozen=True, kw_only=True):
    """A package's part of a tree."""

    entries: dict[str, Entry]
    """Every file and link of the tree, by path."""
    paths: tuple[str, ...]
    """Those that the package gets; what the tree brings of metadata is not among them."""
    brought: str | None
    """The metadata folder that the tree brings, if it brings one."""


def content_of(context: Context, part: TreePart) -> PackageContent:
    """Divide the stage's tree among the packages that share it, and give this one its part; empty without a tree.

    Args:
        context: the stage's surroundings.
        part: which part the package gets.

    Raises:
        IntegrityError: the tree can't be divided as the recipe says.
        StageError: nothing is left for the package.
    """
    if "tree" not in context.request.inputs:
        return PackageContent(entries={}, paths=(), brought=None)
    entries = {entry.path: entry for entry in context.tree("tree").entries if entry.kind != "directory"}
    brought = _dist_info(entries)
    claims = {owner: Claim(files=taken.files, exclude=taken.exclude) for owner, taken in part.siblings.items()}
    content = [path for path in entries if brought is None or not path.startswith(f"{brought}/")]
    paths = partition(content, claims)[part.package]
    if not paths:
        raise StageError(
            f"package {part.package} has no files",
            hint="correct the package's `files` patterns: they match no file that the stage produced",
        )
    return PackageContent(entries=entries, paths=paths, brought=brought)


def as_distribution(content: PackageContent, *, name: str, version: str, prefix: str) -> dict[str, str]:
    """Path in the tree -> path in the wheel, for a package's files and what else is in the metadata folder."""
    folder = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
    targets = {path: f"{folder}{path}" for path in content.paths}
    if content.brought is not None and targets:
        target = dist_info_folder(name, version)
        targets |= carry_dist_info(content.entries, source=content.brought, target=target)
    return targets


def tags_of(context: Context, content: PackageContent, targets: dict[str, str]) -> Tags:
    """The tags that a wheel of these files has.

    Raises:
        ExpectationError: the tree brings a wheel's tags that the variant's Python does not take.
        IntegrityError: files for several architectures or Pythons, or what the tree brings is unreadable.
    """
    original: tuple[str, ...] = ()
    if content.brought is not None:
        path = f"{content.brought}/WHEEL"
        original = parse_wheel_info(_read(context.store, content, path), file=path).tags
        _check_python(context, original, path)
    return compute_tags(
        elf_facts(context.store, content.entries, targets),
        read_shipped(MANYLINUX_POLICIES),
        original=original,
        python=context.ingredients.axes.get("python"),
    )


def _check_python(context: Context, tags: tuple[str, ...], path: str) -> None:
    python = context.ingredients.axes.get("python")
    if python is None or not _CPYTHON.fullmatch(python) or takes(python, tags):
        return
    message = f"the variant is for Python {python}, but the files were built for {', '.join(tags)} ({path})"
    hint = "build in an environment with that version of Python, or use a wheel for it"
    raise ExpectationError(message, hint=hint)


def elf_facts(store: Store, entries: dict[str, Entry], targets: dict[str, str]) -> dict[str, ElfFacts]:
    """Facts of the machine code among some files, by their path in the package."""
    found: dict[str, ElfFacts] = {}
    for path, target in targets.items():
        entry = entries[path]
        if entry.blob is None or entry.size == 0:
            continue
        with map_file(store.blob_path(entry.blob)) as view:
            if is_elf(bytes(view[:4])):
                found[target] = read_elf(view, name=path)
    return found


def metadata_of(
    context: ActionContext[WheelParameters],
    content: PackageContent,
    *,
    version: str,
    conda: Callable[[str], bool] | None = None,
) -> Metadata:
    """The metadata of a package: what the tree brings with what the recipe adds, or the recipe's alone.

    Args:
        context: its parameters say what the recipe does.
        content: of the package.
        version: of the package, in the format that is packed.
        conda: for a conda package: whether a distribution is called as it is there, and so keeps its own name in it.

    Raises:
        ExpectationError: the tree brings what the recipe says otherwise, and no `relabel`.
        IntegrityError: what the tree brings is unreadable.
    """
    package = context.parameters.package
    if content.brought is None:
        return create_metadata(
            name=package.name,
            version=version,
            summary=package.summary,
            license=package.license,
            requires_python=package.requires_python,
            requires=package.requires,
        )
    path = f"{content.brought}/METADATA"
    built = parse_metadata(_read(context.store, content, path), file=path)
    called_so = conda is not None and conda(built.name)
    siblings = None if called_so else tuple(context.parameters.part.siblings)
    wanted = wanted_of(package, version=version, siblings=siblings, labels=conda is None)
    stated = context.request.local.stated or Stated()
    made = f"{path} from stage {stated.stage}" if stated.stage is not None else path
    refuse(disagreements(wanted, built), stated, made)
    name = built.name if called_so or _same_name(built.name, package.name) else package.name
    metadata = with_version(with_field(built, "Name", name), version)
    if (metadata.name, Version(built.version)) != (built.name, Version(metadata.version)):
        context.log.say(f"built as {built.name} {built.version}, packaged as {metadata.name} {metadata.version}")
    if package.requires_python is not None:
        metadata = with_field(metadata, "Requires-Python", package.requires_python)
    for requirement in package.requires:
        metadata = with_requirement(metadata, requirement)
    return metadata


def check_inside(
    context: ActionContext[WheelParameters], content: PackageContent, *, version: str, conda: Callable[[str], bool]
) -> None:
    """Refuse files that are another version of the distribution that conda calls as their package; see `metadata_of`.

    Nothing is known of files with the metadata of several distributions, or of none.

    Raises:
        ExpectationError: they are.
        IntegrityError: their metadata is unreadable.
    """
    found = [path for path in content.paths if _INSTALLED.fullmatch(path)]
    if len(found) != 1:
        return
    built = parse_metadata(_read(context.store, content, found[0]), file=found[0])
    if conda(built.name):
        wanted = wanted_of(context.parameters.package, version=version, siblings=None, labels=False)
        refuse(
            said_otherwise(wanted, name=None, version=built.version), context.request.local.stated or Stated(), found[0]
        )


def _same_name(one: str, other: str) -> bool:
    return canonicalize_name(one) == canonicalize_name(other)


def with_bill(
    context: Context, content: PackageContent, targets: dict[str, str], metadata: Metadata
) -> tuple[dict[str, str], tuple[Member, ...]]:
    """Put the bills of the libraries that a tree took in where PEP 770 has a distribution's bill.

    Returns:
        ``targets`` without the bills that became a part of the distribution's own, and that one: the libraries that are
        among the targets, wherever the tree names them. No bill where none is.

    Raises:
        IntegrityError: a bill is unreadable.
    """
    own = None if content.brought is None else f"{content.brought}/{SBOMS}/{SBOM_NAME}"
    found: dict[str, list[Component]] = {}
    for path, entry in content.entries.items():
        if entry.kind == "file" and (path == own or path.rpartition("/")[2] == TREE_SBOM_NAME):
            parts = read_bundled(_read(context.store, content, path), file=path)
            if here := list(_placed(parts, targets)):
                found[path] = here
    if not found:
        return targets, ()
    folder = dist_info_folder(metadata.name, metadata.version)
    kept = {path: target for path, target in targets.items() if path != own and path not in found}
    data = wheel_sbom(
        metadata,
        kept.values(),
        dist_info=folder,
        bundled=[part for path in sorted(found) for part in found[path]],
        epoch=context.ingredients.epoch or 0,
    )
    return kept, (Member(path=f"{folder}/{SBOMS}/{SBOM_NAME}", data=data),)


def _placed(parts: Iterable[Component], targets: dict[str, str]) -> Iterator[Component]:
    """Those of which something is in the package, with their paths there."""
    for part in parts:
        if places := tuple(targets[path] for path in part.paths if path in targets):
            yield msgspec.structs.replace(part, paths=places)


def blob_chunks(store: Store, blob: Digest) -> Callable[[], Iterator[bytes]]:
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


def _read(store: Store, content: PackageContent, path: str) -> bytes:
    entry = content.entries.get(path)
    if entry is None or entry.blob is None:
        raise IntegrityError(Problem(file=path, message="the tree contains metadata, but this file is missing"))
    return store.read_blob(entry.blob)


def _dist_info(paths: Iterable[str]) -> str | None:
    folders = {path.partition("/")[0] for path in paths if path.partition("/")[0].endswith(".dist-info")}
    if len(folders) > 1:
        raise StageError(f"the tree contains several distributions: {', '.join(sorted(folders))}")
    return next(iter(folders), None)
