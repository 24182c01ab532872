"""Compiles the Python sources of a conda package with the Python that it is for."""

from __future__ import annotations

import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, cast

import msgspec

from axletree.core.errors import HostError
from axletree.host.interpreters import matches
from axletree.package.conda.model import CondaFile
from axletree.package.conda.pyc import cache_path, cache_tag, plan_pyc, unfit_source
from axletree.package.conda.writer import content_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from axletree.core.records import Interpreter

_ANSWER = struct.Struct("<BI")
_WORKER = """
import importlib.util, marshal, os, struct, sys
def compiled(path, source):
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except Exception as error:
        return 1, ("%s: %s" % (type(error).__name__, error)).encode("utf-8", "replace")
    head = importlib.util.MAGIC_NUMBER + struct.pack("<I", 3) + importlib.util.source_hash(source)
    return 0, head + marshal.dumps(code)
def answer(status, data):
    rest = struct.pack("<BI", status, len(data)) + data
    while rest:
        rest = rest[os.write(1, rest):]
while True:
    head = sys.stdin.buffer.read(8)
    if len(head) < 8:
        break
    name, size = struct.unpack("<II", head)
    path, source = sys.stdin.buffer.read(name).decode(), sys.stdin.buffer.read(size)
    child = os.fork()
    if not child:
        answer(*compiled(path, source))
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        answer(1, b"Python died while it compiled this")
"""
# Each file is compiled in a fork of its own. What marshal writes depends on which strings the process has seen before,
# so one process for many files would give other bytes for another order or number of workers.


class Compiled(msgspec.Struct, frozen=True, kw_only=True):
    """What compiling gave."""

    files: tuple[CondaFile, ...]
    """The compiled files, to go into the package beside their sources."""
    skipped: tuple[tuple[str, str], ...]
    """(path, why) of sources that were not compiled: some templates and tests are no valid Python."""


def compile_pyc(
    files: Iterable[CondaFile],
    interpreter: Interpreter,
    *,
    python: str,
    placeholder: str | None = None,
    environ: Mapping[str, str],
    threads: int = 1,
) -> Compiled:
    """Compile the sources of a package; see :mod:`axletree.package.conda.pyc` for what kind of files and why.

    Args:
        files: all files of the package.
        interpreter: see :func:`axletree.host.interpreters.find_interpreter`.
        python: ``3.11`` or ``3.13t``: which Python the package is for.
        placeholder: sources that hold it are left out.
        environ: what the interpreter is started with; variables that change what it does are left out.
        threads: how many are compiled at once. No part of the result.

    Raises:
        HostError: the interpreter is none of that version, or does not do its work.
        IntegrityError: the content of a source is damaged.
    """
    if not matches(interpreter, python):
        raise HostError(
            f"{interpreter.path} is Python {interpreter.version}; compiling files for {python} requires that version"
        )
    sources = plan_pyc(files, python=python)
    environ = {name: value for name, value in environ.items() if not name.startswith("PYTHON")} | {
        "PYTHONHASHSEED": "0"
    }
    shares = [sources[start::threads] for start in range(max(1, threads))]
    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        answers = pool.map(lambda share: tuple(_compile(share, interpreter, placeholder, environ)), shares)
        found = sorted(answer for answers_of_one in answers for answer in answers_of_one)
    tag = cache_tag(python)
    return Compiled(
        files=tuple(CondaFile(path=cache_path(path, tag), data=data) for path, ok, data in found if ok),
        skipped=tuple((path, data.decode(errors="replace")) for path, ok, data in found if not ok),
    )


def _compile(
    sources: Sequence[CondaFile], interpreter: Interpreter, placeholder: str | None, environ: Mapping[str, str]
) -> Iterator[tuple[str, bool, bytes]]:
    """(path, whether it is compiled, the compiled file or why not), by one process."""
    if not sources:
        return
    command = [interpreter.path, "-s", "-S", "-W", "ignore", "-c", _WORKER]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=dict(environ),
        )
    except OSError as error:
        raise HostError(f"{interpreter.path} cannot be started: {error.strerror}") from error
    with process:
        sink, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        for file in sources:
            source = b"".join(content_chunks(file))
            if (why := unfit_source(source, placeholder)) is not None:
                yield file.path, False, why.encode()
                continue
            path = file.path.encode()
            try:
                sink.write(struct.pack("<II", len(path), len(source)) + path + source)
                sink.flush()
                status, size = _ANSWER.unpack(answers.read(_ANSWER.size))
            except (BrokenPipeError, struct.error) as error:
                raise HostError(f"{interpreter.path} exited while compiling {file.path}") from error
            yield file.path, status == 0, answers.read(size)
        sink.close()
