"""Solve and install conda packages by py-rattler, from folders of this machine or what else is named.

In a process of its own: a damaged package can take the whole interpreter down, and its threads need not end.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from axletree.core.errors import HostError, StageError
from axletree.core.units import some_of
from axletree.environment.channels import unreadable_channel
from axletree.host.run import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

CLOBBERED = "__clobbers__"
"""Where rattler puts a file that another package has too, without a word."""
_LAST_LINES = 20
_INSTALL = """
import asyncio, json, os, sys
import rattler
from rattler.virtual_package import VirtualPackage
asked = json.load(sys.stdin)
def system():
    found = {package.name.normalized: package for package in map(VirtualPackage.into_generic, VirtualPackage.detect())}
    for name, version in asked["virtual"].items():
        name = rattler.PackageName(name)
        package = rattler.GenericVirtualPackage(name, rattler.Version(version), rattler.BuildString("0"))
        found[name.normalized] = package
    return list(found.values())
async def run():
    records = await rattler.solve(
        [rattler.Channel(url) for url in asked["channels"]],
        [rattler.MatchSpec(spec, strict=False) for spec in asked["specs"]],
        platforms=[asked["subdir"], "noarch"],
        virtual_packages=system(),
        channel_priority=rattler.ChannelPriority.Strict,
    )
    if asked["prefix"]:
        await rattler.install(
            records, asked["prefix"], cache_dir=asked["cache"], show_progress=False,
            platform=rattler.Subdir(asked["subdir"]),
        )
    return [
        {"name": record.name.normalized, "version": str(record.version), "build": str(record.build),
         "channel": record.channel, "url": str(record.url),
         "sha256": record.sha256.hex() if record.sha256 else "", "md5": record.md5.hex() if record.md5 else ""}
        for record in records
    ]
try:
    answer = asyncio.run(run())
except Exception as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)
print(json.dumps(answer), flush=True)
os._exit(0)
"""


class Solved(msgspec.Struct, frozen=True, kw_only=True):
    """A package that a solver chose."""

    name: str
    version: str
    build: str
    channel: str
    """Address of its channel."""
    url: str = ""
    """Address of its file."""
    sha256: str = ""
    """Digests of the file, in hex, as the channel tells them; empty where it does not."""
    md5: str = ""


def solve_and_install(
    prefix: Path | None,
    specs: Sequence[str],
    *,
    channels: Sequence[Path | str],
    subdir: str,
    cache: Path,
    virtual: Mapping[str, str] | None = None,
    environ: Mapping[str, str],
    say: Callable[[bytes], object] = lambda _: None,
) -> tuple[Solved, ...]:
    """Let a conda client choose packages, and install them.

    Args:
        prefix: a fresh environment; ``None``: only choose.
        specs: what is wanted.
        channels: folders, addresses or names; where several have a package that is wanted, the first of them brings
            it, whatever its version.
        subdir: platform, ``linux-64`` ...
        cache: where packages are unpacked; on the file system of the prefix.
        virtual: packages of the system that are taken to be there (``__cuda`` -> version), beside this machine's own.
        environ: variables of the client.
        say: gets what it prints.

    Raises:
        StageError: it finds no solution, can't install, or two packages have the same file; its words are in it.
        HostError: a channel can't be reached.
    """
    asked: dict[str, Any] = {
        "prefix": str(prefix) if prefix is not None else None,
        "specs": list(specs),
        "channels": [each if isinstance(each, str) else each.as_uri() for each in channels],
        "subdir": subdir,
        "cache": str(cache),
        "virtual": dict(virtual or {}),
    }
    command = [sys.executable, "-P", "-c", _INSTALL]
    done = finish(command, text=json.dumps(asked), environ=environ)
    say(done.err)
    if done.code:
        problem = unreadable_channel(done.err.decode(errors="replace"), asked["channels"])
        if problem is not None:
            raise HostError(problem)
        raise StageError(f"rattler failed with {done.ending(_LAST_LINES)}")
    if prefix is not None:
        _refuse_clobbers(prefix)
    return msgspec.json.decode(done.out, type=tuple[Solved, ...])


class _Record(msgspec.Struct):
    """What ``conda-meta`` says of an installed package."""

    name: str
    files: tuple[str, ...] = ()


def _refuse_clobbers(prefix: Path) -> None:
    """See that no two packages have a file in one place: by what the client moved away, and by its records."""
    records = [
        msgspec.json.decode(path.read_bytes(), type=_Record) for path in sorted((prefix / "conda-meta").glob("*.json"))
    ]
    owners: dict[str, list[str]] = {}
    for record in records:
        for path in record.files:
            loser, _, place = path.removeprefix(f"{CLOBBERED}/").partition("/")
            moved = path.startswith(f"{CLOBBERED}/")
            owners.setdefault(place if moved else path, []).append(loser if moved else record.name)
    for file in sorted((prefix / CLOBBERED).rglob("*")):
        if file.is_file() or file.is_symlink():
            loser, _, place = file.relative_to(prefix / CLOBBERED).as_posix().partition("/")
            owners.setdefault(place, []).append(loser)
    lost = {path: sorted(set(names)) for path, names in sorted(owners.items()) if len(set(names)) > 1}
    if lost:
        shown = some_of([f"{path} ({' and '.join(names)})" for path, names in lost.items()], 5)
        message = f"{len(lost)} files are in two packages each, so only one copy of each was installed: {shown}"
        raise StageError(message, hint="each file must belong to one package")
