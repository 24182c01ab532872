"""Lock files of a selection, with the hashes of its files: for pip's ``-r``, or a ``pylock.toml`` (PEP 751)."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from ._sdk import SdkError

if TYPE_CHECKING:
    from collections.abc import Iterable

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
_SECONDS = 60
_BLOCK = 1 << 20


@dataclass(frozen=True)
class LockedFile:
    """A file of a distribution."""

    name: str
    sha256: str
    url: str = ""
    path: Path | None = None
    size: int | None = None


def files_of_folder(folder: Path, dists: Iterable[str], version: str) -> dict[str, list[LockedFile]]:
    """Files of distributions in a folder.

    Raises:
        SdkError: some have none; all of them are named.
    """
    if not folder.is_dir():
        raise SdkError(f"{folder} is not a folder")
    found: dict[str, list[LockedFile]] = {}
    for dist in dists:
        paths = [path.absolute() for path in sorted(folder.iterdir()) if _is_of(path.name, dist, version)]
        files = [LockedFile(path.name, _sha256(path), path=path, size=path.stat().st_size) for path in paths]
        found[dist] = _wheels_first(files)
    return _complete(found, dists, version, str(folder))


def files_of_index(index: str, dists: Iterable[str], version: str) -> dict[str, list[LockedFile]]:
    """Files of distributions in a simple index (PEP 503 or PEP 691).

    Raises:
        SdkError: it can't be read, lacks some, or does not tell the hash of one.
    """
    found: dict[str, list[LockedFile]] = {}
    for dist in dists:
        files = [each for each in _project(index, dist) if _is_of(each.name, dist, version)]
        unhashed = [each.name for each in files if not each.sha256]
        if unhashed:
            raise SdkError(
                f"{without_password(index)} does not provide a sha256 for {', '.join(unhashed)}, so these files "
                "cannot be locked"
            )
        found[dist] = _wheels_first(files)
    return _complete(found, dists, version, without_password(index))


def render_requirements(
    requirement: str, version: str, files: dict[str, list[LockedFile]], *, source: str, command: str
) -> str:
    """A requirements file that pip checks hashes with.

    Args:
        requirement: the selector with its extras, pinned.
        version: of all distributions.
        files: the files of each; the selector first.
        source: the line that says where pip finds them.
        command: who writes it.
    """
    lines = [f"# written by {command} select --lock", source, ""]
    for number, (dist, locked) in enumerate(files.items()):
        first = requirement if number == 0 else f"{dist}=={version}"
        hashes = [f"    --hash=sha256:{digest}" for digest in sorted({each.sha256 for each in locked})]
        lines.append(" \\\n".join([first, *hashes]))
    return "\n".join(lines) + "\n"


def render_pylock(version: str, files: dict[str, list[LockedFile]], *, folder: Path, command: str) -> str:
    """A ``pylock.toml`` (PEP 751).

    Args:
        version: of all distributions.
        files: the files of each.
        folder: where the lock file will lie: paths in it are relative to that.
        command: who writes it.
    """
    lines = ['lock-version = "1.0"', f"created-by = {_toml(command)}"]
    for dist, locked in sorted(files.items()):
        lines += ["", "[[packages]]", f"name = {_toml(dist)}", f"version = {_toml(version)}"]
        for each in locked:
            if each.path is not None:
                where = f"path = {_toml(Path(os.path.relpath(each.path, folder)).as_posix())}"
            else:
                where = f"url = {_toml(each.url)}"
            size = [] if each.size is None else [f"size = {each.size}"]
            table = "[[packages.wheels]]" if each.name.endswith(".whl") else "[packages.sdist]"
            hashes = f"hashes = {{ sha256 = {_toml(each.sha256)} }}"
            lines += ["", table, f"name = {_toml(each.name)}", where, *size, hashes]
    return "\n".join(lines) + "\n"


def check_lock_name(path: Path) -> None:
    """Refuse a name that installers do not take for a lock file.

    Raises:
        ValueError: a TOML file with another name than PEP 751 asks for.
    """
    if path.suffix == ".toml" and not re.fullmatch(r"pylock(\.[^.]+)?\.toml", path.name):
        raise ValueError(
            f"{path.name} is not a valid lock file name: it must be pylock.toml or pylock.NAME.toml (PEP 751)"
        )


def _complete(
    found: dict[str, list[LockedFile]], dists: Iterable[str], version: str, where: str
) -> dict[str, list[LockedFile]]:
    missing = [dist for dist in dists if not found.get(dist)]
    if missing:
        raise SdkError(f"{where} does not contain version {version} of {', '.join(missing)}")
    return {dist: found[dist] for dist in dists}


def _is_of(name: str, dist: str, version: str) -> bool:
    """Whether a file is a wheel or source archive of a distribution at a version."""
    stem = name[:-4] if name.endswith(".whl") else name[:-7] if name.endswith(".tar.gz") else ""
    parts = stem.split("-")
    if len(parts) < 2:
        return False
    project, release = (parts[0], parts[1]) if name.endswith(".whl") else ("-".join(parts[:-1]), parts[-1])
    return _normal(project) == _normal(dist) and release.replace("_", ".").lower() == version.lower()


def _wheels_first(files: list[LockedFile]) -> list[LockedFile]:
    """The wheels; the source archive only where there are none."""
    return [each for each in files if each.name.endswith(".whl")] or files[:1]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _project(index: str, dist: str) -> list[LockedFile]:
    """The files of a project's page that are not yanked."""
    page, address = _get(f"{index.rstrip('/')}/{_normal(dist)}/")
    if not page.lstrip().startswith("{"):
        return _html_files(page, address)
    try:
        return [
            LockedFile(
                name=each["filename"],
                sha256=each.get("hashes", {}).get("sha256", ""),
                url=without_password(urllib.parse.urljoin(address, each["url"])),
                size=each.get("size"),
            )
            for each in json.loads(page)["files"]
            if not each.get("yanked")
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SdkError(f"{without_password(address)} is not a page of a simple index ({error!r})") from None


def _html_files(page: str, address: str) -> list[LockedFile]:
    links = _Links()
    links.feed(page)
    files: list[LockedFile] = []
    for link in links.found:
        url, fragment = urllib.parse.urldefrag(urllib.parse.urljoin(address, link))
        name = urllib.parse.unquote(urllib.parse.urlsplit(url).path.rpartition("/")[2])
        files.append(
            LockedFile(name, dict(urllib.parse.parse_qsl(fragment)).get("sha256", ""), url=without_password(url))
        )
    return files


class _Links(HTMLParser):
    """Targets of the links of a page, without those of yanked files."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if tag == "a" and known.get("href") and "data-yanked" not in known:
            self.found.append(str(known["href"]))


def _get(url: str) -> tuple[str, str]:
    """A page and its address after redirects; user and password of the address become a header."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in {"http", "https", "file"}:
        raise SdkError(f"{without_password(url)} is not an index URL (http, https or file)")
    headers = {"Accept": _ACCEPT}
    if parts.username is not None:
        who = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(who.encode()).decode()}"
    target = without_password(url) + ("index.html" if parts.scheme == "file" else "")
    request = urllib.request.Request(target, headers=headers)  # noqa: S310  # its scheme was looked at
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:  # noqa: S310
            text = answer.read().decode("utf-8", errors="replace")
            return text, answer.geturl()
    except urllib.error.HTTPError as error:
        raise SdkError(f"{target}: {error.code} {error.reason}") from None
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise SdkError(f"{target}: {getattr(error, 'reason', error)}") from None


def without_password(url: str) -> str:
    """An address without user and password."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
