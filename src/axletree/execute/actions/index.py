"""An index root as a tree: the audited wheels, their metadata files, and the pages that list them."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from axletree.binary.zip.records import EARLIEST
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest
from axletree.execute.context import Outcome
from axletree.package.index import IndexFile, render_index
from axletree.package.wheel.metadata import parse_metadata
from axletree.plan.actions.listing import ListedFile, ListingFacts

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext
    from axletree.plan.actions.listing import ListingParameters
    from axletree.store.store import Store


def run(context: ActionContext[ListingParameters]) -> Outcome:
    """Lay the index out; the wheels themselves are not copied, only named.

    Raises:
        IntegrityError: a wheel has no readable metadata.
    """
    entries: list[Entry] = []
    files: list[IndexFile] = []
    epoch = context.ingredients.epoch or EARLIEST
    # A page made again must be the same page, so its date is the one that the user gives, or none.
    moment = datetime.fromtimestamp(epoch, tz=UTC) if epoch > EARLIEST else None
    for name in context.request.inputs:
        if name.startswith("wheel:"):
            for wheel in context.tree(name).entries:
                metadata, file = describe(context.store, wheel, moment)
                entries += [wheel, metadata]
                files.append(file)
    for path, data in render_index(files).items():
        entries.append(Entry(path=path, blob=context.store.put_bytes(data), size=len(data)))
    tree = context.store.put_tree(make_tree(entries))
    listed = tuple(
        ListedFile(filename=file.filename, sha256=Digest(file.sha256), size=file.size or 0) for file in files
    )
    return Outcome(tree=tree, facts=ListingFacts(kind="index", root=context.parameters.root, files=listed))


def describe(store: Store, wheel: Entry, moment: datetime | None) -> tuple[Entry, IndexFile]:
    """The metadata file (PEP 658) and the index line of a wheel."""
    assert wheel.blob is not None  # noqa: S101 (wheels are files)
    with zipfile.ZipFile(store.blob_path(wheel.blob)) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        data = archive.read(member)
    digest = store.put_bytes(data)
    fields = parse_metadata(data, file=f"{wheel.path}/{member}")
    line = IndexFile(
        filename=wheel.path,
        size=wheel.size,
        sha256=wheel.blob,
        requires_python=fields.get("Requires-Python"),
        metadata_sha256=digest,
        upload_time=None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
    return Entry(path=f"{wheel.path}.metadata", blob=digest, size=len(data)), line
