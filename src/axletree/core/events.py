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


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    time: float
    """Seconds since the epoch."""


class StagePlanned(msgspec.Struct, frozen=True, kw_only=True):
    """One stage as the plan has it."""

    stage: StageId
    action: str
    needs: tuple[StageId, ...]
    variants: tuple[str, ...]
    """Ids of the variants that share this stage."""
    cached: bool
    why: tuple[str, ...] = ()
    """Why it runs (again); empty when cached."""
    estimate: float | None = None
    """Seconds that it took last time, if known."""


class Download(msgspec.Struct, frozen=True, kw_only=True):
    """A file that the run will fetch."""

    filename: str
    size: int | None = None
    """Bytes, where the lock knows."""


class RunStarted(_Event, frozen=True, kw_only=True, tag="run-started"):
    """The first event of a run."""

    recipe: str
    variants: tuple[str, ...]
    stages: tuple[StagePlanned, ...]
    downloads: tuple[Download, ...] = ()
    """What is not in the store yet and will be fetched, largest first."""
    findings: tuple[Finding, ...] = ()
    """What is to be said of the plan before anything runs."""
    schema: Literal[1] = EVENT_SCHEMA


class StageStarted(_Event, frozen=True, kw_only=True, tag="stage-started"):
    """A stage's process was started."""

    stage: StageId
    key: Key
    jobs: int
    log: str
    """Path of the stage's log file."""
    keeps: Keeps = "nothing"
    """What of the stage outlives its being stopped: its build folder, or what it compiled in the compiler cache."""
    waits: bool = False
    """Whether another run has this very stage in hand: it waits, and takes that one's result if there is one."""


class StageProgress(_Event, frozen=True, kw_only=True, tag="stage-progress"):
    """What a stage said of how far it is: ninja's ``[12/40]``, bytes of a download, a phase."""

    stage: StageId
    message: str
    done: int | None = None
    total: int | None = None


class MemorySampled(_Event, frozen=True, kw_only=True, tag="memory-sampled"):
    """Resident memory now."""

    stage: StageId
    memory: int
    """Bytes, all processes of the stage together."""
    processes: int


class StageFinished(_Event, frozen=True, kw_only=True, tag="stage-finished"):
    """A stage is over, whatever the outcome."""

    stage: StageId
    status: Status
    key: Key | None = None
    tree: Digest | None = None
    metrics: Metrics | None = None
    log: str | None = None
    message: str | None = None
    """What went wrong, one line."""
    cause: tuple[str, ...] = ()
    """The lines of the log that name the root cause, not those of the wrappers around it."""
    exit_code: int | None = None
    """Of a failure, what it means for the run's exit code: 1 the stage's own work, 2 its input, 3 this machine."""
    lacks: tuple[str, ...] = ()
    """Isolation that the system did not grant a stage which ran: ``processes``, ``network``, ``mounts``."""
    corrupt: bool = False
    """Whether content of the store was damaged: it is in quarantine now, and its maker would run again."""
    killed: bool = False
    """Whether something from outside killed the stage or a compiler of it, most likely for its memory."""
    findings: tuple[Finding, ...] = ()


class Published(_Event, frozen=True, kw_only=True, tag="published"):
    """A file was put into the output folder, or was there already."""

    path: str
    """Relative to the output folder."""
    size: int
    sha256: Digest
    fresh: bool
    """Whether it was new."""


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
