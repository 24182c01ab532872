"""Pack a package's part of a tree into a wheel of our own writing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.core.errors import StageError
from axletree.core.units import some_of
from axletree.execute.context import Outcome
from axletree.execute.packing import as_distribution, blob_chunks, content_of, metadata_of, tags_of, with_bill
from axletree.execute.search_paths import without_build_paths
from axletree.host.archive import write_wheel_file
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.names import WheelName
from axletree.package.wheel.writer import Member
from axletree.plan.actions.pack import PackedWheel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from axletree.core.trees import Entry
    from axletree.execute.context import ActionContext
    from axletree.execute.packing import PackageContent
    from axletree.package.wheel.tags import Tags
    from axletree.plan.actions.pack import WheelParameters
    from axletree.plan.actions.packages import Described
    from axletree.store.store import Store


def run(context: ActionContext[WheelParameters]) -> Outcome:
    """Write the wheel: tag from the symbols used, metadata with what it was built for, bill, RECORD, one date.

    Raises:
        IntegrityError: the tree can't be divided as the recipe says, or its metadata is unreadable.
        StageError: nothing is left for the package, or links are.
    """
    package = context.parameters.package
    content = without_build_paths(context, content_of(context, context.parameters.part))
    targets = as_distribution(content, name=package.name, version=package.version, prefix=package.prefix)
    _no_links(content, targets)
    tags = tags_of(context, content, targets)
    metadata = metadata_of(context, content, version=package.version)
    files, bill = with_bill(context, content, targets, metadata)
    folder = context.work / "wheel"
    folder.mkdir()
    written = write_wheel_file(
        folder,
        _wheel_name(package, tags),
        [*(_member(context.store, content.entries[path], target) for path, target in files.items()), *bill],
        metadata=metadata,
        wheel_info=WheelInfo(
            tags=tags.each,
            purelib=tags.pure,
            build=_build_tag(package),
            generator=context.parameters.generator,
        ),
        epoch=context.ingredients.epoch or 0,
        level=context.parameters.level,
        threads=len(os.sched_getaffinity(0)),
    )
    facts = PackedWheel(
        filename=written.path.name, size=written.size, sha256=written.sha256, requires=tuple(metadata.requires)
    )
    return Outcome(tree=context.store.ingest(folder, adopt=True), facts=facts)


def _no_links(content: PackageContent, targets: Iterable[str]) -> None:
    links = [path for path in targets if content.entries[path].kind == "link"]
    if links:
        message = f"a wheel cannot contain symbolic links: {some_of(links)}"
        hint = "exclude them, or use a relocate stage with `single` to keep each library under one name"
        raise StageError(message, hint=hint)


def _wheel_name(package: Described, tags: Tags) -> WheelName:
    return WheelName(
        project=canonicalize_name(package.name),
        version=str(Version(package.version)),
        python=tags.python,
        abi=tags.abi,
        platform=tags.platform,
        build=_build_tag(package),
    )


def _build_tag(package: Described) -> str:
    return "" if package.build_tag is None else str(package.build_tag)


def _member(store: Store, entry: Entry, target: str) -> Member:
    assert entry.blob is not None  # noqa: S101 (only files are packed)
    return Member(path=target, data=blob_chunks(store, entry.blob), size=entry.size, executable=entry.executable)
