"""Reads package indexes: JSON (PEP 691), HTML (PEP 503), folders laid out as an index, and find-links places.

A locked file is known by name and digest, so where it comes from does not matter: the nearest place that has it is
taken. Nothing here downloads a file.
"""

from __future__ import annotations

import hashlib
import html.parser
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

import msgspec
from packaging.utils import canonicalize_name
from urllib3.exceptions import HTTPError

from axletree.core.errors import AxletreeError, HostError, IntegrityError, Problem
from axletree.core.setting import LOCK
from axletree.host import web
from axletree.host.fetch import ONLINE
from axletree.host.indexes import IndexSettings, file_url, local_path, redact
from axletree.recipe.sdists import readings, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from urllib3 import Retry

ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_PAGE_LIMIT = 256 << 20
_SHA256 = re.compile(r"^[0-9a-f]{64}$")


class RemoteFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that some index or folder offers."""

    filename: str
    url: str
    """Address, or ``file://``. May hold credentials: show it through ``redact`` only."""
    sha256: str | None = None
    """Digest as the index gives it; ``None`` where it gives none."""
    size: int | None = None
    """Bytes."""
    requires_python: str | None = None
    yanked: str | bool = False
    """Whether installers should pass it over (PEP 592), or why they should."""


class _JsonFile(msgspec.Struct):
    filename: str
    url: str
    hashes: dict[str, str]
    requires_python: str | None = msgspec.field(default=None, name="requires-python")
    size: int | None = None
    yanked: bool | str = False


class _JsonPage(msgspec.Struct):
    files: list[_JsonFile]


def list_files(project: str, settings: IndexSettings, *, retry: Retry | None = None) -> tuple[RemoteFile, ...]:
    """All files of a project, find-links places first, then the indexes in order; duplicates stay.

    A place that does not know the project gives nothing. ``retry`` is how often a place of the network is asked again.

    Raises:
        HostError: a place cannot be read (no network, not an index, a find-links folder that does not exist).
    """
    found: list[RemoteFile] = []
    for place in settings.find_links:
        found += _find_links(place, project, retry=retry)
    for index in _indexes(settings, ()):
        found += index_files(index, project, retry=retry)
    return tuple(found)


def find_file(
    filename: str, sha256: str, settings: IndexSettings, *, extra: Iterable[str] = (), offline: bool = False
) -> RemoteFile:
    """Where a locked file lies: find-links places, the user's indexes, then ``extra``; the first that has it.

    Places on this machine are asked before those of the network, and alone where ``offline``. A file of that name with
    another digest is passed over. One whose place gives no digest is taken last: the download compares it anyway.

    Raises:
        HostError: nothing has it. Names every place that was asked, and what went wrong there.
        IntegrityError: the same, and some place has another file under that name.
    """
    projects = tuple(dict.fromkeys(name for name, _ in readings(filename)))
    if not projects:
        raise HostError(f"not a valid file name of a wheel or an sdist: {filename}")
    asked: list[str] = []
    hints: list[str | None] = []
    unsure: list[RemoteFile] = []
    kind: type[AxletreeError] = HostError
    for place, read in _places(settings, extra):
        if offline and local_path(place) is None:
            asked.append(f"{redact(place)}: skipped because --offline is set")
            hints.append(ONLINE)
            continue
        try:
            listed = [file for project in projects for file in read(place, project)]
            files = [_with_digest(file) for file in listed if file.filename == filename]
        except HostError as error:
            asked.append(f"{redact(place)}: {error.problems[0].message}")
            hints.append(error.problems[0].hint)
            continue
        exact = next((file for file in files if file.sha256 == sha256), None)
        if exact is not None:
            return exact
        unsure += [file for file in files if file.sha256 is None]
        others = ", ".join(file.sha256 for file in files if file.sha256)
        asked.append(
            f"{redact(place)}: provides the file with a different sha256, {others}"
            if others
            else f"{redact(place)}: not found"
        )
        kind = IntegrityError if others else kind
    if unsure:
        return unsure[0]
    lines = (f"{filename} (sha256 {sha256}) was not found; searched:", *(asked or ["nowhere"]))
    # Where no place could be asked, that is what there is to mend.
    hint = hints[0] if asked and len(hints) == len(asked) else None
    hint = hint or (
        "add a folder or an index that contains the file (AXLETREE_FIND_LINKS, AXLETREE_INDEX_URL, pip's "
        "configuration), or update the lock: "
        f"{LOCK} --upgrade"
    )
    raise kind(Problem(message="\n    ".join(lines), hint=hint))


def index_files(index: str, project: str, *, retry: Retry | None = None) -> list[RemoteFile]:
    """What one index (PEP 503 or PEP 691, also as a ``file://`` folder) offers of a project.

    Raises:
        HostError: no answer, a status other than 404, or a page that is none.
    """
    folder = local_path(index)
    name = canonicalize_name(project)
    if folder is not None:
        page = folder / name / "index.html"
        if not folder.is_dir():
            raise HostError(f"the index folder does not exist: {folder}")
        return _html_file(page) if page.is_file() else []
    return _page(f"{index.rstrip('/')}/{name}/", retry)


def _indexes(settings: IndexSettings, extra: Iterable[str]) -> list[str]:
    own = [settings.index_url] if settings.index_url else []
    return list(dict.fromkeys([*own, *settings.extra_index_urls, *extra]))


def _places(settings: IndexSettings, extra: Iterable[str]) -> list[tuple[str, Callable[[str, str], list[RemoteFile]]]]:
    """Every place with the function that reads it, those on this machine first."""
    places: list[tuple[str, Callable[[str, str], list[RemoteFile]]]] = []
    places += [(place, _find_links) for place in settings.find_links]
    places += [(index, index_files) for index in _indexes(settings, extra)]
    return sorted(places, key=lambda pair: local_path(pair[0]) is None)


def _with_digest(file: RemoteFile) -> RemoteFile:
    """The file with its digest where it lies on this machine: its content decides there, not what a page says."""
    path = local_path(file.url)
    if path is None:
        return file
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise HostError(f"cannot read {path}: {error}") from error
    return msgspec.structs.replace(file, sha256=digest, size=path.stat().st_size)


def _find_links(place: str, project: str, *, retry: Retry | None = None) -> list[RemoteFile]:
    """Files of a project in a folder, in a local page, or on a page of the network."""
    path = local_path(place)
    if path is None:
        files = _page(place, retry)
    elif path.is_dir():
        files = [
            RemoteFile(filename=entry.name, url=file_url(entry), size=entry.stat().st_size)
            for entry in sorted(path.iterdir())
            if entry.is_file()
        ]
    elif path.is_file():
        files = _html_file(path)
    else:
        raise HostError(f"the find-links folder does not exist: {path}")
    return [file for file in files if version_of(file.filename, project) is not None]


def _html_file(path: Path) -> list[RemoteFile]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HostError(f"cannot read {path}: {error}") from error
    return [_with_size(file) for file in parse_html(text, base=file_url(path))]


def _with_size(file: RemoteFile) -> RemoteFile:
    path = local_path(file.url)
    if path is None or not path.is_file():
        return file
    return msgspec.structs.replace(file, size=path.stat().st_size)


def _page(url: str, retry: Retry | None) -> list[RemoteFile]:
    """Read one page of the network; none where the server says that there is none."""
    try:
        answer, final = web.get(url, headers={"Accept": ACCEPT}, retry=retry)
        try:
            data = answer.read(_PAGE_LIMIT)
        finally:
            answer.release_conn()
    except HTTPError as error:
        raise web.no_answer(url, error) from error
    if answer.status == 404:
        return []
    if answer.status != 200:
        raise web.StatusError(redact(url), answer.status)
    base = _keep_login(url, final)
    if "json" in (answer.headers.get("Content-Type") or ""):
        return parse_json(data, base=base)
    return parse_html(data.decode("utf-8", errors="replace"), base=base)


def _keep_login(asked: str, final: str) -> str:
    """The final address with the credentials of the one that was asked, if it is the same host's."""
    old, new = urlsplit(asked), urlsplit(final)
    if old.hostname == new.hostname and old.scheme == new.scheme:
        return new._replace(netloc=old.netloc).geturl()
    return final


def parse_json(data: bytes, *, base: str) -> list[RemoteFile]:
    """Files of a PEP 691 page; ``base`` is the address that it came from.

    Raises:
        HostError: it is no such page.
    """
    try:
        page = msgspec.json.decode(data, type=_JsonPage)
    except msgspec.MsgspecError as error:
        raise HostError(f"{redact(base)} is not a package index page (PEP 691): {error}") from error
    return [
        RemoteFile(
            filename=file.filename,
            url=urljoin(base, file.url),
            sha256=_digest(file.hashes.get("sha256")),
            size=file.size,
            requires_python=file.requires_python,
            yanked=True if file.yanked == "" else file.yanked,
        )
        for file in page.files
    ]


class _Anchors(html.parser.HTMLParser):
    """Collects the links of a page and its base address."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.anchors: list[dict[str, str]] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "base" and self.base is None:
            self.base = found.get("href")
        if tag == "a" and "href" in found:
            self.anchors.append(found)


def parse_html(text: str, *, base: str) -> list[RemoteFile]:
    """Files of a PEP 503 page or of any page with links; ``base`` is the address that it came from."""
    parser = _Anchors()
    parser.feed(text)
    parser.close()
    base = urljoin(base, parser.base) if parser.base else base
    files = []
    for anchor in parser.anchors:
        url, _, fragment = urljoin(base, anchor["href"]).partition("#")
        filename = unquote(urlsplit(url).path.rpartition("/")[2])
        if not filename:
            continue
        algorithm, _, digest = fragment.partition("&")[0].partition("=")
        files.append(
            RemoteFile(
                filename=filename,
                url=url,
                sha256=_digest(digest) if algorithm == "sha256" else None,
                requires_python=anchor.get("data-requires-python"),
                yanked=(anchor["data-yanked"] or True) if "data-yanked" in anchor else False,
            )
        )
    return files


def _digest(text: str | None) -> str | None:
    lowered = (text or "").lower()
    return lowered if _SHA256.match(lowered) else None
