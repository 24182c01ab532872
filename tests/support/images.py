"""Layers, layouts and archives of images, made by hand: good ones, and those of an attacker."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from axletree.host.image.source import host_platform

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE
OS_RELEASE = b'ID=tiny\nVERSION_ID="1"\nPRETTY_NAME="Tiny 1"\n'


def member(
    name: str, data: bytes = b"", *, kind: bytes = FILE, target: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a tar archive."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size, info.mtime = kind, target, mode, len(data), 1_000_000_000
    return info, data


def folder(name: str, mode: int = 0o755) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, kind=FOLDER, mode=mode)


def layer(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """An uncompressed layer."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return sink.getvalue()


def tiny_layer() -> bytes:
    """A root with what roots have: modes, links of all kinds, a long name, a name that is not ASCII."""
    return layer(
        folder("./"),
        folder("etc"),
        member("etc/os-release", kind=LINK, target="../usr/lib/os-release"),
        folder("usr/lib"),
        member("usr/lib/os-release", OS_RELEASE),
        folder("usr/bin"),
        member("usr/bin/tool", b"#!/bin/sh\necho tool\n", mode=0o4755),
        member("usr/bin/same", kind=HARD, target="usr/bin/tool"),
        member("bin", kind=LINK, target="/usr/bin"),
        folder("tmp", 0o1777),
        folder("root", 0o700),
        member("root/secret", b"x", mode=0o600),
        member(f"usr/lib/{'long' * 40}", b"long"),
        member("usr/lib/Főtanúsítvány.crt", b"c"),
        member("usr/lib/system-a\\x2db.slice", b"s"),
        folder("dev"),
        member("dev/null", kind=tarfile.CHRTYPE),
    )


def put_blob(layout: Path, data: bytes) -> dict[str, Any]:
    """Put content into a layout: its descriptor, without a type."""
    digest = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    (layout / "blobs/sha256" / digest).write_bytes(data)
    return {"digest": f"sha256:{digest}", "size": len(data)}


def make_layout(
    layout: Path,
    layers: Sequence[bytes],
    *,
    platform: str | None = None,
    env: Sequence[str] = (),
    tag: str = "latest",
    pack: str = "gzip",
) -> Path:
    """An OCI layout with one image."""
    system, _, machine = (platform or host_platform()).partition("/")
    config = {
        "architecture": machine,
        "os": system,
        "config": {"Env": list(env)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}" for each in layers]},
    }
    suffix = f"+{pack}" if pack else ""
    kind = f"application/vnd.oci.image.layer.v1.tar{suffix}"
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **put_json(layout, config)},
        "layers": [{"mediaType": kind, **put_blob(layout, packed(each, pack))} for each in layers],
    }
    described = {"mediaType": manifest["mediaType"], **put_json(layout, manifest)}
    described["annotations"] = {"org.opencontainers.image.ref.name": tag}
    write_index(layout, [described])
    return layout


def packed(data: bytes, pack: str) -> bytes:
    if pack == "zstd":
        import zstandard

        return zstandard.ZstdCompressor().compress(data)
    return gzip.compress(data, 1, mtime=0) if pack else data


def put_json(layout: Path, value: object) -> dict[str, Any]:
    return put_blob(layout, json.dumps(value).encode())


def write_index(layout: Path, manifests: Iterable[dict[str, Any]]) -> None:
    (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": list(manifests)}))


def listing(root: Path) -> dict[str, tuple[str, ...]]:
    """What a root contains: path -> kind, permissions, and content or target."""
    found: dict[str, tuple[str, ...]] = {}
    for parent, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(parent, name)
            inside, mode = str(path.relative_to(root)), f"{path.lstat().st_mode & 0o7777:o}"
            if path.is_symlink():
                found[inside] = ("link", str(path.readlink()))
            elif path.is_dir():
                found[inside] = ("folder", mode)
            else:
                found[inside] = ("file", mode, hashlib.sha256(path.read_bytes()).hexdigest())
    return found


def need(*tools: str) -> None:
    """Skip where a tool is not installed."""
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool} (scripts/setup containers)")


def run_tool(*words: str | Path, **options: Any) -> str:
    """Run a tool that has to succeed; what it prints."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{words}: {done.stderr[-2000:]}"
    return str(done.stdout)


def podman(storage: Path) -> list[str | Path]:
    """The start of a podman command line that leaves everything else on this machine alone.

    Some hosts permit no cgroups to crun, and overlay in overlay nowhere.
    """
    need("podman", "runc")
    places: list[str | Path] = ["--root", storage / "root", "--runroot", storage / "run", "--tmpdir", storage / "tmp"]
    return ["podman", *places, "--storage-driver", "vfs", "--runtime", "runc", "--cgroup-manager", "cgroupfs"]
