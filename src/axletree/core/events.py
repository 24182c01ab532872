"""The event stream of a run: one JSON object a line for ``build --json``, and what the views draw from.

The schema is versioned: ``run-started`` carries ``schema``. Fields may be added within a version, never renamed.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from axletree.core.findings import Finding
from axletree.core.records import Metrics
from axletree.core.values import Digest, Key, StageId

EVENT_SCHEMA: Literal[1] = 1

Status = Literal["waiting", "running", "done", "cached", "failed", "blocked", "cancelled"]
"""``blocked``: something that it depends on failed; ``cached``: its result was in the store."""


Keeps = Literal["nothing", "compiler-cache", "folder"]

ProgressUnit = Literal["steps", "bytes"]


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    time: float
    """Seconds since the epoch."""


class StagePlanned(msgspec.Struct, frozen=True, kw_only=True):
    """A stage of the plan."""

    stage: StageId
    action: str
    needs: tuple[StageId, ...]
    variants: tuple[str, ...]
    """Ids of the variants that share this stage."""
    cached: bool
    why: tuple[str, ...] = ()
    """Why it runs or runs again; empty if cached."""
    estimate: float | None = None
    """Seconds that it took last time, if known."""


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the run will download."""

    filename: str
    size: int | None = None
    """Bytes, if the lock states them."""


class RunStarted(_Event, frozen=True, kw_only=True, tag="run-started"):
    """The first event of a run."""

    recipe: str
    variants: tuple[str, ...]
    stages: tuple[StagePlanned, ...]
    downloads: tuple[Download, ...] = ()
    """Files to download, largest first."""
    findings: tuple[Finding, ...] = ()
    """Findings about the plan, before anything runs."""
    schema: Literal[1] = EVENT_SCHEMA


class StageStarted(_Event, frozen=True, kw_only=True, tag="stage-started"):
    """The process of a stage has started."""

    stage: StageId
    key: Key
    jobs: int
    log: str
    """Path of the stage's log file."""
    keeps: Keeps = "nothing"
    """What remains if the stage is stopped: its build folder, or compiled objects in the compiler cache."""
    waits: bool = False
    """Whether another run is running this stage; this one waits, and uses its result."""


class StageProgress(_Event, frozen=True, kw_only=True, tag="stage-progress"):
    """Progress of a stage: ninja's ``[12/40]``, bytes of a download, a phase."""

    stage: StageId
    message: str
    done: int | None = None
    total: int | None = None
    unit: ProgressUnit = "steps"
    """What ``done`` and ``total`` count."""


class MemorySampled(_Event, frozen=True, kw_only=True, tag="memory-sampled"):
    """Current resident memory of a stage."""

    stage: StageId
    memory: int
    """Bytes, in all processes of the stage."""
    processes: int


class StageFinished(_Event, frozen=True, kw_only=True, tag="stage-finished"):
    """A stage has ended, with any outcome."""

    stage: StageId
    status: Status
    key: Key | None = None
    tree: Digest | None = None
    metrics: Metrics | None = None
    log: str | None = None
    message: str | None = None
    """The error, in one line."""
    cause: tuple[str, ...] = ()
    """The lines of the log with the root cause, without messages of wrapper programs."""
    error_line: str | None = None
    """The line of the log that names the error, if one does."""
    exit_code: int | None = None
    """For a failure, the exit code of the run: 1 for the stage's work, 2 for its input, 3 for this machine."""
    lacks: tuple[str, ...] = ()
    """Isolation that the system did not permit for this stage: ``processes``, ``network``, ``mounts``."""
    corrupt: bool = False
    """Whether content of the store was damaged; it is now in quarantine, and the stage that produced it runs again."""
    killed: bool = False
    """Whether the stage or one of its compilers was killed from outside, most likely because memory ran out."""
    refused: bool = False
    """Whether the stage did not start because this machine cannot run it; ``message`` says why."""
    findings: tuple[Finding, ...] = ()


class Published(_Event, frozen=True, kw_only=True, tag="published"):
    """A file was written to the output folder, or was already there."""

    path: str
    """Relative to the output folder."""
    size: int
    sha256: Digest
    fresh: bool
    """Whether the file is new."""


class RunFinished(_Event, frozen=True, kw_only=True, tag="run-finished"):
    """The last event of a run."""

    status: Literal["done", "failed", "cancelled"]
    ran: int
    cached: int
    failed: int
    blocked: int
    wall: float


Event = RunStarted | StageStarted | StageProgress | MemorySampled | StageFinished | Published | RunFinished
"""Any event; decode a line with ``msgspec.json.decode(line, type=Event)``."""
