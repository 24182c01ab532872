"""Fetches the artifacts of a run from a store: a folder, or the same layout behind HTTP.

What comes is verified by the checksum that lies beside it in the store; what was cut goes on where it stopped.
"""

from __future__ import annotations

import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

import msgspec
from urllib3.exceptions import HTTPError

from axletree.core.errors import HostError, IntegrityError, Problem, UsageError
from axletree.host import web
from axletree.host.archive import digest_file
from axletree.host.fetch import DigestError, download
from axletree.host.files import file_errors, replace_file
from axletree.host.indexes import local_path, redact
from axletree.host.sdk.artifacts import CHECKSUM_SUFFIXES, file_text, parse_checksum
from axletree.host.sdk.together import all_results
from axletree.package.sdk.entries import GENERIC
from axletree.package.sdk.store_listing import StoredArchive, bucket_page, choose_offers, offers, page_links, runs
from axletree.report.sdk import Fetched, FetchedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from axletree.package.sdk.artifact_name import ArtifactName

LATEST = "latest"
PARALLEL = 4
_PARTIAL = ".partial"
"""Where cut downloads wait, in the output folder."""
_PAGE_LIMIT = 64 << 20
_CHECKSUM_LIMIT = 4096
_LOOK_BACK = 100
"""Runs that are looked through for the latest that has a group."""
_MOST_PAGES = 200
"""Of a bucket's list, each of a thousand names."""
_DENIED = 403
T = TypeVar("T")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def fetch_artifacts(
    store: str,
    run_id: str,
    group: str,
    out: Path,
    *,
    platform: str = "linux",
    targets: Collection[str] = (),
    note: Callable[[str], None] = lambda _: None,
    backoff: float = 0.5,
) -> Fetched:
    """Bring the archives of an artifact group, and those for all GPUs, into a folder, each with its checksum.

    Args:
        store: folder or address that holds ``RUN-PLATFORM`` folders. May hold credentials; they are not shown.
        run_id: of the run, or :data:`LATEST` for the highest number that has archives of the group.
        group: artifact group, ``gfx94X-dcgpu``.
        out: where archives go. What lies there and is right is not brought again; nothing else is touched.
        platform: that the run was for.
        targets: further targets whose artifacts are wanted.
        note: told what is done.
        backoff: seconds before a second try; doubled before each further one.

    Raises:
        UsageError: the run's id is none.
        IntegrityError: an archive is not what its checksum says, or has none; a name is none of an artifact. All that
            is right was brought then.
        HostError: the store has no such run, or nothing of the group; no answer; something can't be read or written.
    """
    found, run = _find(store, run_id, group, platform, targets, note)
    with file_errors(out, "the folder cannot be created"):
        out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        pending = [pool.submit(_bring, offer, out, note, backoff) for offer in found]
    files = tuple(all_results(pending))
    _tidy(out / _PARTIAL)
    return Fetched(run_id=run, folder=str(out), files=files)


def _find(
    store: str, run_id: str, group: str, platform: str, targets: Collection[str], note: Callable[[str], None]
) -> tuple[Iterable[StoredArchive], str]:
    """What to bring, and of which run."""
    if not _RUN.fullmatch(run_id):
        raise UsageError(
            f"{run_id[:100]!r} is not a valid run id", hint=f"use an id such as 21440027240, or {LATEST!r}"
        )
    if run_id != LATEST:
        held = _held(store, f"{run_id}-{platform}", group)
        if held is None:
            raise HostError(
                f"{redact(store)} has no run {run_id}-{platform}", hint=f"use --run-id {LATEST} for the newest run"
            )
        chosen = choose_offers(held, group, targets)
        if not _of_group(chosen, group):
            raise _nothing(store, f"run {run_id}-{platform}", group, held)
        return chosen.values(), run_id
    known = _runs(store, platform)
    if not known:
        raise HostError(
            f"{redact(store)} has no runs for {platform}: no folder is named RUN-{platform}",
            hint="specify a run with --run-id",
        )
    for run in known[:_LOOK_BACK]:
        chosen = choose_offers(_held(store, f"{run}-{platform}", group) or (), group, targets)
        if _of_group(chosen, group):
            note(f"the newest run with {group} is {run}")
            return chosen.values(), run
    raise _nothing(store, f"any of the last {len(known[:_LOOK_BACK])} runs for {platform}", group, ())


def _of_group(chosen: Iterable[ArtifactName], group: str) -> bool:
    """Whether there is more than what is for all GPUs, or that is what is wanted."""
    return any(name.target == group or name.target != GENERIC for name in chosen)


def _nothing(store: str, where: str, group: str, held: Iterable[StoredArchive]) -> HostError:
    stems = {offer.filename.partition(".tar.")[0].rpartition("_")[2] for offer in held}
    hint = f"choose a group that the run has files for: {', '.join(sorted(stems))}" if stems else None
    return HostError(f"{redact(store)} has no files for group {group} in {where}", hint=hint)


def _held(store: str, run: str, group: str) -> tuple[StoredArchive, ...] | None:
    """The archives of a run's folder; ``None`` where there is no such folder."""
    folder = local_path(store)
    if folder is not None:
        try:
            names = sorted(place.name for place in (folder / run).iterdir() if place.is_file())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise HostError(
                Problem(file=str(error.filename), message=f"the file cannot be read: {error.strerror}")
            ) from error
        found = offers(quote(name) for name in names)
        return tuple(
            msgspec.structs.replace(offer, location=str(folder / run / offer.filename), sha256=None) for offer in found
        )
    base = _address(store, f"{run}/")
    pages = (_address(base, page) for page in (f"index-{quote(group)}.html", "index.html", ""))
    return _listing(store, pages, f"{run}/", offers) or None


def _runs(store: str, platform: str) -> tuple[str, ...]:
    """Ids of a store's runs, the highest first; by the first of its listings that has any."""
    folder = local_path(store)
    if folder is not None:
        with file_errors(folder):
            return runs([place.name for place in folder.iterdir() if place.is_dir()], platform)
    pages = (_address(store, page) for page in ("", "index.html"))
    return _listing(store, pages, "", lambda links: runs(map(_last, links), platform))


def _listing(
    store: str, pages: Iterable[str], below: str, read: Callable[[Iterable[str]], tuple[T, ...]]
) -> tuple[T, ...]:
    """What the first page says that says anything, or else what the store says of its objects."""
    denied: web.StatusError | None = None
    for page in pages:
        try:
            links = _page(page)
        except web.StatusError as error:
            if error.status != _DENIED:
                raise
            denied = error  # what a bucket says of what is not there, too
        else:
            if found := read(links or ()):
                return found
    found = read(_objects(store, below))
    if not found and denied is not None:
        raise denied
    return found


def _last(link: str) -> str:
    """The folder that a link leads to, itself or by the page in it."""
    return unquote(urlsplit(link).path.removesuffix("index.html").rstrip("/").rpartition("/")[2])


def _objects(store: str, below: str) -> tuple[str, ...]:
    """Addresses of the objects, and of the folders, that a bucket has in a folder of the store; none if it is none."""
    root = urlsplit(store)
    prefix = f"{unquote(root.path).strip('/')}/{below}".lstrip("/")
    found: list[str] = []
    following = ""
    for _ in range(_MOST_PAGES):
        query = {"list-type": "2", "delimiter": "/", "prefix": prefix}
        query |= {"continuation-token": following} if following else {}
        address = urlunsplit(root._replace(path="/", query=urlencode(query), fragment=""))
        try:
            text = _text(address, _PAGE_LIMIT)
        except web.StatusError:
            break
        page = bucket_page(text[0]) if text is not None else None
        if page is None:
            break
        found += [urlunsplit(root._replace(path=f"/{quote(name)}", query="", fragment="")) for name in page.names]
        following = page.following
        if not following:
            break
    return tuple(found)


def _address(base: str, name: str) -> str:
    """The address of something below another one."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/{name}", query="", fragment=""))


def _page(url: str) -> tuple[str, ...] | None:
    """What a page links to; ``None`` where there is no such page."""
    text = _text(url, _PAGE_LIMIT)
    if text is None:
        return None
    body, final = text
    # Credentials go with the links of a page that comes from where it was asked for.
    asked, came = urlsplit(url), urlsplit(final)
    if (asked.scheme, asked.netloc.rpartition("@")[2]) == (came.scheme, came.netloc):
        came = came._replace(netloc=asked.netloc)
    base = urlunsplit(came)
    return page_links(body, base)


def _text(url: str, limit: int) -> tuple[str, str] | None:
    """A small text and the address that gave it; ``None`` where there is none."""
    try:
        answer, final = web.get(url)
        try:
            if answer.status in {404, 410}:
                return None
            if answer.status != 200:
                raise web.StatusError(_shown(url), answer.status)
            data = answer.read(limit + 1)
        finally:
            answer.close()
    except HTTPError as error:
        raise web.no_answer(urlunsplit(urlsplit(url)._replace(query="")), error) from error
    if len(data) > limit:
        raise HostError(f"{_shown(url)} is larger than {limit >> 10} KiB")
    return data.decode(errors="replace"), final


def _bring(offer: StoredArchive, out: Path, note: Callable[[str], None], backoff: float) -> FetchedFile:
    shown = _shown(offer.location)
    dest = out / offer.filename
    state: Literal["fetched", "there"] = "there"
    try:
        sha256 = offer.sha256 or _checksum(offer)
        if not dest.is_file() or digest_file(dest) != sha256:
            state = "fetched"
            note(f"fetching {offer.filename}")
            download(offer.location, dest, sha256=sha256, size=None, partial_folder=out / _PARTIAL, backoff=backoff)
        side = f"{sha256}  {offer.filename}\n"
        replace_file(dest.with_name(f"{offer.filename}{CHECKSUM_SUFFIXES[0]}"), side.encode())
        return FetchedFile(filename=offer.filename, size=dest.stat().st_size, sha256=sha256, state=state)
    except DigestError as error:
        hint = (
            "the file in the store is damaged, or its checksum belongs to a different file; the download was discarded"
        )
        raise IntegrityError(f"{shown} does not match its checksum\n{error.digests}", hint=hint) from error
    except web.StatusError as error:
        told = "the store lists the file, but no longer contains it" if error.status == 404 else error.problems[0].hint
        raise web.StatusError(shown, error.status, hint=told) from error
    except HostError as error:
        texts = (problem.message.replace(redact(offer.location), shown) for problem in error.problems)
        raise HostError(*texts, hint=error.problems[-1].hint) from error
    except OSError as error:
        raise HostError(Problem(file=str(dest), message=f"the file cannot be written: {error.strerror}")) from error


def _shown(url: str) -> str:
    """An address as people may see it; its query may be a signature."""
    return redact(url).partition("?")[0]


def _tidy(folder: Path) -> None:
    """Leave no folder for cut downloads behind where none was cut."""
    if folder.is_dir() and not any(folder.glob("*.partial")):
        shutil.rmtree(folder, ignore_errors=True)


def _checksum(offer: StoredArchive) -> str:
    """The digest beside an archive in the store."""
    parts = urlsplit(offer.location)
    folder = local_path(offer.location)
    text: str | None
    for suffix in CHECKSUM_SUFFIXES:
        if folder is not None:
            text = file_text(Path(f"{folder}{suffix}"))
        else:
            found = _text(urlunsplit(parts._replace(path=f"{parts.path}{suffix}")), _CHECKSUM_LIMIT)
            text = found[0] if found else None
        if text is not None:
            return parse_checksum(text, filename=offer.filename, shown=f"{offer.filename}{suffix}")
    raise IntegrityError(
        f"{_shown(offer.location)} has no checksum file, so it cannot be verified",
        hint=f"add {offer.filename}{CHECKSUM_SUFFIXES[0]} to the store, in sha256sum format",
    )
