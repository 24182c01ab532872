"""Fetch the source: an archive unpacked, a commit checked out, a folder's files, or a wheel as it is."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError
from axletree.core.trees import is_safe_path
from axletree.core.values import Digest
from axletree.execute.context import Outcome
from axletree.host.fetch import download
from axletree.host.gitfetch import fetch_git
from axletree.host.indexes import IndexSettings, read_settings
from axletree.host.simple_api import find_file

if TYPE_CHECKING:
    from axletree.execute.context import Context


def run(context: Context) -> Outcome:
    """Bring the source into the store.

    Raises:
        HostError: it cannot be had.
        IntegrityError: what came is not what the recipe's lock says.
    """
    parameters = context.parameters
    match parameters["kind"]:
        case "path":
            return Outcome(tree=Digest(parameters["tree"]))
        case "git":
            folder = context.work / "source"
            fetch_git(
                parameters["url"],
                parameters["commit"],
                folder,
                cache=context.store.cache / "git",
                environ=context.environ,
                submodules=parameters["submodules"],
                protocols=("https", "file"),
                offline=offline(context),
            )
            return Outcome(tree=context.store.ingest(folder, adopt=True, exclude=(".git",)))
        case _:
            archive = fetch_file(context, parameters)
            folder = context.work / "source"
            if archive.suffix == ".whl":
                folder.mkdir()
                archive.rename(folder / archive.name)
            else:
                context.progress(f"unpacking {archive.name}")
                unpack(archive, folder)
            return Outcome(tree=context.store.ingest(folder, adopt=True), facts={"file": parameters["filename"]})


def offline(context: Context) -> bool:
    """Whether the user forbade the network."""
    return context.environ.get("AXLETREE_OFFLINE") == "1"


def settings_of(context: Context) -> IndexSettings:
    """The user's package indexes."""
    return read_settings(context.environ, home=Path(context.environ.get("HOME", "/")), cwd=Path.cwd())


def fetch_file(context: Context, wanted: dict[str, object]) -> Path:
    """Bring one locked file (``filename``, ``sha256``, ``size``, perhaps ``url``) into the stage's folder."""
    filename, sha256 = str(wanted["filename"]), str(wanted["sha256"])
    target = context.work / filename
    if context.store.has_blob(Digest(sha256)):
        target.write_bytes(context.store.read_blob(Digest(sha256)))
        return target
    url = wanted.get("url")
    if url is None:
        extra = context.request.local.get("extra_indexes", ())
        url = find_file(filename, sha256, settings_of(context), extra=extra, offline=offline(context)).url
    context.progress(f"fetching {filename}")
    download(
        str(url),
        target,
        sha256=sha256,
        size=int(str(wanted["size"])) if wanted.get("size") is not None else None,
        partial_folder=context.store.cache / "downloads",
        progress=lambda done, total: context.progress(f"fetching {filename}", done=done, total=total),
        offline=offline(context),
    )
    return target


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive and leave its single top folder out, as sdists and releases have one.

    Raises:
        IntegrityError: it is no archive, or a member would land outside of the folder.
    """
    raw = folder.with_name(f"{folder.name}.unpacked")
    raw.mkdir()
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, raw)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(raw, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError) as error:
        raise IntegrityError(f"cannot unpack {archive.name}: {error}") from error
    inside = list(raw.iterdir())
    top = inside[0] if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink() else raw
    top.rename(folder)


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if not is_safe_path(member.filename.rstrip("/")):
                raise IntegrityError(f"{archive.name}: member outside of its folder: {member.filename!r}")
            path = Path(opened.extract(member, folder))
            mode = member.external_attr >> 16
            if path.is_file() and mode & 0o100:
                os.chmod(path, 0o755)  # noqa: PTH101, S103 (the execute bit is all that is carried over)
