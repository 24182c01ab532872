"""What travels between driver, stage process and store: request, record, metrics. JSON both ways."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from axletree.core.errors import Problem
from axletree.core.findings import Finding
from axletree.core.images import StageImage
from axletree.core.setting import StageSetting
from axletree.core.stated import Expected, Stated
from axletree.core.values import Digest, Key, StageId

REQUEST_SCHEMA: Literal[2] = 2
RECORD_SCHEMA: Literal[2] = 2
"""2: ingredients and facts have types, and values at their default are left out."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver gives a stage to work with. In no key: it cannot change the result."""

    jobs: int = 1
    """How many compile processes may run at once."""
    memory: int | None = None
    """Bytes of memory that the stage was admitted with."""
    parallel: Literal["auto", "jobs", "tokens", "setuptools"] = "auto"
    """How the number of jobs reaches the build."""


class ActionCode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whose code makes a result."""

    name: str
    revision: int
    distribution: str = ""
    """Name and version of the distribution that brings it; empty for the actions of Axletree."""


class Ingredients(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that can change a stage's result. A key is the digest of its canonical JSON."""

    action: ActionCode
    axes: dict[str, str] = {}
    parameters: Any
    """Those of the action: the struct that :mod:`axletree.plan.actions` declares; once read, plain JSON."""
    inputs: dict[str, str] = {}
    """Name of an input -> what stands for it: ``tree:DIGEST``, before it exists ``key:KEY``."""
    tools: dict[str, dict[str, str]] = {}
    """Tool -> its fingerprint."""
    environ: dict[str, str | None] = {}
    """Variables of the user's shell that the stage asked for."""
    host: dict[str, str] = {}
    """Facts of the host, where a result depends on them."""
    epoch: int | None = None
    """``SOURCE_DATE_EPOCH``, where something takes a date: seconds."""
    image: StageImage | None = None
    """The root file system that the stage's programs see, if that is not the host's; it has all their tools."""


class Interpreter(msgspec.Struct, frozen=True, kw_only=True):
    """A Python interpreter of this machine."""

    path: str
    """The program itself, never one inside a virtual environment."""
    version: str
    """``3.11.7``."""
    implementation: str
    """``cpython``."""
    free_threaded: bool
    abiflags: str
    soabi: str
    """``cpython-311-x86_64-linux-gnu``: the middle of an extension module's file name."""
    platform: str
    """``linux-x86_64``, as sysconfig has it."""
    machine: str
    """``x86_64``."""
    libc: str
    """``glibc 2.36``; empty where the system does not tell."""
    build: str
    """Digest of the compilers and flags that it was built with: extension modules are built with the same."""


class LocalFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an action needs to know of this machine. In no key: it cannot change the result."""

    interpreters: dict[str, Interpreter] = {}
    """``3.11`` -> the interpreter."""
    tools: dict[str, str] = {}
    """Tool that the stage declared -> its path."""
    image: str | None = None
    """What the recipe calls the image that the stage's programs see."""
    here: bool = False
    """Whether this machine's files are those of the image, so that nothing is to be entered."""
    gpus: bool = False
    """Whether the stage's programs in the image may use the GPUs of this machine."""
    refused: Problem | None = None
    """Why the stage cannot run on this machine, if that is known: it is not tried."""
    unproved: tuple[str, ...] = ()
    """Why they are not known to be, if they are not."""
    ccache: str | None = None
    """The compiler cache, where the action compiles and there is one."""
    workspace: str | None = None
    """Name of the folder that the stage keeps."""
    continues: str | None = None
    """Name of the kept folder of another stage in which it goes on, if it can."""
    addresses: dict[str, str] = {}
    """Digest of a file that no package index has -> its address."""
    extra_indexes: tuple[str, ...] = ()
    """Package indexes that are asked after the user's."""
    stated: Stated | None = None
    """Of a stage that packs: where the recipe says what of the package."""
    expected: tuple[Expected, ...] = ()
    """Of a stage that builds: what the recipe calls the packages that are made of its tree."""
    setting: StageSetting | None = None
    """Where the recipe describes it: for what is said if it fails."""


class StageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All that ``axletree run-stage`` needs to run one stage, and nothing of the process that asks."""

    stage: StageId
    recipe: str = ""
    """Name of the recipe whose run asks; another recipe may have a stage of the same id."""
    action: str
    """Name of the action, a key of the registry's action table."""
    key: Key
    ingredients: Ingredients
    """What the key was made from; the key is their digest."""
    inputs: dict[str, Digest]
    """Name of an input -> digest of its tree."""
    local: LocalFacts = LocalFacts()
    grant: Grant = Grant()
    schema: Literal[2] = REQUEST_SCHEMA


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


class CacheCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Compilations by what the compiler cache did with them."""

    hits: int
    misses: int
    refused: dict[str, int] = {}
    """Why it did not take some -> how many."""


class StageRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a finished stage, written last and only once: key -> tree."""

    stage: StageId
    """The stage that made it first; others with the same key share it."""
    key: Key
    tree: Digest
    ingredients: Ingredients
    findings: tuple[Finding, ...] = ()
    facts: dict[str, Any] = {}
    """Small results for later stages, publishing and the report, as the action's declaration types them."""
    compiler_cache: CacheCounts | None = None
    """Where something was compiled through the compiler cache: what came from it."""
    isolation: dict[str, bool] = {}
    """Kind of isolation -> whether the system granted it to the stage."""
    unproved: tuple[str, ...] = ()
    """Why the files that its programs saw are not known to be those of the image in its key, if they are not."""
    metrics: Metrics = Metrics()
    finished_at: float = 0.0
    """Seconds since the epoch."""
    schema: Literal[2] = RECORD_SCHEMA
