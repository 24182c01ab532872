"""Small trees on disk, and records of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from axletree.core.records import StageRecord
from axletree.core.values import Digest, StageId, key_of
from support.requests import MadeUpParameters, ingredients_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from axletree.store import Store

Files = dict[str, bytes | str | None]
"""Path -> content of a file, target of a link (text), or nothing: an empty folder. ``!`` at the end: executable."""

_NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\!"), min_size=1, max_size=8)
_PARTS = _NAMES.filter(lambda name: name not in {".", ".."})
_LEAVES = st.one_of(
    st.binary(max_size=200),
    st.binary(max_size=2).map(lambda piece: piece * 200_000),  # beyond what is read at once
    st.sampled_from(["../elsewhere", "neighbour", "./a/b"]),
    st.none(),
)


@st.composite
def file_trees(draw: st.DrawFn) -> Files:
    """Files of up to three levels; no path is both a file and a folder."""
    paths = draw(st.lists(st.lists(_PARTS, min_size=1, max_size=3).map("/".join), max_size=8, unique=True))
    folders = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(1, path.count("/") + 1)}
    files: Files = {}
    for path in paths:
        if path in folders:
            continue
        leaf = draw(_LEAVES)
        files[f"{path}!" if isinstance(leaf, bytes) and draw(st.booleans()) else path] = leaf
    return files


def write_files(folder: Path, files: Mapping[str, bytes | str | None]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name.removesuffix("!")
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.mkdir(exist_ok=True)
        elif isinstance(content, str):
            os.symlink(content, path)  # noqa: PTH211 (a Path would drop the "./" of a target)
        else:
            path.write_bytes(content)
            path.chmod(0o755 if name.endswith("!") else 0o644)
    return folder


def read_files(folder: Path) -> Files:
    """The reverse of :func:`write_files`."""
    found: Files = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = os.readlink(path)  # noqa: PTH115 (the same)
        elif path.is_dir():
            if not any(path.iterdir()):
                found[name] = None
        else:
            found[f"{name}!" if os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else name] = path.read_bytes()
    return found


def record_of(tree: Digest, name: str = "build[py311-cpu]", **axes: str) -> StageRecord:
    known = ingredients_of(MadeUpParameters(name=name), axes=axes)
    return StageRecord(stage=StageId(name), key=key_of(known), tree=tree, ingredients=known)


def damage(store: Store, digest: Digest) -> None:
    """Flip one bit of a content, as a disk may do."""
    path = store.blob_path(digest)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    path.chmod(0o444)
