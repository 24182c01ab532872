"""Running the programs of a stage: everything they print goes to the stage's log, and progress is read from it."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from axletree.core.errors import StageError
from axletree.core.secrets import looks_secret
from axletree.disk import give_room_back, set_aside
from axletree.execute.progress import compile_step, describe
from axletree.host.room import entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

_PROGRESS = re.compile(rb"^\[\s*(\d+)/(\d+)\]\s*(.*)")
# AUTHOR is nobody's secret, AUTHORIZATION is one.
_SHORTEST_SECRET = 6
_RECENT_LINES = 300
_TAIL_LINES = 6
_CHUNK = 1 << 16
_RESERVE = 1 << 18
"""Bytes of disk that are kept for what a log has yet to say: of a full disk, say."""
_LONGEST_LINE = 1 << 16
"""Bytes without an end of line that are kept back; more of them pass as a line of their own."""
_POLL_MILLISECONDS = 100
_LOGIN = re.compile(r"://([^/\s:@]*+)(:?+)([^/\s@]*+)@")
_URL_LOGIN = re.compile(rb"(://)[^/\s@]+@")


def secrets_of(environ: Mapping[str, str], addresses: Iterable[str] = ()) -> tuple[bytes, ...]:
    """Values of an environment, and logins of addresses, that must not be shown, longest first."""
    found = {line.strip() for name, value in environ.items() if looks_secret(name) for line in value.splitlines()}
    for value in (*environ.values(), *addresses):
        for name, colon, password in _LOGIN.findall(value):
            found |= {password, unquote(password)} if colon else {name}
    values = {value for value in found if len(value) >= _SHORTEST_SECRET}
    return tuple(value.encode() for value in sorted(values, key=len, reverse=True))


def redact(data: bytes, secrets: Iterable[bytes]) -> bytes:
    """Data with ``***`` in the place of secrets, and of the user and password in any address."""
    for secret in secrets:
        data = data.replace(secret, b"***")
    return _URL_LOGIN.sub(rb"\1***@", data)


class Log:
    """A stage's log file. What looks like a secret is written as ``***``."""

    def __init__(
        self, stream: BinaryIO, *, secrets: Iterable[bytes] = (), rewrite: Callable[[bytes], bytes] = bytes
    ) -> None:
        """Write to a stream without a buffer; ``rewrite`` gives each line the paths that its readers know."""
        self._stream = stream
        self._secrets = tuple(secrets)
        self._rewrite = rewrite
        self._recent: deque[str] = deque(maxlen=_RECENT_LINES)
        self._printed: deque[str] = deque(maxlen=_TAIL_LINES)
        self._left = 0
        """Bytes that may be written before more room is set aside."""
        self._keep_room()

    def close(self) -> None:
        """Give the room back that was kept for more lines."""
        with suppress(OSError):
            give_room_back(self._stream.fileno())

    def _keep_room(self) -> None:
        self._left = _RESERVE // 2
        with suppress(OSError):  # a stream without a file needs no room
            set_aside(self._stream.fileno(), _RESERVE)

    def redact(self, text: str) -> str:
        """A text that may leave the stage: in an event, say."""
        return redact(text.encode(errors="surrogateescape"), self._secrets).decode(errors="replace")

    def write(self, line: bytes) -> None:
        """Write one line that a program printed, redacted."""
        text = self._put(line)
        if text:
            self._printed.append(text)

    def say(self, text: str) -> None:
        """Write a line of our own."""
        self._put(f"{text}\n".encode())

    def _put(self, line: bytes) -> str:
        line = self._rewrite(redact(line, self._secrets))
        if self._left < len(line):
            self._keep_room()
        self._left -= len(line)
        rest = line
        while rest:  # a stream without a buffer may take a part
            rest = rest[self._stream.write(rest) :]
        self._stream.flush()
        text = line.decode(errors="replace").rstrip()
        self._recent.append(text)
        return text

    def tail(self) -> tuple[str, ...]:
        """The last few lines that programs printed."""
        return tuple(self._printed)

    def last_match(self, pattern: re.Pattern[str]) -> str | None:
        """First group of the latest of the last few hundred lines that match, or ``None``."""
        matches = (pattern.search(line) for line in reversed(self._recent))
        return next((match[1] for match in matches if match is not None), None)


def run_program(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Log,
    progress: Callable[..., None],
    quiet: bool = False,
    watch: Callable[[str], None] | None = None,
) -> int:
    """Run a program with its output in the log, and return its exit code (negative: the signal that ended it).

    Lines such as ninja's ``[12/40] Building ...`` are passed on as progress. Commands of compilers, as setuptools and
    make print them, are counted, without a total: nobody says how many there will be. Only the program itself is waited
    for: what it left in the background may hold its output open for ever.

    Args:
        argv: The program and its arguments.
        cwd: Folder that it starts in.
        env: All its variables.
        log: Where its output goes.
        progress: Gets the steps that it prints.
        quiet: Whether the command itself stays out of the log.
        watch: Gets each other line as text; if it raises, the program is ended.

    Raises:
        StageError: the program cannot be started.
    """
    if not quiet:
        log.say(f"$ {' '.join(argv)}")
    enter = entrance(cwd)
    try:
        process = subprocess.Popen(
            list(argv),
            cwd=None if enter is not None else cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=enter,  # noqa: PLW1509 (two system calls, which need no lock that another thread may hold)
        )
    except OSError as error:
        raise StageError(f"cannot run {argv[0]}: {error.strerror}") from error
    assert process.stdout is not None  # noqa: S101 (asked for above)
    objects = 0
    with process.stdout as output, _ended_on_error(process):
        for line in _lines(_output(process, output.fileno())):
            log.write(line)
            match = _PROGRESS.match(line)
            if match is not None:
                message = describe(match[3].decode(errors="replace").strip())
                progress(message, done=int(match[1]), total=int(match[2]))
                continue
            if b" -c " in line and (step := compile_step(line.decode(errors="replace"))) is not None:
                objects += 1
                progress(step, done=objects)
            if watch is not None:
                watch(line.decode(errors="replace").rstrip())
    return process.wait()


@contextmanager
def _ended_on_error(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """End a program whose output is read no longer, with what it started."""
    try:
        yield
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _output(process: subprocess.Popen[bytes], pipe: int) -> Iterator[bytes]:
    """What a program prints, until the last writer closes the pipe or the program itself has ended."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    while process.poll() is None:
        if poll.poll(_POLL_MILLISECONDS):
            data = os.read(pipe, _CHUNK)
            if not data:
                return
            yield data
    # It may have left somebody who goes on printing: only what is in the pipe by now is its own for certain.
    (left,) = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, struct.pack("i", 0)))
    while left > 0 and (data := os.read(pipe, min(left, _CHUNK))):
        left -= len(data)
        yield data


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their ends. One that is too long is cut behind its last space, so that no word is torn apart."""
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        yield from (line + b"\n" for line in lines)
        while len(rest) > _LONGEST_LINE:
            cut = rest.rfind(b" ", 0, _LONGEST_LINE) + 1 or _LONGEST_LINE
            yield rest[:cut]
            rest = rest[cut:]
    if rest:
        yield rest


def check_program(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    log: Log,
    progress: Callable[..., None],
    what: str,
    watch: Callable[[str], None] | None = None,
) -> None:
    """Run a program that must succeed; ``watch`` gets each line that it prints.

    Raises:
        StageError: it cannot be started or does not end with 0; ``what`` says what failed.
    """
    code = run_program(argv, cwd=cwd, env=env, log=log, progress=progress, watch=watch)
    number = -code if code < 0 else code - 128  # a shell says 128 + n of what it ran
    if number == signal.SIGKILL:
        hint = "the system most likely ran out of memory; set `resources.memory-per-job` to run fewer jobs at once"
        raise StageError(f"{what} was killed (SIGKILL)", hint=hint)
    if code < 0:
        raise StageError(f"{what} was terminated by {signal.Signals(number).name}")
    if code != 0:
        raise StageError(f"{what} failed with exit code {code}")
