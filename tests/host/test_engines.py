"""Engines of restricted hosts, played by small scripts; and the end of a container's first process."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError
from axletree.core.values import Digest
from axletree.host import engines
from axletree.host.engines import containers_of, find_engine, find_way, has_image, load_image
from axletree.plan.containers import Container, EngineFacts, EngineName, Way

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ENVIRON = {"PATH": "/usr/bin:/bin"}
WATCHING = """
import sys, time
from pathlib import Path
from axletree.host.contained import end_with_driver
end_with_driver(Path(sys.argv[1]))
print("started", flush=True)
time.sleep(600)
"""


def engine(folder: Path, script: str, *, name: EngineName = "podman") -> EngineFacts:
    """An engine that is this shell script."""
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return EngineFacts(name=name, program=str(program), uid=os.geteuid(), gid=os.getegid(), rootless=False)


def container(folder: Path) -> Container:
    """One whose program makes ``folder/made``."""
    return Container(
        name="axletree-1",
        image="image",
        store="s",
        mounts=(),
        network=False,
        entry=("touch", str(folder / "made")),
    )


def way_of(facts: EngineFacts, folder: Path, known: Way | None = None) -> Way:
    return find_way(container(folder), facts, proof=folder / "made", known=known, environ=ENVIRON)


@pytest.mark.parametrize(
    ("refuses", "limits", "runtime"),
    [
        ("never", False, None),
        ('case "$*" in *--ulimit*) false;; *) echo "setrlimit: not permitted" >&2; true;; esac', True, None),
        ('case "$*" in "--runtime runc"*) false;; *) echo "crun: cgroups" >&2; true;; esac', False, "runc"),
        ('case "$*" in "--runtime runc"*--ulimit*) false;; *) echo "no" >&2; true;; esac', True, "runc"),
    ],
)
def test_options_that_a_host_needs_are_found_out(
    *, refuses: str, limits: bool, runtime: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_runtimes", lambda _: ("runc",))
    monkeypatch.setattr(engines, "_may_raise", lambda: True)
    facts = engine(tmp_path, f'never() {{ false; }}\nif {refuses}; then exit 126; fi\ntouch "{tmp_path}/made"')
    way = way_of(facts, tmp_path)
    assert (way.limits is not None, way.runtime) == (limits, runtime)
    assert not (tmp_path / "made").exists()
    (tmp_path / "podman").write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/calls\ntouch "{tmp_path}/made"\n')
    assert way_of(facts, tmp_path, known=way) == way, "what worked is tried first"
    assert len((tmp_path / "calls").read_text().splitlines()) == 1


def test_what_the_engine_says_of_each_way_is_in_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_runtimes", lambda _: ("runc",))
    facts = engine(tmp_path, 'case "$*" in *rm*--force*) exit 0;; esac; echo "not today: $2" >&2; exit 125')
    with pytest.raises(HostError) as error:
        way_of(facts, tmp_path)
    assert "with --runtime runc: not today: runc" in str(error.value)
    assert "--runner namespace" in str(error.value)


@pytest.mark.parametrize("script", ["exit 0", 'echo "exec: no such file or directory" >&2; exit 127'])
def test_an_engine_on_another_machine(script: str, tmp_path: Path) -> None:
    with pytest.raises(HostError, match="another one does not see the store"):
        way_of(engine(tmp_path, script), tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_results_that_belong_to_somebody_else(tmp_path: Path) -> None:
    facts = engine(tmp_path, f'touch "{tmp_path}/made"; chown 65534 "{tmp_path}/made"')
    with pytest.raises(HostError, match="belong to user 65534"):
        way_of(facts, tmp_path)


def test_an_image_with_other_layers_is_loaded_again(tmp_path: Path) -> None:
    facts = engine(tmp_path, f"echo '[\"sha256:{'a' * 64}\"]'")
    assert has_image("image", [Digest("a" * 64)], facts, Way(), environ=ENVIRON)
    assert not has_image("image", [Digest("b" * 64)], facts, Way(), environ=ENVIRON)
    assert not has_image("image", [], engine(tmp_path, "exit 1"), Way(), environ=ENVIRON)


def test_an_image_that_the_engine_refuses(tmp_path: Path) -> None:
    facts = engine(tmp_path, 'echo "Error: no space left on device" >&2; exit 125')
    with pytest.raises(HostError, match="podman cannot load the image: Error: no space left on device"):
        load_image(tmp_path / "image.tar", facts, Way(), environ=ENVIRON)
    assert containers_of("s", facts, Way(), environ=ENVIRON) == ()


@pytest.mark.parametrize(
    ("name", "script", "kind", "rootless"),
    [
        ("podman", 'case $1 in --version) echo "podman version 4";; *) echo true;; esac', "podman", True),
        ("podman", 'case $1 in --version) echo "podman version 4";; *) echo false;; esac', "podman", False),
        (
            "docker",
            'case $1 in --version) echo "Docker version";; *) echo \'["name=rootless"]\';; esac',
            "docker",
            True,
        ),
        (
            "docker",
            'case $1 in --version) echo "Docker version";; *) echo \'["name=seccomp"]\';; esac',
            "docker",
            False,
        ),
        ("docker", 'case $1 in --version) echo "podman version 4";; *) echo false;; esac', "podman", False),
    ],
)
def test_what_an_engine_says_of_itself(
    *, name: EngineName, script: str, kind: str, rootless: bool, tmp_path: Path
) -> None:
    engine(tmp_path, script, name=name)
    found = find_engine(name, environ={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (found.name, found.rootless) == (kind, rootless)


@pytest.fixture
def sign(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A file that this process keeps locked."""
    path = tmp_path / "sign"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    yield path, descriptor
    os.close(descriptor)


def watching(sign: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WATCHING, sign], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", ["lock", "signal"])
def test_the_first_process_ends_with_the_driver(how: str, sign: tuple[Path, int]) -> None:
    with watching(sign[0]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        assert process.poll() is None
        if how == "lock":
            fcntl.flock(sign[1], fcntl.LOCK_UN)
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 137


def test_the_first_process_ends_at_once_if_the_driver_is_gone(sign: tuple[Path, int]) -> None:
    fcntl.flock(sign[1], fcntl.LOCK_UN)
    with watching(sign[0]) as process:
        assert process.wait(60) == 137
