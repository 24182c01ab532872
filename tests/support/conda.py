"""Small conda packages, and py-rattler as their index, solver and installer."""

import asyncio
import io
import sys
from collections.abc import Sequence
from pathlib import Path

import rattler
import zstandard
from rattler.index import index_fs

from axletree.host.conda import CondaPackageFile, write_conda_file
from axletree.package.conda.model import CondaFile, CondaPackage
from axletree.package.conda.reader import CondaFacts, scan_conda
from axletree.package.conda.writer import write_conda

PREFIX = "/build" + "/placehold" * 24 + "/prefix89"
"""A build prefix of 255 bytes."""


def demo(**fields: object) -> CondaPackage:
    """The package ``demo`` 1.0, without files."""
    given = {"name": "demo", "version": "1.0", "build": "h1234567_0", "subdir": "linux-64"} | fields
    return CondaPackage(**given)  # type: ignore[arg-type]


def text(path: str, data: bytes = b"content\n", **fields: object) -> CondaFile:
    """A file."""
    return CondaFile(path=path, data=data, **fields)  # type: ignore[arg-type]


def conda_bytes(package: CondaPackage, files: Sequence[CondaFile], **options: object) -> bytes:
    """A package from our writer."""
    sink = io.BytesIO()
    write_conda(sink, package, files, **options)  # type: ignore[arg-type]
    return sink.getvalue()


def scanned(package: CondaPackage, files: Sequence[CondaFile]) -> CondaFacts:
    """A package as our reader sees it."""
    return scan_conda(conda_bytes(package, files), filename=f"{package.stem}.conda")


def unpacked(data: bytes) -> bytes:
    """What a Zstandard frame holds."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(data)


def put(channel: Path, package: CondaPackage, files: Sequence[CondaFile], **options: object) -> CondaPackageFile:
    """Write a package into a channel."""
    for subdir in ("noarch", package.subdir):
        (channel / subdir).mkdir(parents=True, exist_ok=True)
    return write_conda_file(channel / package.subdir, package, files, **options)  # type: ignore[arg-type]


def put_python(channel: Path, version: str = "3.11") -> None:
    """Packages ``python`` and ``python_abi``, whose programs start the Python that runs this test."""
    major, minor = version.split(".")
    script = f'#!/bin/sh\nexec {sys.executable} "$@"\n'.encode()
    files = [text(f"bin/{name}", script, executable=True) for name in ("python", "python3", f"python{version}")]
    abi = demo(name="python_abi", version=version, build=f"8_cp{major}{minor}", subdir="noarch", noarch="generic")
    put(channel, demo(name="python", version=f"{version}.7", build="h1_0_cpython"), files)
    put(channel, abi, [])


def index(channel: Path) -> None:
    """Index a channel by py-rattler."""
    (channel / "noarch").mkdir(exist_ok=True)
    asyncio.run(index_fs(channel, write_shards=False))


def solve(channel: Path, *specs: str, virtual: dict[str, str] | None = None) -> list[rattler.RepoDataRecord]:
    """Index a channel, then solve against it alone."""
    system = {"__glibc": "2.40", "__linux": "6", "__unix": "0"} | (virtual or {})
    packages = [
        rattler.GenericVirtualPackage(rattler.PackageName(name), rattler.Version(version), rattler.BuildString("0"))
        for name, version in system.items()
    ]

    async def run() -> list[rattler.RepoDataRecord]:
        await index_fs(channel)
        return await rattler.solve(
            [rattler.Channel(channel.as_uri())],
            list(specs),
            platforms=["linux-64", "noarch"],
            virtual_packages=packages,
        )

    return asyncio.run(run())


def install(channel: Path, prefix: Path, *specs: str, cache: Path) -> list[str]:
    """Solve and install into a prefix; the names that were installed."""
    records = solve(channel, *specs)
    asyncio.run(
        rattler.install(records, prefix, cache_dir=cache, show_progress=False, platform=rattler.Subdir("linux-64"))
    )
    return sorted(record.name.normalized for record in records)
