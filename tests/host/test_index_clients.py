"""pip and uv install from the pages that we write: as files, and through a web server that speaks JSON."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.host.archive import write_wheel_file
from axletree.package.index import IndexFile, render_index
from axletree.package.wheel.writer import Member
from support.index_server import serve
from support.wheels import demo_info, demo_metadata, demo_name

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = ("pip", "uv")
JSON = "application/vnd.pypi.simple.v1+json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An index root with two versions of a project; the newer one is yanked."""
    folder = tmp_path / "torch-2.13" / "cpu"
    folder.mkdir(parents=True)
    files = []
    for version, yanked in (("1.0+torch.2.13.cpu", False), ("1.1", True)):
        member = Member(path="demo/__init__.py", data=f"version = {version!r}\n".encode())
        wheel = write_wheel_file(
            folder,
            demo_name(version=version),
            [member],
            metadata=demo_metadata(version, requires_python=">=3.9"),
            wheel_info=demo_info(),
        )
        wheel.path.with_name(f"{wheel.path.name}.metadata").write_bytes(wheel.written.metadata)
        files.append(
            IndexFile(
                filename=wheel.path.name,
                size=wheel.size,
                sha256=wheel.sha256,
                requires_python=">=3.9",
                metadata_sha256=hashlib.sha256(wheel.written.metadata).hexdigest(),
                upload_time="2026-01-31T12:00:00Z",
                yanked=yanked,
            )
        )
    for name, page in render_index(files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(page)
    return folder


def install(client: str, tmp_path: Path, *options: str) -> str:
    """Install ``demo`` into a folder of its own; returns the version that was chosen."""
    target = tmp_path / f"site-{client}"
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_NO_CACHE_DIR": "1"}
    environ |= {"UV_CACHE_DIR": str(tmp_path / "uv-cache")}
    base = [sys.executable, "-m", *(["uv", "pip"] if client == "uv" else ["pip"]), "install", "--target", str(target)]
    done = subprocess.run([*base, *options, "demo"], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return (target / "demo" / "__init__.py").read_text()


@pytest.mark.parametrize("client", CLIENTS)
def test_from_disk_as_an_index(root: Path, tmp_path: Path, client: str) -> None:
    assert install(client, tmp_path, "--index-url", (root / "simple").as_uri()) == "version = '1.0+torch.2.13.cpu'\n"


@pytest.mark.parametrize("client", CLIENTS)
def test_from_disk_as_a_folder(root: Path, tmp_path: Path, client: str) -> None:
    assert install(client, tmp_path, "--no-index", "--find-links", str(root)) == "version = '1.1'\n"


@pytest.mark.parametrize("client", CLIENTS)
def test_through_a_server_that_speaks_json(root: Path, tmp_path: Path, client: str) -> None:
    with serve() as server:
        page = "/cpu/simple/demo/"
        server.files[page] = (root / "simple/demo/index.json").read_bytes()
        server.types[page] = JSON
        for path in root.iterdir():
            if path.is_file():
                for name in (path.name, path.name.replace("+", "%2B")):
                    server.files[f"/cpu/{name}"] = path.read_bytes()
        assert install(client, tmp_path, "--index-url", f"{server.address}/cpu/simple") == (
            "version = '1.0+torch.2.13.cpu'\n"
        )
        asked = [path for _, path, _ in server.requests]
    assert any(path.endswith(".whl.metadata") for path in asked)  # PEP 658: read before the wheel
    assert not any("1.1" in path for path in asked)
