"""What a store of artifacts holds, from the pages that list it.

Layout (TheRock, ``docs/development/workflow_outputs.md``): ``RUN-PLATFORM/NAME_COMPONENT_TARGET.tar.zst`` with a
``.sha256sum`` beside each, and pages ``index-GROUP.html`` or ``index.html``, or a bucket that lists its keys.
"""

from __future__ import annotations

import html
import html.parser
import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit

import msgspec

from axletree.core.errors import IntegrityError
from axletree.package.sdk.artifact_name import SUFFIXES, ArtifactName, archive_stem, in_group, parse_artifact_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from axletree.core.errors import Problem

_SHA256 = re.compile(r"sha256=([0-9a-f]{64})")
_LISTED = re.compile(r"<(?:Key|CommonPrefixes>\s*<Prefix)>([^<]+)</")
_NEXT = re.compile(r"<NextContinuationToken>([^<]+)</")


class StoredArchive(msgspec.Struct, frozen=True, kw_only=True):
    """An archive that a store holds."""

    filename: str
    location: str
    """Path or address. May hold credentials."""
    sha256: str | None = None
    """Where its link says it."""


class BucketPage(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what a bucket of objects lists."""

    names: tuple[str, ...]
    """Keys, and what is common to the keys below a folder, with a ``/`` at its end."""
    following: str = ""
    """Token that asks for the next part; empty: there is none."""


class _Anchors(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.found.append(href)


def page_links(page: str, base: str) -> tuple[str, ...]:
    """Addresses that a page links to, as they are seen from where it was found."""
    anchors = _Anchors()
    anchors.feed(page)
    anchors.close()
    found: list[str] = []
    for href in anchors.found:
        try:
            found.append(urljoin(base, href.strip()))
        except ValueError:  # a broken address is none of ours
            continue
    return tuple(dict.fromkeys(found))


def bucket_page(text: str) -> BucketPage | None:
    """What a bucket says of its keys (Amazon S3, ``ListObjectsV2``); ``None`` where a text is something else."""
    if "<ListBucketResult" not in text[:1000]:
        return None
    token = _NEXT.search(text)
    names = tuple(html.unescape(name) for name in _LISTED.findall(text))
    return BucketPage(names=names, following=html.unescape(token[1]) if token else "")


def offers(links: Iterable[str]) -> tuple[StoredArchive, ...]:
    """The archives among some addresses; a query in them stays, a fragment is read."""
    found: list[StoredArchive] = []
    for link in links:
        parts = urlsplit(link)
        filename = unquote(parts.path.rpartition("/")[2])
        if archive_stem(filename) is not None:
            digest = _SHA256.fullmatch(parts.fragment)
            location = urlunsplit(parts._replace(fragment=""))
            found.append(StoredArchive(filename=filename, location=location, sha256=digest[1] if digest else None))
    return tuple(found)


def runs(names: Iterable[str], platform: str) -> tuple[str, ...]:
    """Ids of runs among names of folders, the highest first."""
    suffix = f"-{platform}"
    ids = {name.removesuffix(suffix) for name in names if name.endswith(suffix)}
    return tuple(sorted((run for run in ids if run.isascii() and run.isdigit()), key=int, reverse=True))


def choose_offers(
    found: Iterable[StoredArchive], group: str, targets: Collection[str] = ()
) -> dict[ArtifactName, StoredArchive]:
    """The archives of a group, and those for all GPUs; of two for one artifact the one that is read faster.

    Args:
        found: what a run's folder holds.
        group: artifact group.
        targets: further targets whose artifacts are wanted: a group whose GPUs have archives of their own.

    Raises:
        IntegrityError: an archive has no name of an artifact. Names all of them.
    """
    problems: list[Problem] = []
    chosen: dict[ArtifactName, StoredArchive] = {}
    for offer in sorted(found, key=lambda offer: [not offer.filename.endswith(suffix) for suffix in SUFFIXES]):
        try:
            name = parse_artifact_name(archive_stem(offer.filename) or "")
        except IntegrityError as error:
            problems += error.problems
            continue
        if in_group(name.target, group) or any(in_group(name.target, target) for target in targets):
            chosen.setdefault(name, offer)
    if problems:
        raise IntegrityError(*problems)
    return dict(sorted(chosen.items()))
