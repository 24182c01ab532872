"""podman and docker, by their command lines: is one here, which options does this host need, has it an image.

Engines fail in many ways on restricted hosts: root that may not raise limits, control groups that crun refuses. So one
container is started before any stage is, which does what stages need: it runs our Python and writes into the store.
"""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import HostError
from axletree.host.run import finish
from axletree.plan.containers import (
    EngineFacts,
    Limits,
    Way,
    describe,
    layers_command,
    list_command,
    load_command,
    remove_command,
    run_command,
    ways,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.core.values import Digest
    from axletree.host.run import Finished
    from axletree.plan.containers import Container, EngineName

_SECONDS = 60
_LOAD_SECONDS = 3600
_CAP_SYS_RESOURCE = 24
_ENFORCE = Path("/sys/fs/selinux/enforce")
_LARGEST_ID = Path("/proc/sys/kernel/pid_max")
_RUNTIMES = ("runc", "crun")
_LINES = 3
_OTHERWISE = "build with --runner namespace, which needs no engine"
_WITHOUT = f"install it, or {_OTHERWISE}"


def find_engine(name: EngineName, *, environ: Mapping[str, str]) -> EngineFacts:
    """An engine that answers.

    Raises:
        HostError: it is not installed, or cannot be used; says what to do.
    """
    program = shutil.which(name, path=environ.get("PATH", os.defpath))
    if program is None:
        raise HostError(f"{name} is not installed", hint=_WITHOUT)
    said = finish([program, "--version"], environ=environ, seconds=_SECONDS, hint=_WITHOUT)
    kind: EngineName = "podman" if said.text.startswith("podman") else name  # podman's stand-in for docker
    question = "{{.Host.Security.Rootless}}" if kind == "podman" else "{{json .SecurityOptions}}"
    answer = finish([program, "info", "--format", question], environ=environ, seconds=_SECONDS, hint=_WITHOUT)
    if answer.code != 0:
        raise HostError(f"{name} cannot be used: {_words(answer)}", hint=_cure(kind, answer))
    return EngineFacts(
        name=kind,
        program=program,
        uid=os.geteuid(),
        gid=os.getegid(),
        rootless=answer.text.strip() == "true" or "name=rootless" in answer.text,
        selinux=_enforces(),
    )


def _cure(name: EngineName, answer: Finished) -> str:
    words = answer.err.decode(errors="replace").lower()
    if "permission denied" in words and name == "docker":
        return f"ask for the right to use Docker (the group docker), use --runner podman, or {_OTHERWISE}"
    if "daemon" in words:
        return f"start the Docker daemon, use --runner podman, or {_OTHERWISE}"
    return f"see that `{name} info` works, or {_OTHERWISE}"


def _enforces() -> bool:
    """Whether SELinux refuses, and does not only note, what its policy does not allow."""
    try:
        return _ENFORCE.read_text(encoding="ascii").strip() == "1"
    except OSError:
        return False


def find_way(
    container: Container, engine: EngineFacts, *, proof: Path, known: Way | None, environ: Mapping[str, str]
) -> Way:
    """How containers can be started on this host, tried with one that makes a file.

    Args:
        container: what to start.
        engine: the engine.
        proof: the file that the container makes, as this process sees it; it must be the caller's then.
        known: what worked before.
        environ: variables of the engine.

    Raises:
        HostError: none can; says what the engine says of each.
    """
    found = ways(limits=_limits(), may_raise=_may_raise(), runtimes=_runtimes(engine))
    said: dict[str, None] = {}
    for way in dict.fromkeys([*([known] if known is not None else []), *found]):
        done = finish(run_command(container, engine, way), environ=environ, seconds=_SECONDS)
        if proof.exists():
            owner = proof.stat().st_uid
            proof.unlink()
            if owner == os.geteuid():
                return way
            message = f"files that {engine.name} writes belong to user {owner}, not to you ({os.geteuid()})"
            raise HostError(message, hint=f"turn the engine's user mapping off, or {_OTHERWISE}")
        said[f"with {describe(way)}: {_words(done)}" if done.code else f"with {describe(way)}: no file appeared"] = None
        remove_containers([container.name], engine, way, environ=environ)
    reasons = "\n    ".join(said)
    elsewhere = all("no file appeared" in line or "no such file" in line.lower() for line in said)
    hint = f"use an engine on this machine: another one does not see the store; or {_OTHERWISE}"
    message = f"{engine.name} cannot start a container that works for the store:\n    {reasons}"
    raise HostError(message, hint=hint if elsewhere else _OTHERWISE)


def has_image(
    image: str, layers: Iterable[Digest], engine: EngineFacts, way: Way, *, environ: Mapping[str, str]
) -> bool:
    """Whether an engine has an image of this name, with these layers."""
    done = finish(layers_command(image, engine, way), environ=environ, seconds=_SECONDS)
    try:
        found = msgspec.json.decode(done.out, type=list[str])
    except msgspec.MsgspecError:
        return False
    return found == [f"sha256:{layer}" for layer in layers]


def load_image(archive: Path, engine: EngineFacts, way: Way, *, environ: Mapping[str, str]) -> None:
    """Have an engine read a docker archive.

    Raises:
        HostError: it refuses, or its disk is full.
    """
    done = finish(load_command(str(archive), engine, way), environ=environ, seconds=_LOAD_SECONDS)
    if done.code != 0:
        hint = f"see that there is room in the storage of {engine.name}, or {_OTHERWISE}"
        raise HostError(f"{engine.name} cannot load the image: {_words(done)}", hint=hint)


def containers_of(store: str, engine: EngineFacts, way: Way, *, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names of all containers that work for a store, running or not; none where the engine does not tell."""
    return tuple(finish(list_command(store, engine, way), environ=environ, seconds=_SECONDS).text.split())


def remove_containers(names: Iterable[str], engine: EngineFacts, way: Way, *, environ: Mapping[str, str]) -> None:
    """Kill and remove containers; it is fine if there are none of these names."""
    listed = list(names)
    if listed:
        finish(remove_command(listed, engine, way), environ=environ, seconds=_SECONDS)


def _words(done: Finished) -> str:
    """The last lines that an engine printed."""
    text = (done.err.strip() or done.out).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[-_LINES:]) or f"exit code {done.code}"


def _limits() -> Limits:
    """The limits of this process. That on processes counts up to the largest process id, to which podman lowers it."""
    processes = int(_LARGEST_ID.read_text(encoding="ascii"))
    soft, hard = (min(each, processes) if each >= 0 else processes for each in _limit(resource.RLIMIT_NPROC))
    return Limits(files=_limit(resource.RLIMIT_NOFILE), processes=(soft, hard))


def _limit(kind: int) -> tuple[int, int]:
    soft, hard = resource.getrlimit(kind)
    return soft, hard  # RLIM_INFINITY is -1, as engines write it


def _may_raise() -> bool:
    """Whether this process may raise limits; an ordinary user's engine never tries."""
    if os.geteuid() != 0:
        return True
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    powers = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(powers, 16) >> _CAP_SYS_RESOURCE & 1)


def _runtimes(engine: EngineFacts) -> tuple[str, ...]:
    """Programs that may start containers where podman's own choice cannot."""
    if engine.name != "podman":
        return ()
    return tuple(name for name in _RUNTIMES if shutil.which(name, path=f"{os.defpath}:/usr/sbin:/usr/local/sbin:/sbin"))
