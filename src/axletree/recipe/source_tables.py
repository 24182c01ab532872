"""The tables of a recipe that say what is built: its source, more sources beside it, and patches."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from axletree.recipe.base import Condition, Sha256, Table


class Source(Table, frozen=True, kw_only=True):
    """Location of the source: exactly one of `pypi`, `url`, `git`, `path` and `wheel`."""

    pypi: Annotated[
        str | None,
        Meta(
            description="Project on the package index. The sdist of the recipe's `version` is used (the first one found, in the order .tar.gz, .tgz, .zip, .tar.xz, .tar.bz2, .tar); the lock pins its hash."
        ),
    ] = None
    url: Annotated[
        str | None, Meta(description="URL of an archive (.tar.gz, .tar.xz, .tar.bz2, .zip); requires `sha256`.")
    ] = None
    git: Annotated[
        str | None,
        Meta(description="URL of a git repository, https:// or file://; requires `ref`. The lock pins the commit."),
    ] = None
    path: Annotated[
        str | None,
        Meta(description="Folder, relative to the recipe. Only file contents matter; timestamps are ignored."),
    ] = None
    wheel: Annotated[
        str | None,
        Meta(
            description="A wheel instead of a source: a path relative to the recipe, or a URL, which requires `sha256`."
        ),
    ] = None
    sha256: Annotated[Sha256 | None, Meta(description="Digest of the archive or wheel.")] = None
    ref: Annotated[str | None, Meta(description="Tag, branch or commit, for `git`.")] = None
    submodules: Annotated[bool, Meta(description="Whether to also fetch git submodules, recursively.")] = False
    exclude: Annotated[
        tuple[str, ...],
        Meta(
            description="For `path`: file patterns for what to exclude from the source; excluding a folder excludes everything in it. `*.o` matches only at the root, `**/*.o` in any folder."
        ),
    ] = ()


class ExtraSource(Table, frozen=True, kw_only=True):
    """A pinned source beside the recipe's own: exactly one of `pypi`, `url`, `git` and `path`."""

    pypi: Annotated[
        str | None,
        Meta(description="Project on the package index; requires `version`. The lock pins the sdist's hash."),
    ] = None
    version: Annotated[str | None, Meta(description="Version of the sdist, for `pypi`.")] = None
    url: Annotated[str | None, Meta(description="URL of an archive or of a single file; requires `sha256`.")] = None
    git: Annotated[
        str | None,
        Meta(description="URL of a git repository, https:// or file://; requires `ref`. The lock pins the commit."),
    ] = None
    path: Annotated[str | None, Meta(description="Folder or file, relative to the recipe.")] = None
    sha256: Annotated[Sha256 | None, Meta(description="Digest of the file, for `url`.")] = None
    ref: Annotated[str | None, Meta(description="Tag, branch or commit, for `git`.")] = None
    submodules: Annotated[bool, Meta(description="Whether to also fetch git submodules, recursively.")] = False
    exclude: Annotated[
        tuple[str, ...], Meta(description="For `path`: file patterns for what to exclude, as in `source`.")
    ] = ()
    into: Annotated[
        str | None,
        Meta(
            description="Path in the recipe's source to put it at, before the patches are applied: a folder, or for a single file the file's own path. The source may have no files there. Without it, stages that list the source in `sources` get it."
        ),
    ] = None
    unpack: Annotated[
        bool | None,
        Meta(
            description="Whether the file is an archive to unpack; by default, files that end with .tar, .tar.gz, .tgz, .tar.xz, .tar.bz2 or .zip are."
        ),
    ] = None
    strip: Annotated[
        Literal[0, 1],
        Meta(
            description="Folders to leave out at the top of an archive. `1`: the archive must have a single folder at its top, as releases do; `0`: keep everything where it is."
        ),
    ] = 1
    when: Annotated[Condition, Meta(description="Only for variants that match: axis -> value or list of values.")] = {}


class Patch(Table, frozen=True, kw_only=True):
    """A patch file to apply to the source. Patches are applied in the order of the recipe."""

    file: Annotated[str, Meta(description="Patch file, relative to the recipe.")]
    strip: Annotated[int, Meta(ge=0, description="Leading path parts to strip, as with `patch -p`.")] = 1
    when: Annotated[Condition, Meta(description="Only for variants that match: axis -> value or list of values.")] = {}
