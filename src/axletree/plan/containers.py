"""The command lines of podman and docker: one container for a stage. Values in, arguments out."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.core.images import ImageId

EngineName = Literal["podman", "docker"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)
"""Runners that are programs of others."""
Gpus = Literal["none", "nvidia", "amd"]
MARK = "axletree"
"""How names of our containers and images start, and the host name in a container."""
STORE_LABEL = "axletree.store"
"""Label of our containers: the store that they work for."""
TOOL = "/axletree/tool"
"""Where a container has Axletree itself: folders ``0``, ``1`` ... of Python modules, and programs in ``bin``."""
_SHARED_MEMORY = "2g"
"""Size of /dev/shm: by default engines give 64 MB, of which PyTorch's data loaders and NCCL run out."""
_REFUSED = re.compile(r"[^a-z0-9]+")


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """A folder or file of this machine in a container."""

    source: str
    target: str
    writable: bool = False


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that processes of this machine have, as (soft, hard); -1: none."""

    files: tuple[int, int]
    processes: tuple[int, int]


class EngineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be known of an engine and this machine to start containers."""

    name: EngineName
    program: str
    uid: int
    gid: int
    rootless: bool
    """The engine itself runs as an ordinary user: its root is that user."""
    selinux: bool = False
    """SELinux refuses what its policy does not allow."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """What a restricted host makes necessary."""

    limits: Limits | None = None
    """Limits that containers get; ``None``: the engine's own, which it may not be allowed to set."""
    runtime: str | None = None
    """The program that creates containers; ``None``: the engine's own choice."""


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container for one stage."""

    name: str
    image: str
    store: str
    """What identifies the store that it works for."""
    mounts: tuple[Mount, ...]
    network: bool
    gpus: Gpus = "none"
    entry: tuple[str, ...]
    """The program and its arguments."""
    variables: dict[str, str] = {}


def image_reference(name: str, image: ImageId) -> str:
    """What an engine calls an image of the store; ``name`` is the recipe's name for it."""
    words = _REFUSED.sub("-", name.lower()).strip("-") or "image"
    return f"localhost/{MARK}/{words}:{image[:12]}"


def gpus_of(axis: str) -> Gpus:
    """The GPUs that a value of the axis ``gpu`` needs."""
    if axis.startswith("cu"):
        return "nvidia"
    return "amd" if axis.startswith("rocm") else "none"


def start_of(engine: EngineFacts, way: Way) -> tuple[str, ...]:
    """How each command line of an engine starts."""
    # podman knows runtimes before its subcommand, docker behind `run`.
    return (engine.program, *(("--runtime", way.runtime) if way.runtime and engine.name == "podman" else ()))


def run_command(container: Container, engine: EngineFacts, way: Way) -> tuple[str, ...]:
    """Start a container, and stay attached to it until it ends."""
    program, *arguments = container.entry
    return (
        *start_of(engine, way),
        "run",
        *("--rm", "--interactive", "--name", container.name, "--label", f"{STORE_LABEL}={container.store}"),
        *("--hostname", MARK, "--pull", "never", "--shm-size", _SHARED_MEMORY, "--log-driver", "none"),
        *(() if container.network else ("--network", "none")),
        *_user(engine),
        *_confinement(engine, way),
        *_gpu_options(container.gpus, engine),
        *(word for mount in container.mounts for word in ("--volume", _volume(mount))),
        *(word for name, value in container.variables.items() for word in ("--env", f"{name}={value}")),
        *("--workdir", "/", "--entrypoint", program, container.image, *arguments),
    )


def remove_command(names: Sequence[str], engine: EngineFacts, way: Way) -> tuple[str, ...]:
    """Kill and remove containers; podman is content if there are none of these names."""
    return (*start_of(engine, way), "rm", "--force", "--volumes", *names)


def list_command(store: str, engine: EngineFacts, way: Way) -> tuple[str, ...]:
    """Print the names of all containers that work for a store, one a line."""
    wanted = ("--all", "--filter", f"label={STORE_LABEL}={store}", "--format", "{{.Names}}")
    return (*start_of(engine, way), "ps", *wanted)


def layers_command(image: str, engine: EngineFacts, way: Way) -> tuple[str, ...]:
    """Print the digests of an image's uncompressed layers as JSON."""
    return (*start_of(engine, way), "image", "inspect", "--format", "{{json .RootFS.Layers}}", image)


def load_command(archive: str, engine: EngineFacts, way: Way) -> tuple[str, ...]:
    """Read a docker archive into the engine's own storage."""
    return (*start_of(engine, way), "load", "--quiet", "--input", archive)


def ways(*, limits: Limits, may_raise: bool, runtimes: Sequence[str]) -> Iterator[Way]:
    """Ways to start containers on this host, the most usual first.

    Args:
        limits: those of this process.
        may_raise: whether this process may raise limits, as engines do by default.
        runtimes: programs for containers that may work where the engine's own choice does not.
    """
    for kept in (None, limits) if may_raise else (limits, None):
        for runtime in (None, *runtimes):
            yield Way(limits=kept, runtime=runtime)


def module_folders(count: int) -> tuple[str, ...]:
    """Where a container has folders of Python modules."""
    return tuple(posixpath.join(TOOL, str(number)) for number in range(count))


def _volume(mount: Mount) -> str:
    return f"{mount.source}:{mount.target}{'' if mount.writable else ':ro'}"


def _user(engine: EngineFacts) -> Iterator[str]:
    """Have results belong to the caller."""
    if not engine.rootless:
        yield from ("--user", f"{engine.uid}:{engine.gid}")
    elif engine.name == "podman":
        yield from ("--userns", "keep-id")
    else:
        yield from ("--user", "0:0")


def _confinement(engine: EngineFacts, way: Way) -> Iterator[str]:
    if engine.selinux:
        # Not `:z`: it would label the store, and the folders of the Python that runs Axletree, for good.
        yield from ("--security-opt", "label=disable")
    if way.runtime and engine.name == "docker":
        yield from ("--runtime", way.runtime)
    if way.limits is not None:
        for name, (soft, hard) in (("nofile", way.limits.files), ("nproc", way.limits.processes)):
            yield from ("--ulimit", f"{name}={soft}:{hard}")


def _gpu_options(gpus: Gpus, engine: EngineFacts) -> tuple[str, ...]:
    if gpus == "nvidia":
        return ("--gpus", "all") if engine.name == "docker" else ("--device", "nvidia.com/gpu=all")
    if gpus == "amd":
        return ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "video")
    return ()


def describe(way: Way) -> str:
    """A way in the words of the command line."""
    words = [f"--runtime {way.runtime}"] if way.runtime else []
    words += ["--ulimit"] if way.limits is not None else []
    return " ".join(words) or "without options"
