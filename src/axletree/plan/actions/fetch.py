"""``fetch``: the source, as the recipe's lock or the digest of a folder pins it."""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.core.values import Digest
from axletree.plan.actions.spec import ActionSpec, Facts, Parameters


class FolderSource(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="folder"):
    """A folder beside the recipe, which is in the store already."""

    tree: Digest


class CommitSource(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="commit"):
    """A commit of a git repository."""

    url: str
    commit: str
    submodules: bool


class FileSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="file"):
    """An archive, unpacked, or a wheel or another file, taken as it is."""

    filename: str
    sha256: Digest
    size: int | None = None
    """Bytes, where known."""
    url: str | None = None
    """Without one, the user's package indexes are asked for the file."""
    plain: bool = False
    """Whether it is taken as it is, whatever its name says."""
    top: Literal["keep", "strip"] | None = None
    """Of an archive: whether what is at its top stays, or must be a single folder, which is left out. ``None`` leaves
    out a single folder and keeps everything else."""


PinnedSource = FolderSource | CommitSource | FileSource


class FetchParameters(Parameters, frozen=True, kw_only=True):
    """Which source."""

    source: PinnedSource


class FetchFacts(Facts, frozen=True, kw_only=True):
    """What came."""

    file: str | None = None
    """Name of the archive or wheel."""


SPEC = ActionSpec(
    module="axletree.execute.actions.fetch", revision=2, parameters=FetchParameters, facts=FetchFacts, network=True
)


def revision_of(source: PinnedSource) -> str:
    """What stands for a source in files that name it: the commit, else a digest."""
    match source:
        case CommitSource(commit=commit):
            return commit
        case FolderSource(tree=tree):
            return tree
        case FileSource(sha256=sha256):
            return sha256
