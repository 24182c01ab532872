"""Small trees of TheRock's artifacts, and archives of such as tar and other tools write them."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.package.sdk.entries import SdkEntry

BASE = "core/clr/stage"


def make_artifact(folder: Path, name: str, files: Mapping[str, bytes | str], *, bases: Sequence[str] = (BASE,)) -> Path:
    """An artifact as a folder. A text is what a link says; paths are from the first base folder."""
    root = folder / name
    for path, content in files.items():
        place = root / bases[0] / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            place.symlink_to(content)
        else:
            place.write_bytes(content)
    root.mkdir(parents=True, exist_ok=True)
    (root / "artifact_manifest.txt").write_text("".join(f"{base}\n\n" for base in bases))
    return root


def archive_artifact(root: Path, *, compressor: Sequence[str] = ("zstd", "-q", "-3"), suffix: str = "zst") -> Path:
    """The archive of an artifact's folder, by GNU tar and a real compressor; the manifest comes first."""
    place = root.parent / f"{root.name}.tar.{suffix}"
    names = ["artifact_manifest.txt", *sorted(item.name for item in root.iterdir() if item.is_dir())]
    tar = subprocess.run(["tar", "-C", str(root), "-cf", "-", *names], check=True, capture_output=True).stdout
    place.write_bytes(subprocess.run([*compressor, "-c"], input=tar, check=True, capture_output=True).stdout)
    return place


def hostile_archive(place: Path, members: Sequence[tarfile.TarInfo | tuple[str, bytes]]) -> Path:
    """An archive of members as they are given, whatever they may be; those with content are files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(
        subprocess.run(["zstd", "-q", "-c"], input=buffer.getvalue(), check=True, capture_output=True).stdout
    )
    return place


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    """A member that is no file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def content_of(entries: Sequence[SdkEntry]) -> dict[str, object]:
    """What entries are, wherever their content lies: by path, with the content."""
    return {
        entry.path: (
            *(entry.kind, entry.artifact, entry.component, entry.target, entry.size, entry.executable, entry.link),
            Path(entry.source).read_bytes() if entry.kind == "file" else b"",
        )
        for entry in entries
    }
