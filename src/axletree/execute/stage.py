"""One stage, from its request to its record in the store. Runs in the stage's own process and kill domain."""

from __future__ import annotations

import errno
import os
import re
import resource
import shutil
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import psutil

from axletree.check.rules.image_proof import proof_findings
from axletree.core.errors import AxletreeError, ExpectationError, StageError, StoreError
from axletree.core.events import MemorySampled, StageFinished, StageProgress
from axletree.core.findings import Finding
from axletree.core.records import Metrics, StageRecord
from axletree.core.setting import LOCK, placed
from axletree.core.units import format_bytes
from axletree.core.values import Key
from axletree.disk import FULL, give_room_back, has_room_behind, remove_tree
from axletree.execute.context import ActionContext, ActionFunction, Outcome
from axletree.execute.process import Log, secrets_of
from axletree.host.room import outside, outside_json
from axletree.store.blobs import CorruptBlob, lost_blobs
from axletree.store.errors import mount_point
from axletree.store.layout import STORE_VARIABLE
from axletree.store.walk import each_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from axletree.core.events import Event, ProgressUnit
    from axletree.core.records import CacheCounts, StageRequest
    from axletree.core.setting import StageSetting
    from axletree.core.values import Digest
    from axletree.execute.diagnosing import Failure
    from axletree.plan.actions.spec import ActionSpec
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store

_FINDINGS: msgspec.json.Decoder[tuple[Finding, ...]] = msgspec.json.Decoder(tuple[Finding, ...])
_SAMPLE_SECONDS = 0.25
_LITTLE_ROOM = 256 << 20
_NO_ROOM = 64 << 10
_BLOCK = 512
"""Bytes of what ``st_blocks`` counts."""
_LONGEST_MESSAGE = 1000
"""Characters of a step that are passed on: some link commands have thousands. The log has them all."""
_KILLED = re.compile(
    r"Killed signal terminated program|terminated with signal 9|internal compiler error: Killed"
    r"|unable to execute command: Killed|line \d+: +\d+ Killed\b|was killed \(SIGKILL\)"
)
"""What compilers, linkers, the shell and we ourselves say of a program that was killed."""


def work_folder(store: Store, key: Key) -> Path:
    """Where a stage works. One path for each key, so that paths in compiler output do not vary between attempts."""
    return store.work / key[:24]


def stage_lock(key: Key) -> str:
    """Name of the lock that whoever runs a stage holds."""
    return f"stage-{key}"


def log_file(store: Store, key: Key) -> Path:
    """The log of a stage's latest attempt."""
    return store.logs / f"{key[:24]}.log"


def trim_logs(store: Store) -> int:
    """Give the room back that killed stages kept behind their logs; how many had any. Those of running stages stay."""
    kept = {path for path in store.logs.glob("*.log") if has_room_behind(path)}
    keys = [key for path in store.requests.rglob("*.json") if log_file(store, key := Key(path.stem)) in kept]
    free = [key for key in keys if not store.is_locked(stage_lock(key))] if kept else []
    for key in free:
        with store.lock(stage_lock(key)), suppress(OSError), log_file(store, key).open("r+b") as stream:
            give_room_back(stream.fileno())
    return len(free)


def run_stage(
    store: Store,
    request: StageRequest,
    spec: ActionSpec,
    action: ActionFunction,
    *,
    isolation: Mapping[str, bool],
    emit: Callable[[Event], None],
    settings: Settings,
    environ: Mapping[str, str],
) -> bool:
    """Run a stage and publish its record; tell the outcome with a :class:`StageFinished` event.

    Two processes that want the same key take turns: the second finds the record of the first.

    Returns:
        Whether the stage is done.
    """
    with store.lock(stage_lock(request.key)):
        present = store.get_record(request.key, spec.facts)
        if present is not None:
            emit(_finished(request, present, log_path=None))
            return True
        log_path = log_file(store, request.key)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        with log_path.open("wb", buffering=0) as stream:  # nothing refused by a full disk is left for the end
            log = Log(stream, secrets=secrets_of(environ, settings.addresses), rewrite=outside)
            run = partial(_attempt, store, request, spec, action, isolation=dict(isolation))
            try:
                return run(log=log, log_path=log_path, emit=emit, settings=settings, environ=environ)
            finally:
                log.close()


def _attempt(
    store: Store,
    request: StageRequest,
    spec: ActionSpec,
    action: ActionFunction,
    *,
    isolation: dict[str, bool],
    log: Log,
    log_path: Path,
    emit: Callable[[Event], None],
    settings: Settings,
    environ: Mapping[str, str],
) -> bool:
    work = work_folder(store, request.key)
    started, peak = time.monotonic(), [0]

    def progress(
        message: str, *, done: int | None = None, total: int | None = None, unit: ProgressUnit = "steps"
    ) -> None:
        words = log.redact(message)[:_LONGEST_MESSAGE]
        emit(StageProgress(time=time.time(), stage=request.stage, message=words, done=done, total=total, unit=unit))

    try:
        remove_tree(work)  # what an interrupted attempt left
        work.mkdir(parents=True)
        context = ActionContext(
            request=request,
            parameters=msgspec.convert(request.ingredients.parameters, spec.parameters),
            store=store,
            work=work,
            log=log,
            progress=progress,
            environ=dict(environ),
            settings=settings,
        )
        with _sampled_memory(request, emit, peak):
            outcome = action(context)
        facts = _facts(request, spec, outcome)
        found = (*outcome.findings, *context.notes.findings, *_doubts(request))
        findings = _FINDINGS.decode(outside_json(msgspec.json.encode(found)))
        outcome = msgspec.structs.replace(outcome, findings=findings)
        metrics = _metrics(request, started=started, peak=peak[0])
        cache = context.notes.cache_use
        record = _record(request, outcome, facts, isolation=isolation, cache=cache, metrics=metrics)
        record = store.put_record(record, spec.facts)
    except Exception as error:  # noqa: BLE001 (whatever an action does, the run must end with a clear result)
        said = _said(log_path, log, error, _setting(request, isolation))  # before our own words are in the log
        failure = _named(_damage(store, request) or _explained(store, error, said, work), request)
        with suppress(OSError):  # a full disk takes no more lines
            if isinstance(failure, AxletreeError):
                log.say(f"error: {failure}")
            else:
                log.write(traceback.format_exc().encode())
        failed = _failure(request, failure, said=said, log_path=log_path, redact=log.redact)
        emit(msgspec.structs.replace(failed, metrics=_metrics(request, started=started, peak=peak[0])))
        return False
    with suppress(OSError):
        remove_tree(work)
    emit(_finished(request, record, log_path=log_path))
    return True


def _doubts(request: StageRequest) -> tuple[Finding, ...]:
    """What is to be said with the result wherever it is used, if its image was not proved."""
    return proof_findings(request.local.image or "", request.local.unproved)


def _facts(request: StageRequest, spec: ActionSpec, outcome: Outcome) -> dict[str, Any]:
    """The facts as a record has them. Ones that nobody could read again would be a result that is never found."""
    facts: dict[str, Any] = msgspec.to_builtins(outcome.facts)
    try:
        msgspec.convert(facts, spec.facts)
    except msgspec.ValidationError as error:
        raise StageError(f"action {request.action!r} did not return a valid {spec.facts.__name__}: {error}") from error
    return facts


def _record(
    request: StageRequest,
    outcome: Outcome,
    facts: dict[str, Any],
    *,
    isolation: dict[str, bool],
    cache: CacheCounts | None,
    metrics: Metrics,
) -> StageRecord:
    return StageRecord(
        stage=request.stage,
        key=request.key,
        tree=outcome.tree,
        ingredients=request.ingredients,
        findings=outcome.findings,
        facts=facts,
        isolation=isolation,
        unproved=request.local.unproved,
        compiler_cache=cache,
        metrics=metrics,
        finished_at=time.time(),
    )


def _metrics(request: StageRequest, *, started: float, peak: int) -> Metrics:
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Metrics(
        wall=time.monotonic() - started,
        cpu=own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        peak_memory=peak,
        peak_process=children.ru_maxrss * 1024,
        jobs=request.grant.jobs,
    )


def _finished(request: StageRequest, record: StageRecord, *, log_path: Path | None) -> StageFinished:
    return StageFinished(
        time=time.time(),
        stage=request.stage,
        status="done" if log_path is not None else "cached",
        key=request.key,
        tree=record.tree,
        metrics=record.metrics,
        findings=placed(record.findings, request.local.setting),
        log=str(log_path) if log_path is not None else None,
    )


def _setting(request: StageRequest, isolation: Mapping[str, bool]) -> StageSetting | None:
    """The recipe around a stage, for what is said of its failure."""
    setting = request.local.setting
    return setting and msgspec.structs.replace(setting, network=not isolation.get("network", False))


def _said(log_path: Path, log: Log, error: Exception, setting: StageSetting | None) -> Failure:
    """What the log says of a failure; where nothing in it looks like a cause, the last lines that a program printed."""
    from axletree.execute.diagnosing import Failure, read_failure  # noqa: PLC0415 (only for failures: start-up time)

    if isinstance(error, ExpectationError):
        return Failure()
    said = read_failure(log_path, setting)
    if said.cause or not isinstance(error, StageError):
        return said
    tail = tuple(line for line in log.tail() if line.strip() not in str(error))
    return msgspec.structs.replace(said, cause=tail)


def _damage(store: Store, request: StageRequest) -> CorruptBlob | None:
    """Content of the inputs that is damaged: some actions read it where it lies, and then fail of something else.

    Reads all inputs, but only of a stage that failed anyway.
    """
    lost: list[Digest] = []
    for digest in dict.fromkeys(request.inputs.values()):
        try:
            blobs = [entry.blob for entry in store.get_tree(digest).entries]
        except CorruptBlob as error:
            lost += error.digests
        else:
            lost += [blob for blob in dict.fromkeys(blobs) if blob is not None and not store.blob_ok(blob)]
    return lost_blobs(store, lost) if lost else None


def _named(error: Exception, request: StageRequest) -> Exception:
    """The error, with the command that locks the recipe of this run where its hints have a general one."""
    setting = request.local.setting
    if isinstance(error, AxletreeError) and setting is not None and setting.lock:
        error.name_command(LOCK, setting.lock)
    return error


def _explained(store: Store, error: Exception, said: Failure, work: Path) -> Exception:
    """The error itself, or that the disk is full where this is what is behind it, be it in a program's words."""
    full = isinstance(error, OSError) and error.errno in FULL
    told = any(os.strerror(errno.ENOSPC) in line for line in said.cause)
    told = told or any(finding.rule == "env/disk-full" for finding in said.findings)
    if not full and isinstance(error, StageError) and not error.findings:
        full = _is_full(store.root, told=told)
    if not full:
        return error
    free = format_bytes(shutil.disk_usage(store.root).free)
    taken = sum(status.st_blocks * _BLOCK for _, status in each_file(work))
    own = f"; this stage's folder takes {format_bytes(taken)}" if taken else ""
    hint = f"set {STORE_VARIABLE} to a folder on a larger disk, or run `axletree store gc`"
    return StoreError(f"no space left on {mount_point(store.root)}: {free} free{own}", hint=hint)


def _is_full(folder: Path, *, told: bool) -> bool:
    """Whether a disk is as good as full. What failed to fit on it may be gone again, so a little room says nothing.

    Where no program spoke of it, only a disk with no room at all counts: on one, many end without a word.
    """
    status = os.statvfs(folder)
    room, total = status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize
    least = max(_LITTLE_ROOM, total // 100) if told else _NO_ROOM
    return room < least or (status.f_files > 0 and status.f_favail == 0)


def _failure(
    request: StageRequest,
    error: Exception,
    *,
    said: Failure,
    log_path: Path,
    redact: Callable[[str], str],
) -> StageFinished:
    findings = error.findings if isinstance(error, StageError) else ()
    known = said.findings if isinstance(error, StageError) else ()  # of what is no program's fault the error says all
    corrupt = isinstance(error, CorruptBlob)
    message = redact(str(error) if isinstance(error, AxletreeError) else f"{type(error).__name__}: {error}")
    if request.local.setting is not None and request.local.setting.imported:
        words, newline, rest = message.partition("\n")
        message = f"{words} ({request.local.setting.imported}){newline}{rest}"
    return StageFinished(
        time=time.time(),
        stage=request.stage,
        status="failed",
        key=request.key,
        message=f"corrupt input: {message}" if corrupt else message,
        corrupt=corrupt,
        cause=() if findings else said.cause,  # the log of an audit has its findings once more
        error_line=None if findings or not isinstance(error, StageError) else said.error_line,
        findings=findings or known,
        log=str(log_path),
        exit_code=error.exit_code if isinstance(error, AxletreeError) else StageError.exit_code,
        killed=isinstance(error, StageError) and any(_KILLED.search(text) for text in (message, *said.cause)),
    )


@contextmanager
def _sampled_memory(request: StageRequest, emit: Callable[[Event], None], peak: list[int]) -> Iterator[None]:
    """Sum the resident memory of the stage's processes several times a second; ``peak`` gets the highest sum."""
    over = threading.Event()

    def sample() -> None:
        # Not our own number: where /proc could not be made anew, it has those of the namespace above.
        me = psutil.Process(int(os.readlink("/proc/self")))  # noqa: PTH115 (a number, not a path)
        while not over.wait(_SAMPLE_SECONDS):
            memory = count = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    memory += process.memory_info().rss
                except psutil.Error:
                    continue
                count += 1
            peak[0] = max(peak[0], memory)
            emit(MemorySampled(time=time.time(), stage=request.stage, memory=memory, processes=count))

    sampler = threading.Thread(target=sample, daemon=True)
    sampler.start()
    try:
        yield
    finally:
        over.set()
        sampler.join()
