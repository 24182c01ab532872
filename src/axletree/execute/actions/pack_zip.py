"""Pack a package's part of a tree into an archive for C++ users, in the layout of PyTorch's Libtorch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from axletree.execute.context import Outcome
from axletree.execute.packing import blob_chunks, content_of
from axletree.host.archive import write_zip_file
from axletree.package.cpp_archive import archive_name, lay_out, own_files
from axletree.package.wheel.writer import Member
from axletree.plan.actions.packages import PackedFacts

if TYPE_CHECKING:
    from axletree.core.trees import Entry
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.pack_zip import ZipParameters
    from axletree.store.store import Store


def run(context: ActionContext[ZipParameters]) -> Outcome:
    """Write the archive: everything below one folder, links as copies, the version and the source in two files.

    Raises:
        IntegrityError: the tree can't be divided as the recipe says, or a link leads out of it.
        StageError: nothing is left for the package.
    """
    parameters = context.parameters
    name, version = parameters.called, parameters.version
    content = content_of(context, parameters.part)
    targets = lay_out(content.entries, content.paths, folder=name)
    members = [_member(context.store, content.entries[source], place) for place, source in targets.items()]
    members += [
        Member(path=path, data=data)
        for path, data in own_files(folder=name, version=version, source=parameters.source).items()
    ]
    folder = context.work / "archive"
    folder.mkdir()
    written = write_zip_file(
        folder / archive_name(name, version),
        members,
        epoch=context.ingredients.epoch or 0,
        level=parameters.level,
        threads=len(os.sched_getaffinity(0)),
    )
    facts = PackedFacts(filename=written.path.name, size=written.size, sha256=written.sha256)
    return Outcome(tree=context.store.ingest(folder, adopt=True), facts=facts)


def _member(store: Store, entry: Entry, place: str) -> Member:
    assert entry.blob is not None  # noqa: S101 (links were followed)
    return Member(path=place, data=blob_chunks(store, entry.blob), size=entry.size, executable=entry.executable)
