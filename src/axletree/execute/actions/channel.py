"""The conda channel of an index root as a tree: audited packages that hold together, and the pages that list them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest
from axletree.execute.context import Outcome
from axletree.host.conda import read_conda
from axletree.host.conda_channel import md5_of
from axletree.package.conda.check import check_siblings, clobbers
from axletree.package.conda.repodata import CHANNEL, by_subdir, channel_file, index_files
from axletree.plan.actions.listing import ListedFile, ListingFacts

if TYPE_CHECKING:
    from axletree.execute.context import ActionContext
    from axletree.package.conda.reader import CondaFacts
    from axletree.package.conda.repodata import ChannelFile
    from axletree.plan.actions.listing import ListingParameters


def run(context: ActionContext[ListingParameters]) -> Outcome:
    """Lay the channel out; the packages themselves are not copied, only named.

    Raises:
        IntegrityError: packages share a path, or do not hold together as their dependencies say. Names everything.
    """
    entries: list[Entry] = []
    lines: list[ChannelFile] = []
    facts: list[CondaFacts] = []
    for name in context.request.inputs:
        if not name.startswith("conda:"):
            continue
        for entry in context.tree(name).entries:
            assert entry.blob is not None  # noqa: S101 (packages are files)
            path = context.store.blob_path(entry.blob)
            found = read_conda(path, filename=entry.path.rpartition("/")[2])
            facts.append(found)
            lines.append(channel_file(found, md5=md5_of(path), sha256=entry.blob))
            place = f"{CHANNEL}/{entry.path}"
            entries.append(Entry(path=place, blob=entry.blob, size=entry.size))
    _prove(facts)
    for subdir, files in by_subdir(lines).items():
        for page, data in index_files(files, subdir=subdir).items():
            entries.append(Entry(path=page, blob=context.store.put_bytes(data), size=len(data)))
    listed = tuple(
        ListedFile(
            filename=f"{CHANNEL}/{line.subdir}/{line.filename}",
            sha256=Digest(line.sha256),
            size=line.record["size"],
        )
        for line in lines
    )
    tree = context.store.put_tree(make_tree(entries))
    return Outcome(tree=tree, facts=ListingFacts(kind="channel", root=context.parameters.root, files=listed))


def _prove(packages: list[CondaFacts]) -> None:
    issues = (*check_siblings(packages, exact=False), *clobbers(packages))
    if issues:
        raise IntegrityError(*(Problem(file=issue.package, key=issue.path, message=issue.detail) for issue in issues))
