"""What travels between driver, stage process and store: request, record, metrics. JSON both ways."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from axletree.core.findings import Finding
from axletree.core.values import Digest, Key, StageId

REQUEST_SCHEMA: Literal[1] = 1
RECORD_SCHEMA: Literal[1] = 1


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver gives a stage to work with. In no key: it cannot change the result."""

    jobs: int = 1
    """How many compile processes may run at once."""
    memory: int | None = None
    """Bytes of memory that the stage was admitted with."""
    parallel: Literal["auto", "jobs", "tokens", "setuptools"] = "auto"
    """How the number of jobs reaches the build."""


class StageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that ``axletree run-stage`` needs to run one stage, and nothing of the process that asks."""

    stage: StageId
    action: str
    """Name of the action, a key of the registry's action table."""
    key: Key
    ingredients: dict[str, Any]
    """What the key was made from; the key is their digest."""
    inputs: dict[str, Digest]
    """Name of an input -> digest of its tree."""
    local: dict[str, Any] = msgspec.field(default_factory=dict)
    """Facts of this machine that the action needs and that can't change the result (paths, index settings)."""
    grant: Grant = Grant()
    schema: Literal[1] = REQUEST_SCHEMA


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage used. Times in seconds, memory in bytes."""

    wall: float = 0.0
    cpu: float = 0.0
    """User and system time of the stage's process and all its descendants."""
    peak_memory: int = 0
    """Largest sum of resident memory of the stage's processes that was sampled."""
    peak_process: int = 0
    """Largest resident memory of a single process: what one more job costs."""
    jobs: int = 1
    """Parallel jobs that the stage was granted."""


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a finished stage, written last and only once: key -> tree."""

    stage: StageId
    """The stage that made it first; others with the same key share it."""
    key: Key
    tree: Digest
    ingredients: dict[str, Any]
    findings: tuple[Finding, ...] = ()
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    """Small results that later steps and the report show: file names, tags, sizes, test counts."""
    metrics: Metrics = Metrics()
    finished_at: float = 0.0
    """Seconds since the epoch."""
    schema: Literal[1] = RECORD_SCHEMA
