"""Static package indexes as values: PEP 503 and 691 pages with the fields of PEP 592, 658, 700 and 714.

The pages lie in ``simple/``, wheels, sdists and ``.metadata`` files in the folder above it, and all links are relative:
so a client can be pointed at ``ROOT/simple`` as an index or at ``ROOT`` as a folder of files (``--find-links``), from
disk or through any web server. An index may also list files that lie elsewhere, in another root beside it.
"""

from __future__ import annotations

import html
import posixpath
import re
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.core.errors import IntegrityError, Problem, PublishError
from axletree.package.wheel.names import parse_wheel_name
from axletree.recipe.sdists import readings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

API_VERSION = "1.1"
_Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
_UP = "../../"
_LINKS = "Links"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", re.ASCII)


class IndexFile(msgspec.Struct, frozen=True, kw_only=True):
    """A wheel or sdist of an index."""

    filename: str
    folder: str = ""
    """Where it lies, relative to the root, if not in the root itself: ``..``."""
    size: int
    """Bytes."""
    sha256: str
    requires_python: str | None = None
    metadata_sha256: str | None = None
    """Digest of ``FILENAME.metadata`` beside the wheel; ``None`` where there is no such file."""
    upload_time: str | None = None
    """UTC, ``2026-01-31T12:00:00Z``."""
    yanked: str | bool = False
    """Whether installers should pass it over, or why they should."""

    @property
    def project(self) -> str:
        """Normalised name of the distribution."""
        return distribution_of(self.filename)[0]

    @property
    def path(self) -> str:
        """Where it lies, relative to the root."""
        return posixpath.join(self.folder, self.filename)


class _Hashes(msgspec.Struct, frozen=True, kw_only=True):
    sha256: _Sha256


class _JsonFile(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A file of a project page (PEP 691, PEP 700)."""

    filename: str
    url: str
    hashes: _Hashes
    size: int
    requires_python: str | None = None
    core_metadata: _Hashes | bool = False
    data_dist_info_metadata: _Hashes | bool = msgspec.field(name="dist-info-metadata", default=False)
    upload_time: str | None = None
    yanked: str | bool = False


class _Meta(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    api_version: str = API_VERSION


class _Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project page."""

    meta: _Meta
    name: str
    versions: tuple[str, ...]
    files: tuple[_JsonFile, ...]


def distribution_of(filename: str) -> tuple[str, str]:
    """Normalised name and version of the distribution that a wheel or sdist (PEP 625) is of.

    Raises:
        IntegrityError: it is named as neither.
    """
    if not filename.endswith(".tar.gz"):
        name = parse_wheel_name(filename)
        return name.project, name.version
    found = readings(filename)
    if len(found) != 1:
        meant = " or ".join(f"{project} {version}" for project, version in found)
        message = (
            f"the file name is ambiguous: it may be an sdist of {meant}"
            if found
            else "the file name is not valid for an sdist"
        )
        hint = "name it NAME-VERSION.tar.gz, with '_' for each '-' in the name (PEP 625)"
        raise IntegrityError(Problem(file=filename, message=message, hint=hint))
    ((project, version),) = found
    return project, str(version)


def render_index(files: Iterable[IndexFile]) -> dict[str, bytes]:
    """All pages of an index: path relative to its root -> content. The same files give the same bytes.

    Raises:
        IntegrityError: a file name that no client would accept, or a time in another form.
        PublishError: two files of one name with different content.
    """
    projects: dict[str, list[IndexFile]] = {}
    for file in merge_files((), files):
        if file.upload_time is not None and not _TIME.fullmatch(file.upload_time):
            raise IntegrityError(
                Problem(key=file.filename, message=f"the upload time {file.upload_time!r} is not a valid UTC time")
            )
        projects.setdefault(file.project, []).append(file)
    pages = {
        "simple/index.html": _page("Simple index", [f'<a href="{name}/">{name}</a><br>' for name in sorted(projects)]),
        "simple/index.json": _json({"meta": _Meta(), "projects": [{"name": name} for name in sorted(projects)]}),
    }
    for name, members in projects.items():
        pages[f"simple/{name}/index.html"] = _page(
            f"Links for {name}", [_anchor(file, _link(file)) for file in members]
        )
        pages[f"simple/{name}/index.json"] = _json(_project(name, members))
    return pages


def render_links(files: Iterable[IndexFile]) -> bytes:
    """One page with all files, to lie in the root: for clients that are pointed at a page (``--find-links``)."""
    ordered = sorted(files, key=lambda file: (file.project, Version(distribution_of(file.filename)[1]), file.filename))
    return _page(_LINKS, [_anchor(file, quote(file.path)) for file in ordered])


def is_links_page(data: bytes) -> bool:
    """Whether a page is one of :func:`render_links`."""
    return data.startswith(_page(_LINKS, []).partition(b"</h1>")[0])


def read_index(data: bytes, *, file: str = "index.json") -> tuple[IndexFile, ...]:
    """The files of a project page in JSON, as :func:`render_index` writes it.

    Raises:
        IntegrityError: it is no such page.
    """
    try:
        page = msgspec.json.decode(data, type=_Project)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file is not a valid project page of an index: {error}")
        ) from error
    return tuple(
        IndexFile(
            filename=item.filename,
            folder=_folder(item.url),
            size=item.size,
            sha256=item.hashes.sha256,
            requires_python=item.requires_python,
            metadata_sha256=item.core_metadata.sha256 if isinstance(item.core_metadata, _Hashes) else None,
            upload_time=item.upload_time,
            yanked=item.yanked,
        )
        for item in page.files
    )


def merge_files(present: Iterable[IndexFile], new: Iterable[IndexFile]) -> tuple[IndexFile, ...]:
    """The files of an index after others were added, by name. A file that was there keeps its upload time.

    Raises:
        PublishError: a file of the same name with other content is there; names all of them.
    """
    files: dict[str, IndexFile] = {}
    problems: list[Problem] = []
    for file in (*present, *new):
        other = files.setdefault(file.filename, file)
        if other.sha256 != file.sha256:
            message = (
                f"the file is already in the index with different content (sha256 {other.sha256[:16]}..., now "
                f"{file.sha256[:16]}...)"
            )
            hint = "change the version, local label or build tag of the new file, or remove the old one"
            problems.append(Problem(file=file.filename, message=message, hint=hint))
    if problems:
        raise PublishError(*problems)
    return tuple(files[name] for name in sorted(files))


def _project(name: str, files: list[IndexFile]) -> _Project:
    versions = sorted({distribution_of(file.filename)[1] for file in files}, key=Version)
    return _Project(
        meta=_Meta(), name=canonicalize_name(name), versions=tuple(versions), files=tuple(map(_item, files))
    )


def _item(file: IndexFile) -> _JsonFile:
    metadata: _Hashes | bool = _Hashes(sha256=file.metadata_sha256) if file.metadata_sha256 else False
    return _JsonFile(
        filename=file.filename,
        url=_link(file),
        hashes=_Hashes(sha256=file.sha256),
        size=file.size,
        requires_python=file.requires_python,
        core_metadata=metadata,
        data_dist_info_metadata=metadata,  # the name before PEP 714, for older clients
        upload_time=file.upload_time,
        yanked=file.yanked,
    )


def _link(file: IndexFile) -> str:
    """From a project's page."""
    return f"{_UP}{quote(file.path)}"


def _folder(link: str) -> str:
    return posixpath.dirname(unquote(link.removeprefix(_UP))) if link.startswith(_UP) else ""


def _anchor(file: IndexFile, link: str) -> str:
    attributes = [("href", f"{link}#sha256={file.sha256}")]
    if file.requires_python:
        attributes.append(("data-requires-python", file.requires_python))
    if file.metadata_sha256:
        value = f"sha256={file.metadata_sha256}"
        attributes += [("data-core-metadata", value), ("data-dist-info-metadata", value)]
    if file.yanked:
        attributes.append(("data-yanked", file.yanked if isinstance(file.yanked, str) else ""))
    text = " ".join(f'{name}="{html.escape(value)}"' for name, value in attributes)
    return f"<a {text}>{html.escape(file.filename)}</a><br>"


def _page(title: str, lines: list[str]) -> bytes:
    head = f'<meta charset="utf-8">\n<meta name="pypi:repository-version" content="{API_VERSION}">'
    body = "\n".join([f"<h1>{title}</h1>", *lines])
    page = (
        f"<!DOCTYPE html>\n<html>\n<head>\n{head}\n<title>{title}</title>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
    return page.encode()


def _json(value: _Project | Mapping[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"
