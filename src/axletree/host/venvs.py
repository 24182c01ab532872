"""Makes virtual environments and installs into them: from a lock with its wheels, or as a user's client would.

Nothing here asks a network, reads a configuration file or looks elsewhere than where it is told to. pip is never put
into an environment: ours installs from outside.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import deque
from typing import TYPE_CHECKING

import tomli_w
from packaging.utils import canonicalize_name

from axletree.core.errors import IntegrityError, StageError
from axletree.disk import part_folder
from axletree.host.indexes import uv_program
from axletree.host.run import run
from axletree.recipe.locks import parse_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from axletree.core.records import Interpreter
    from axletree.recipe.locks import PyLock

    Say = Callable[[bytes], object]

_FOREIGN = ("UV_", "PIP_", "PYTHON", "VIRTUAL_ENV", "CONDA_")
"""Beginnings of variables that would change what an installer does."""
_LAST_LINES = 20
_MARKERS = """
import json, os, platform, sys
def version(info):
    kind = info.releaselevel
    return "%d.%d.%d" % info[:3] + ("" if kind == "final" else kind[0] + str(info.serial))
print(json.dumps({
    "implementation_name": sys.implementation.name,
    "implementation_version": version(sys.implementation.version),
    "os_name": os.name,
    "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(),
    "platform_release": platform.release(),
    "platform_system": platform.system(),
    "platform_version": platform.version(),
    "python_full_version": platform.python_version(),
    "python_version": ".".join(platform.python_version_tuple()[:2]),
    "sys_platform": sys.platform,
}))
"""
_VERIFY = "run `axletree store verify`, which sets damaged files aside, then run the same command again"


def create_venv(
    dest: Path,
    *,
    interpreter: Interpreter,
    uv_cache: Path,
    environ: Mapping[str, str],
    lock_folder: Path | None = None,
    share: bool = False,
    say: Say | None = None,
) -> None:
    """Make a relocatable virtual environment at ``dest``, which must not exist; it appears complete or not at all.

    Args:
        dest: folder of the environment.
        interpreter: its Python.
        uv_cache: uv's cache, on the file system of ``dest``.
        environ: variables that the installer starts from; those of uv and pip in it are not passed on.
        lock_folder: holds one ``pylock.*.toml`` and its wheels, which are installed; ``None`` for an empty environment.
        share: let uv link files from its cache instead of copying them. Who then writes into one changes all
            environments that have it, so this is for environments that are read-only while anything runs in them.
        say: gets each line that the programs print.

    Raises:
        IntegrityError: a wheel is missing beside its lock, or its content is not what the lock says.
        StageError: uv or pip failed; holds its last lines.
    """
    dest.parent.mkdir(parents=True, exist_ok=True)
    with part_folder(dest) as folder:
        venv = folder / "venv"
        command = [*_uv(uv_cache), "venv", "--relocatable", "--no-project", f"--python={interpreter.path}", str(venv)]
        _run(command, environ, what="uv venv", say=say)
        if lock_folder is not None:
            path, lock = _lock_in(lock_folder)
            _require_wheels(lock, lock_folder)
            command = [*_uv(uv_cache), "pip", "sync", f"--python={_python(venv)}", *_link_mode(share=share)]
            shown = _shown(lock, path, scratch=folder, uv_cache=uv_cache)
            command += ["--no-index", "--no-progress", "--allow-empty-requirements", str(shown)]
            _run(command, environ, what="uv pip sync", say=say)
        venv.rename(dest)


def install_with_uv(
    venv: Path,
    requirements: Sequence[str],
    *,
    index_urls: Sequence[str],
    find_links: Path,
    cache: Path,
    environ: Mapping[str, str],
    share: bool = False,
    say: Say | None = None,
) -> dict[str, str]:
    """Install requirements with uv, from indexes of this machine (``file://``, one or more) and a folder of wheels.

    ``cache`` is uv's cache, on the file system of ``venv``; ``share`` is that of :func:`create_venv`. Returns what the
    environment then holds, name -> version.

    Raises:
        StageError: uv failed; holds its last lines.
    """
    # Wheels are shown to uv at paths that stay, so that it unpacks each only once.
    shelves = {_shelve(wheel, cache).parent for wheel in sorted(find_links.glob("*.whl"))}
    command = [*_uv(cache), "pip", "install", f"--python={_python(venv)}", "--only-binary=:all:", "--no-progress"]
    command += _link_mode(share=share)
    first, *others = index_urls
    command += [f"--default-index={first}", *(f"--index={url}" for url in others)]
    command += [f"--find-links={shelf}" for shelf in sorted(shelves)]
    _run([*command, *requirements], environ, what="uv pip install", say=say)
    return installed(venv)


def install_with_pip(
    venv: Path,
    requirements: Sequence[str],
    *,
    index_urls: Sequence[str],
    find_links: Path,
    environ: Mapping[str, str],
    say: Say | None = None,
) -> dict[str, str]:
    """Install requirements with our pip, from indexes of this machine (``file://``, one or more) and a folder.

    Returns what the environment then holds, name -> version.

    Raises:
        StageError: pip failed; holds its last lines.
    """
    first, *others = index_urls
    command = [*_pip(venv), "--only-binary=:all:", f"--index-url={first}"]
    command += [*(f"--extra-index-url={url}" for url in others), f"--find-links={find_links}"]
    _run([*command, *requirements], environ, what="pip install", say=say)
    return installed(venv)


def add_wheels(venv: Path, lock_folder: Path, *, uv_cache: Path, environ: Mapping[str, str]) -> None:
    """Install the wheels of a lock, exactly those, into an environment that has others; what else it has stays.

    The arguments are those of :func:`create_venv`. Files are copied: the environment may be written to.

    Raises:
        IntegrityError: a wheel is missing beside its lock, or its content is not what the lock says.
        StageError: uv failed; holds its last lines.
    """
    _, lock = _lock_in(lock_folder)
    _require_wheels(lock, lock_folder)
    wheels = [_shelve(lock_folder / wheel.filename, uv_cache, sha256=wheel.sha256) for wheel in lock.wheels]
    if not wheels:
        return
    command = [*_uv(uv_cache), "pip", "install", f"--python={_python(venv)}", *_link_mode(share=False)]
    command += ["--no-index", "--no-deps", "--no-progress", *map(str, wheels)]
    _run(command, environ, what="uv pip install", say=None)


def editable_command(venv: Path, project: Path, config: Mapping[str, str]) -> list[str]:
    """The command by which our pip makes an editable install in an environment, with what is there and nothing else.

    ``config`` are settings for the project's backend. The command prints what the backend prints.
    """
    settings = [f"--config-settings={name}={value}" for name, value in config.items()]
    alone = ["--no-index", "--no-deps", "--no-build-isolation", "-v"]
    return [*_pip(venv), *alone, *settings, f"--editable={project}"]


def installed(venv: Path) -> dict[str, str]:
    """The distributions in an environment: normalised name -> version, sorted."""
    folders = [str(folder) for folder in venv.glob("lib/python*/site-packages")]
    found = importlib.metadata.distributions(path=folders)
    return dict(sorted((canonicalize_name(dist.metadata["Name"]), dist.version) for dist in found))


def marker_environment(venv: Path) -> dict[str, str]:
    """What requirements' markers are evaluated against, for an environment's own Python (PEP 508).

    Raises:
        HostError: it does not run.
    """
    answers: dict[str, str] = json.loads(run([_python(venv), "-I", "-S", "-c", _MARKERS]))
    return answers


def _python(venv: Path) -> Path:
    return venv / "bin" / "python"


def _uv(cache: Path) -> list[str]:
    return [uv_program(), f"--cache-dir={cache}", "--no-config", "--offline", "--no-python-downloads"]


def _pip(venv: Path) -> list[str]:
    # Without -I a folder named pip where we are started would be taken for pip.
    pip = [sys.executable, "-I", "-m", "pip", f"--python={_python(venv)}", "--isolated", "--no-input"]
    quiet = ["--disable-pip-version-check", "--no-cache-dir", "--progress-bar=off", "--no-compile"]
    return [*pip, "install", *quiet, "--root-user-action=ignore"]


def _lock_in(folder: Path) -> tuple[Path, PyLock]:
    paths = sorted(folder.glob("pylock.*.toml"))
    if len(paths) != 1:
        raise IntegrityError(f"{folder} contains {len(paths)} pylock files, expected one")
    return paths[0], parse_lock(paths[0].read_text(encoding="utf-8"), file=str(paths[0]))


def _require_wheels(lock: PyLock, folder: Path) -> None:
    missing = [wheel.filename for wheel in lock.wheels if not (folder / wheel.filename).is_file()]
    if missing:
        raise IntegrityError(*(f"a locked wheel is missing from {folder}: {name}" for name in missing))


def _link_mode(*, share: bool) -> list[str]:
    return [f"--link-mode={'hardlink' if share else 'copy'}"]


def _shown(lock: PyLock, path: Path, *, scratch: Path, uv_cache: Path) -> Path:
    """A copy of a lock that shows its wheels at paths that stay. uv checks their digests."""
    wheels = {
        wheel.filename: str(_shelve(path.parent / wheel.filename, uv_cache, sha256=wheel.sha256))
        for wheel in lock.wheels
    }
    shown = scratch / path.name
    shown.write_text(_with_paths(path, wheels), encoding="utf-8")
    return shown


def _with_paths(path: Path, paths: Mapping[str, str]) -> str:
    """A lock's text with other paths in place of the bare file names."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    for package in data.get("packages", []):
        for wheel in package["wheels"]:
            wheel["path"] = paths[wheel["path"]]
    return tomli_w.dumps(data)


def wheel_shelf(cache: Path) -> Path:
    """Where wheels are shown to uv: beside its cache, since it removes from there what it does not know."""
    return cache.with_name(f"{cache.name}-wheels")


def _shelve(wheel: Path, cache: Path, *, sha256: str | None = None) -> Path:
    """A path of a wheel that stays the same wherever the wheel lies: beside uv's cache, under its digest.

    uv remembers by path what it has unpacked. Without this, each new folder of the same wheels would be unpacked anew.

    Raises:
        IntegrityError: the content has another digest than the one that was asked for.
    """
    if sha256 is not None and _same_file(known := wheel_shelf(cache) / sha256 / wheel.name, wheel):
        return known
    with wheel.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if sha256 is not None and actual != sha256:
        raise IntegrityError(f"hash mismatch: {wheel} has sha256 {actual}, but its lock expects {sha256}", hint=_VERIFY)
    shelved = wheel_shelf(cache) / actual / wheel.name
    if not _same_file(shelved, wheel):  # else what lies there may be damaged: the one that was just read is not
        shelved.parent.mkdir(parents=True, exist_ok=True)
        with part_folder(shelved) as folder:
            beside = folder / shelved.name
            try:
                os.link(wheel, beside)
            except OSError:
                shutil.copyfile(wheel, beside)
            beside.replace(shelved)
    return shelved


def _same_file(one: Path, other: Path) -> bool:
    return one.is_file() and one.samefile(other)


def forget_wheels(cache: Path, *, in_use: Callable[[str], bool]) -> None:
    """Drop wheels from uv's cache, packed and unpacked; environments that hold them stay as they are.

    Of what was installed from indexes nothing stays unpacked: each new index is another place to uv.

    Args:
        cache: uv's cache.
        in_use: Whether a wheel with this digest (SHA-256, hex) is still wanted.

    Raises:
        StageError: uv failed; holds its last lines.
    """
    gone = [folder for folder in wheel_shelf(cache).glob("*") if not in_use(folder.name)]
    names = {wheel.name.partition("-")[0] for folder in gone for wheel in folder.glob("*.whl")}
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)
    kept = {canonicalize_name(wheel.name.partition("-")[0]) for wheel in wheel_shelf(cache).glob("*/*.whl")}
    names |= {path.name for path in cache.glob("wheels-*/index/*/*") if canonicalize_name(path.name) not in kept}
    if not names:
        return
    _run([*_uv(cache), "cache", "clean", *sorted(names)], {}, what="uv cache clean", say=None)
    _run([*_uv(cache), "cache", "prune"], {}, what="uv cache prune", say=None)  # what no name leads to any more


def _run(command: Sequence[str], environ: Mapping[str, str], *, what: str, say: Say | None) -> None:
    """Run a client; its lines go to ``say``, the last of them into the error."""
    variables = {name: value for name, value in environ.items() if not name.startswith(_FOREIGN)}
    variables |= {"PIP_CONFIG_FILE": os.devnull, "NO_COLOR": "1", "PYTHONUTF8": "1"}
    last: deque[str] = deque(maxlen=_LAST_LINES)
    process = subprocess.Popen(
        command, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None  # noqa: S101 (asked for above)
    with process.stdout as output:
        for line in output:
            last.append(line.decode(errors="replace").rstrip())
            if say is not None:
                say(line)
    code = process.wait()
    if code == 0:
        return
    text = "\n    ".join(line for line in last if line.strip()) or "it printed nothing"
    outcome = f"{what} failed with exit code {code}:\n    {text}"
    lowered = text.lower()
    if "hash mismatch" in lowered or "do not match the hashes" in lowered:
        raise IntegrityError(outcome, hint=_VERIFY)
    raise StageError(outcome)
