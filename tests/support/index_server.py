"""A package index on this machine that behaves, or misbehaves as a test asks, and a way to make tiny wheels."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Server:
    """What the server offers and how it misbehaves; change it while it runs."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """Path -> content, for example ``/files/a.whl``."""
    types: dict[str, str] = field(default_factory=dict)
    """Path -> content type."""
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers, used up one by one before the server answers properly."""
    cut_after: list[int] = field(default_factory=list)
    """Bytes after which the next bodies are cut, used up one by one."""
    ranges: bool = True
    """Whether ``Range`` is understood."""
    heads: bool = True
    """Whether ``HEAD`` is answered."""
    shift_range: int = 0
    """Bytes by which a range starts too late: a server that lies."""
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    """Method, path and headers (lower-case names) of what was asked."""

    def add_project(self, name: str, files: dict[str, bytes], *, as_json: bool = True, root: str = "/simple") -> None:
        """Offer files of a project on its page of the index at ``root``."""
        digests = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
        for file, data in files.items():
            self.files[f"/files/{file}"] = data
        page = f"{root}/{name}/"
        if as_json:
            rows = [
                {"filename": file, "url": f"../../files/{file}", "hashes": {"sha256": digests[file]}, "size": len(data)}
                for file, data in files.items()
            ]
            listing = {"meta": {"api-version": "1.1"}, "name": name, "files": rows}
            self.files[page] = json.dumps(listing).encode()
            self.types[page] = "application/vnd.pypi.simple.v1+json"
        else:
            anchors = [f'<a href="../../files/{file}#sha256={digests[file]}">{file}</a><br>' for file in files]
            self.files[page] = f"<!DOCTYPE html><html><body>{''.join(anchors)}</body></html>".encode()
            self.types[page] = "text/html"


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.requests.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            if self.command == "HEAD" and not server.heads:
                self._answer(405, b"")
            elif server.statuses:
                self._answer(server.statuses.pop(0), b"")
            elif self.path in server.redirects:
                self._answer(302, b"", Location=server.redirects[self.path])
            elif self.path not in server.files:
                self._answer(404, b"")
            else:
                self._file(server.files[self.path])

        do_HEAD = do_GET  # noqa: N815 (named by the base class)

        def _file(self, data: bytes) -> None:
            wanted = self.headers.get("Range")
            kind = server.types.get(self.path, "application/octet-stream")
            if not wanted or not server.ranges:
                self._answer(200, data, **{"Content-Type": kind})
                return
            start = int(wanted.removeprefix("bytes=").partition("-")[0]) + server.shift_range
            if start >= len(data):
                self._answer(416, b"")
                return
            span = f"bytes {start}-{len(data) - 1}/{len(data)}"
            self._answer(206, data[start:], **{"Content-Range": span, "Content-Type": kind})

        def _answer(self, status: int, body: bytes, **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            if server.cut_after and body:
                body = body[: server.cut_after.pop(0)]
                self.close_connection = True
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the base class)
            pass

    return Handler


@contextlib.contextmanager
def serve() -> Iterator[Server]:
    """Run a server on a free port of this machine while the block lasts."""
    server = Server()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(server))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    server.address = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def make_wheel(
    name: str,
    version: str,
    *,
    tag: str = "py3-none-any",
    requires: tuple[str, ...] = (),
    body: str = "",
    script: str | None = None,
) -> tuple[str, bytes]:
    """File name and content of a tiny wheel: one module, named as the project, with ``body`` in it."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"]
    metadata += [f"Requires-Dist: {requirement}\n" for requirement in requires]
    members = {
        f"{module}/__init__.py": body or f"version = {version!r}\n",
        f"{info}/METADATA": "".join(metadata),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n",
    }
    if script is not None:
        members[f"{info}/entry_points.txt"] = f"[console_scripts]\n{script} = {module}:main\n"
    record = [_record_line(path, text.encode()) for path, text in members.items()]
    members[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in members.items():
            archive.writestr(zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0)), text)
    return f"{module}-{version}-{tag}.whl", buffer.getvalue()


def write_wheel(folder: Path, name: str, version: str, **options: object) -> Path:
    """Write a tiny wheel into a folder; options as for :func:`make_wheel`."""
    filename, data = make_wheel(name, version, **options)  # type: ignore[arg-type]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / filename
    path.write_bytes(data)
    return path


def _record_line(path: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest},{len(data)}\n"
