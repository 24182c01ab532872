"""Where stages run. An executor places a stage, passes on its events and ends it; it knows nothing of plans."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from axletree.core.errors import StageError
from axletree.core.events import Event, MemorySampled, StageFinished, StageProgress
from axletree.core.records import Metrics
from axletree.execute.process import redact, secrets_of
from axletree.report.envelope import is_report

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

    from axletree.core.records import StageRequest
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store

_GRACE_SECONDS = 1.0
_LINE_LIMIT = 1 << 24
_NOISE_LINES = 20
_NOISE_WIDTH = 300
_OF_ENGINES = range(125, 128)
"""Exit codes that podman and docker have for failures of their own."""
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_AnyEvent = TypeVar("_AnyEvent", bound=Event)


class Executor(Protocol):
    """Runs one stage at a time each call; calls may overlap."""

    async def run(self, request: StageRequest, emit: Callable[[Event], None]) -> StageFinished:
        """Run a stage to its end. Cancelling the call ends the stage's whole process tree first."""


class LocalExecutor:
    """Runs each stage as a child ``axletree run-stage`` of this machine."""

    def __init__(self, store: Store, environ: Mapping[str, str], settings: Settings) -> None:
        """Use ``store`` for requests and results; ``environ`` and ``settings`` are for the stage's own process."""
        self._store = store
        self._environ = {**environ, "AXLETREE_PARENT": str(os.getpid())}
        self._settings = msgspec.structs.replace(settings, store=str(store.root))

    async def run(self, request: StageRequest, emit: Callable[[Event], None]) -> StageFinished:
        """Run a stage to its end; see :class:`Executor`."""
        self._store.put_request(request)
        command = (sys.executable, "-P", "-m", "axletree", *run_stage_words(request))
        return await follow_stage(command, request, emit, environ=self._environ, settings=self._settings)


def run_stage_words(request: StageRequest) -> tuple[str, ...]:
    """Arguments of ``axletree`` for :func:`follow_stage`."""
    return ("run-stage", "--json", "--settings-from-stdin", request.key)


async def follow_stage(
    command: Sequence[str],
    request: StageRequest,
    emit: Callable[[Event], None],
    *,
    environ: Mapping[str, str],
    settings: Settings,
    engine: str | None = None,
    end: Callable[[Process], Awaitable[None]] | None = None,
) -> StageFinished:
    """Run a command that runs a stage, and pass on what it says.

    Args:
        command: Program and arguments.
        request: What the stage is.
        emit: Gets its events but the last.
        environ: All variables of the command.
        settings: Those of the stage.
        engine: What the command starts a container with, if it does.
        end: Ends the process if it still runs; is called in any case.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ,
        start_new_session=True,
        limit=_LINE_LIMIT,
    )
    try:
        await _hand_over(process, settings)
        secrets = secrets_of(environ, settings.addresses)
        return await _follow(process, request, emit, secrets=secrets, engine=engine)
    finally:
        await (end or end_process)(process)


async def _hand_over(process: Process, settings: Settings) -> None:
    """Tell the settings, which may hold credentials: everybody on the machine may read arguments."""
    assert process.stdin is not None  # noqa: S101 (asked for above)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it ended, and its output says why
        process.stdin.write(msgspec.json.encode(settings))
        await process.stdin.drain()
    process.stdin.close()


async def _follow(
    process: Process,
    request: StageRequest,
    emit: Callable[[Event], None],
    *,
    secrets: Iterable[bytes],
    engine: str | None,
) -> StageFinished:
    assert process.stdout is not None  # noqa: S101 (asked for above)
    assert process.stderr is not None  # noqa: S101
    complaints = asyncio.ensure_future(process.stderr.read())
    noise: deque[bytes] = deque(maxlen=_NOISE_LINES)
    finished: StageFinished | None = None
    began, peak = time.monotonic(), 0
    async for line in _lines(process.stdout):
        event = _event(line)
        if event is None and is_report(line):
            continue  # it says no more than the events and the exit code
        if event is None:
            noise.append(line[:_NOISE_WIDTH].rstrip() + b"\n")
        elif isinstance(event, StageFinished):
            finished = _named(event, request)
        else:
            peak = max(peak, event.memory) if isinstance(event, MemorySampled) else peak
            emit(_named(event, request))
    code = await process.wait()
    said = redact(b"".join(noise) + await complaints, secrets).decode(errors="replace").strip()
    if finished is not None:
        return finished
    metrics = Metrics(wall=time.monotonic() - began, peak_memory=peak, jobs=request.grant.jobs)
    return _vanished(request, code, said, metrics, engine=engine)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Lines of a stream; one without end is cut out."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            line = b"(a line of more than %d bytes)" % _LINE_LIMIT
        if not line:
            return
        yield line


def _event(line: bytes) -> Event | None:
    """What a line says; ``None`` where something else got onto the stage's output."""
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _named(event: _AnyEvent, request: StageRequest) -> _AnyEvent:
    """An event under the name that we know the stage by: two stages with one key share a request, the last one's."""
    if isinstance(event, StageProgress | MemorySampled | StageFinished):
        return msgspec.structs.replace(event, stage=request.stage)
    return event


def _vanished(request: StageRequest, code: int, said: str, metrics: Metrics, *, engine: str | None) -> StageFinished:
    """What to say of a stage whose process ended without a word: killed, most likely for its memory."""
    killed = (-code if code < 0 else code - 128) == signal.SIGKILL
    if killed:
        message = "the stage was killed by another process; the system most likely ran out of memory"
    elif engine is not None and code in _OF_ENGINES:
        message = f"{engine} could not run the stage (exit code {code})"
    else:
        message = f"the stage's process exited with code {code} without a result"
    return StageFinished(
        time=time.time(),
        stage=request.stage,
        status="failed",
        key=request.key,
        metrics=metrics,
        message=message,
        cause=tuple(said.splitlines()[-6:]),
        exit_code=StageError.exit_code,
        killed=killed,
    )


async def end_process(process: Process) -> None:
    """End a stage's process if it still runs: SIGTERM ends its kill domain at once, SIGKILL is the net below."""
    if process.returncode is not None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(process.wait()), _GRACE_SECONDS)
            return
