"""Finds a CPython by version and tells what it is: the running one, those on PATH, pyenv's, uv's.

Each candidate is run once and its answer kept in a cache file, since a program's facts change only with its file. A
candidate that does not start (a pyenv shim of a version that is not active, another architecture) is passed over.
Scripts such as shims are tried late and never remembered: what they start changes while their file does not.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError, UsageError
from axletree.core.records import Interpreter
from axletree.host.files import read_json, replace_file
from axletree.host.indexes import uv_program
from axletree.host.run import output_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a program said when it was run."""

    mtime: int
    size: int
    facts: Interpreter


_REQUEST = re.compile(r"^(\d+)\.(\d+)(?:\.(\d+))?(t?)$")
_PROBE_SECONDS = 20
_PROBE = """
import hashlib, json, os, sys, sysconfig
def build():
    names = "CC CXX CFLAGS CCSHARED LDSHARED LDCXXSHARED EXT_SUFFIX".split()
    text = json.dumps([str(sysconfig.get_config_var(name) or "") for name in names])
    for prefix in {sys.base_prefix, os.path.realpath(sys.base_prefix)} - {"/usr", "/"}:
        text = text.replace(prefix, "/python")
    return hashlib.sha256(text.encode()).hexdigest()
def libc():
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (AttributeError, ValueError, OSError):
        return ""
print(json.dumps({
    "path": os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable),
    "version": "%d.%d.%d" % sys.version_info[:3],
    "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "abiflags": getattr(sys, "abiflags", ""),
    "soabi": sysconfig.get_config_var("SOABI") or "",
    "platform": sysconfig.get_platform(),
    "machine": os.uname().machine,
    "libc": libc(),
    "build": build(),
}))
"""


def find_interpreter(version: str, *, environ: Mapping[str, str], cache: Path | None = None) -> Interpreter:
    """The first CPython of a version: ``3.11``, ``3.11.7``, or ``3.13t`` for the free-threaded build.

    As :func:`find_interpreters`, for one.
    """
    return find_interpreters([version], environ=environ, cache=cache)[version]


def find_interpreters(
    versions: Iterable[str], *, environ: Mapping[str, str], cache: Path | None = None
) -> dict[str, Interpreter]:
    """The first CPython of each version.

    Args:
        versions: what is asked for.
        environ: ``PATH``, ``HOME``, ``PYENV_ROOT`` and uv's variables count.
        cache: file where answers of candidates are kept between calls.

    Raises:
        UsageError: a version is not one that can be asked for.
        HostError: there is none of some; says where was looked, lists what was found, and says how to get them.
    """
    found, error = look_for_interpreters(versions, environ=environ, cache=cache)
    if error is not None:
        raise error
    return found


def look_for_interpreters(
    versions: Iterable[str], *, environ: Mapping[str, str], cache: Path | None = None
) -> tuple[dict[str, Interpreter], HostError | None]:
    """As :func:`find_interpreters`, but those that are missing leave what was found, beside the error about them."""
    asked = list(dict.fromkeys(versions))
    for version in asked:
        if _REQUEST.match(version) is None:
            raise UsageError(
                f"this is not a valid Python version: {version!r}",
                hint="use a version such as 3.11, or 3.13t for the free-threaded build",
            )
    answers = (read_json(cache, dict[str, _Answer]) if cache is not None else None) or {}
    known = dict(answers)
    found: dict[str, Interpreter] = {}
    seen: list[Interpreter] = []
    try:
        for version in asked:
            for candidate in _candidates(version, environ):
                facts = _facts(candidate, answers, environ)
                if facts is not None and matches(facts, version):
                    found[version] = facts
                    break
                seen += [facts] if facts is not None else []
        missing = [version for version in asked if version not in found]
        if missing:
            # Only for the message: everything else that there is.
            others = (_facts(path, answers, environ) for path in _pyenv(environ, wanted=None))
            seen += [*found.values(), *(facts for facts in others if facts is not None)]
            return found, _missing(missing, seen, environ)
    finally:
        if cache is not None and answers != known:
            replace_file(cache, msgspec.json.encode(answers))
    return found, None


def _missing(versions: list[str], seen: Iterable[Interpreter], environ: Mapping[str, str]) -> HostError:
    names = ", ".join(versions)
    folder = _pyenv_folder(environ)
    message = f"CPython {names} is not on PATH, in {folder} or among uv's interpreters; found:"
    each = sorted({(_numbers(facts), f"{_label(facts)} at {facts.path}") for facts in seen})
    lines = [line for _, line in each]
    hint = " or ".join(f"`{tool} install {' '.join(versions)}`" for tool in ("uv python", "pyenv"))
    text = "\n    ".join([message, *lines]) if lines else message.removesuffix("; found:")
    return HostError(text, hint=f"run {hint}")


def stand_in(version: str) -> Interpreter:
    """What a plan takes for a Python that is missing: it runs nothing, and its identity is that of no other."""
    return Interpreter(
        path="",
        version=version,
        implementation="cpython",
        free_threaded=version.endswith("t"),
        abiflags="",
        soabi="",
        platform=sysconfig.get_platform(),
        machine="",
        libc="",
        build="",
    )


def matches(interpreter: Interpreter, version: str) -> bool:
    """Whether an interpreter is the CPython that a version asks for."""
    asked = _REQUEST.match(version)
    if asked is None or interpreter.implementation != "cpython":
        return False
    parts = interpreter.version.split(".")
    same = parts[:2] == [asked[1], asked[2]] and asked[3] in {None, parts[2]}
    return same and interpreter.free_threaded == bool(asked[4])


def identity(interpreter: Interpreter) -> dict[str, str]:
    """What of an interpreter can change the result of a build, fit for a key: no path."""
    return {
        "version": interpreter.version,
        "implementation": interpreter.implementation,
        "soabi": interpreter.soabi,
        "platform": interpreter.platform,
        "build": interpreter.build,
    }


def probe(path: Path, *, environ: Mapping[str, str]) -> Interpreter | None:
    """Run an interpreter once and ask what it is; ``None`` where it does not start or does not answer."""
    said = output_of([path, "-I", "-S", "-c", _PROBE], environ=environ, seconds=_PROBE_SECONDS)
    try:
        return msgspec.json.decode(said, type=Interpreter)
    except (msgspec.MsgspecError, UnicodeError):
        return None


def _candidates(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    """Programs that may be the one, the likeliest first; each once."""
    seen: set[Path] = set()
    for source in (_running, _on_path, _pyenv_of, _shims, _uv_managed):
        for path in source(version, environ):
            real = path.resolve()
            if real not in seen and os.access(path, os.X_OK):
                seen.add(real)
                yield path


def _running(_version: str, _environ: Mapping[str, str]) -> Iterator[Path]:
    yield Path(sys.executable)


def _on_path(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    yield from (path for path in _named_on_path(version, environ) if not _is_script(path))


def _shims(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    yield from (path for path in _named_on_path(version, environ) if _is_script(path))


def _named_on_path(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    asked = _REQUEST.match(version)
    minor = f"{asked[1]}.{asked[2]}" if asked else version
    names = ([f"python{minor}t"] if version.endswith("t") else []) + [f"python{minor}", "python3", "python"]
    folders = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    for name in names:
        yield from (folder / name for folder in folders if (folder / name).is_file())


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(2) == b"#!"
    except OSError:
        return False


def _pyenv_of(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    yield from _pyenv(environ, wanted=version)


def _pyenv(environ: Mapping[str, str], *, wanted: str | None) -> Iterator[Path]:
    """The interpreters of pyenv, the newest first; only those whose folder's name fits ``wanted``."""
    root = _pyenv_folder(environ)
    if not root.is_dir():
        return
    asked = _REQUEST.match(wanted) if wanted else None
    named = [(match, path) for path in root.iterdir() if (match := _REQUEST.match(path.name))]
    for match, path in sorted(named, key=lambda pair: [int(part or 0) for part in pair[0].groups()[:3]], reverse=True):
        if asked is None or (match[1], match[2], match[4]) == (asked[1], asked[2], asked[4]):
            yield path / "bin" / "python"


def _pyenv_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/")) / ".pyenv") / "versions"


def _uv_managed(version: str, environ: Mapping[str, str]) -> Iterator[Path]:
    command = [uv_program(), "python", "find", "--managed-python", "--no-python-downloads", "--no-project", version]
    if found := output_of(command, environ=environ, seconds=_PROBE_SECONDS).strip():
        yield Path(found)


def _facts(path: Path, answers: dict[str, _Answer], environ: Mapping[str, str]) -> Interpreter | None:
    """What a candidate is, from the cache where the file behind it has not changed."""
    try:
        real = path.resolve(strict=True)
        status = real.stat()
    except OSError:
        return None
    known = answers.get(str(real))
    if known is not None and (known.mtime, known.size) == (status.st_mtime_ns, status.st_size):
        return known.facts
    facts = probe(path, environ=environ)
    if facts is not None and facts.path == str(real):
        answers[str(real)] = _Answer(mtime=status.st_mtime_ns, size=status.st_size, facts=facts)
    return facts


def _numbers(facts: Interpreter) -> tuple[str, tuple[int, ...]]:
    """What Pythons are sorted by."""
    return facts.implementation, tuple(map(int, re.findall(r"\d+", facts.version)))


def _label(facts: Interpreter) -> str:
    name = "" if facts.implementation == "cpython" else f"{facts.implementation} "
    return f"{name}{facts.version}{' free-threaded' if facts.free_threaded else ''}"
