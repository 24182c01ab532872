"""Solve, and link packages into prefixes, by py-rattler: from folders of this machine or what else is named.

In a process of its own: a damaged package can take the whole interpreter down, and its threads need not end.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from axletree.core.errors import HostError, StageError
from axletree.core.units import some_of
from axletree.environment.channels import unreadable_channel
from axletree.host.run import finish

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from axletree.host.run import Finished
    from axletree.recipe.conda_locks import LockedPackage

INSTALL_RATTLER = "pip install 'py-rattler>=0.20'"
CLOBBERED = "__clobbers__"
"""Where rattler puts a file that another package has too, without a word."""
LONGEST_PREFIX = 255
"""Bytes: packages are built for a prefix of that length, and a longer one does not fit into their binary files."""
_LAST_LINES = 20
_PROGRAM = """
import asyncio, json, os, sys
from urllib.parse import unquote, urlsplit
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
def linked(given):
    fields = {name: given[name] for name in ("name", "version", "build_number", "subdir", "depends", "size")}
    record = rattler.PackageRecord(
        **fields, build=rattler.BuildString(given["build"]), noarch=given["noarch"],
        sha256=bytes.fromhex(given["sha256"]), python_site_packages_path=given["site_packages"],
    )
    return rattler.RepoDataRecord(record, given["filename"], given["url"], given["channel"])
async def exports(record):
    url = str(record.url)
    try:
        if not url.startswith("file:"):
            return await rattler.RunExportsJson.from_remote_url(rattler.Client.default_client(), url)
        return rattler.RunExportsJson.from_package_archive(unquote(urlsplit(url).path))
    except Exception as error:
        if "is missing from" in str(error):
            return None
        raise
async def answered(record, named):
    answer = json.loads(record.to_json())
    if "run_exports" not in answer and record.name.normalized in named:
        found = await exports(record)
        if found is not None:
            answer["run_exports"] = {kind: getattr(found, kind) for kind in ("weak", "strong")}
    return answer
async def run():
    specs = [rattler.MatchSpec(spec, strict=False) for spec in asked["specs"]]
    records = [linked(each) for each in asked["records"]]
    if not records:
        records = await rattler.solve(
            [rattler.Channel(url) for url in asked["channels"]],
            specs,
            platforms=[asked["subdir"], "noarch"],
            virtual_packages=system(),
            channel_priority=rattler.ChannelPriority.Strict,
        )
    if asked["prefix"]:
        await rattler.install(
            records, asked["prefix"], cache_dir=asked["cache"], show_progress=False,
            platform=rattler.Subdir(asked["subdir"]),
        )
    named = {spec.name.normalized for spec in specs if spec.name} if asked["exports"] else set()
    return [await answered(record, named) for record in records] if not asked["records"] else []
try:
    answer = asyncio.run(run())
except Exception as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(1)
print(json.dumps(answer), flush=True)
os._exit(0)
"""


class SolvedExports(msgspec.Struct, frozen=True, kw_only=True):
    """Run exports of a package."""

    weak: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()


class Solved(msgspec.Struct, frozen=True, kw_only=True):
    """A package that a solver chose: its line in the channel."""

    name: str
    version: str
    build: str
    build_number: int = 0
    subdir: str = ""
    filename: str = msgspec.field(name="fn", default="")
    channel: str | None = None
    """Address of its channel."""
    url: str = ""
    """Address of its file."""
    size: int | None = None
    sha256: str = ""
    """Digests of the file, in hex, as the channel tells them; empty where it does not."""
    md5: str = ""
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    noarch: Literal["generic", "python"] | None = None
    site_packages: str | None = msgspec.field(name="python_site_packages_path", default=None)
    run_exports: SolvedExports = SolvedExports()


def require_rattler(what: str) -> None:
    """See that py-rattler is installed.

    Args:
        what: what needs it, as the beginning of a sentence.

    Raises:
        HostError: it is not.
    """
    if importlib.util.find_spec("rattler") is None:
        raise HostError(f"{what} py-rattler, which is not installed", hint=INSTALL_RATTLER)


def solve_and_install(
    prefix: Path | None,
    specs: Sequence[str],
    *,
    channels: Sequence[Path | str],
    subdir: str,
    cache: Path,
    virtual: Mapping[str, str] | None = None,
    environ: Mapping[str, str],
    exports: bool = False,
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
        exports: whether to ask the files of packages in ``specs`` for run exports that their channel does not tell.
        say: gets what it prints.

    Raises:
        StageError: it finds no solution, can't install, or two packages have the same file; its words are in it.
        HostError: a channel can't be reached.
    """
    asked: dict[str, Any] = {
        "specs": list(specs),
        "channels": [each if isinstance(each, str) else each.as_uri() for each in channels],
        "virtual": dict(virtual or {}),
        "exports": exports,
    }
    done = _ask(asked, prefix, subdir=subdir, cache=cache, environ=environ, say=say)
    return msgspec.json.decode(done.out, type=tuple[Solved, ...])


def link_packages(
    prefix: Path,
    packages: Sequence[LockedPackage],
    *,
    files: Path,
    subdir: str,
    cache: Path,
    environ: Mapping[str, str],
    say: Callable[[bytes], object] = lambda _: None,
) -> None:
    """Link locked packages into a prefix that does not exist yet; nothing is solved, and nothing else is read.

    Args:
        prefix: the environment.
        packages: what goes into it.
        files: folder that has each as ``SUBDIR/FILENAME``.
        subdir: platform, ``linux-64`` ...
        cache: where packages are unpacked; on the file system of the prefix.
        environ: variables of the client.
        say: gets what it prints.

    Raises:
        StageError: the prefix is too long, the client fails, or two packages have the same file.
    """
    length = len(str(prefix).encode())
    if length > LONGEST_PREFIX:
        message = f"the path of the environment has {length} bytes, but conda packages allow {LONGEST_PREFIX}: {prefix}"
        raise StageError(message, hint="use a shorter path: for builds, set AXLETREE_STORE")
    records = [
        {
            **msgspec.structs.asdict(each),
            "run_exports": None,
            "url": (files / each.subdir / each.filename).as_uri(),
            "channel": files.as_uri(),
        }
        for each in packages
    ]
    if records:
        _ask({"records": records}, prefix, subdir=subdir, cache=cache, environ=environ, say=say)
    else:
        prefix.mkdir(parents=True)


def _ask(
    asked: Mapping[str, Any],
    prefix: Path | None,
    *,
    subdir: str,
    cache: Path,
    environ: Mapping[str, str],
    say: Callable[[bytes], object],
) -> Finished:
    nothing: dict[str, Any] = {"specs": [], "channels": [], "virtual": {}, "exports": False, "records": []}
    place = {"prefix": str(prefix) if prefix is not None else None, "subdir": subdir, "cache": str(cache)}
    command = [sys.executable, "-P", "-c", _PROGRAM]
    done = finish(command, text=json.dumps({**nothing, **place, **asked}), environ=environ)
    say(done.err)
    if done.code:
        problem = unreadable_channel(done.err.decode(errors="replace"), asked["channels"])
        if problem is not None:
            raise HostError(problem)
        raise StageError(f"rattler failed with {done.ending(_LAST_LINES)}")
    if prefix is not None:
        _refuse_clobbers(prefix)
    return done


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
