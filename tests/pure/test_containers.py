"""Command lines of podman and docker, for all kinds of hosts."""

from __future__ import annotations

from typing import Any

import pytest

from axletree.core.images import ImageId
from axletree.plan.containers import (
    Container,
    EngineFacts,
    EngineName,
    Limits,
    Mount,
    Way,
    describe,
    gpus_of,
    image_reference,
    layers_command,
    list_command,
    load_command,
    remove_command,
    run_command,
    ways,
)

PLAIN_WAY = Way()
LIMITS = Limits(files=(1024, 4096), processes=(1000, -1))
START = "run --rm --interactive --name axletree-1 --label axletree.store=s"
PLAIN = f"{START} --hostname axletree --pull never --shm-size 2g --log-driver none --network none"
SHOWN = "--volume /srv/store:/axletree/store --volume /opt/axletree:/axletree/tool/0:ro --env LC_ALL=C.UTF-8"
ENTRY = "--workdir / --entrypoint /axletree/python image -m axletree"


def engine(name: EngineName, **changes: Any) -> EngineFacts:
    values: dict[str, Any] = {"program": f"/usr/bin/{name}", "uid": 1000, "gid": 100, "rootless": False}
    return EngineFacts(name=name, **(values | changes))


def container(**changes: Any) -> Container:
    values: dict[str, Any] = {
        "name": "axletree-1",
        "image": "image",
        "store": "s",
        "mounts": (
            Mount(source="/srv/store", target="/axletree/store", writable=True),
            Mount(source="/opt/axletree", target="/axletree/tool/0"),
        ),
        "network": False,
        "entry": ("/axletree/python", "-m", "axletree"),
        "variables": {"LC_ALL": "C.UTF-8"},
    }
    return Container(**(values | changes))


def line(engine: EngineFacts, way: Way = PLAIN_WAY, **changes: Any) -> str:
    return " ".join(run_command(container(**changes), engine, way))


@pytest.mark.parametrize(
    ("facts", "user"),
    [
        (engine("docker"), "--user 1000:100"),
        (engine("docker", rootless=True), "--user 0:0"),
        (engine("podman", rootless=True), "--userns keep-id"),
        (engine("podman", uid=0, gid=0), "--user 0:0"),
    ],
)
def test_results_belong_to_the_caller(facts: EngineFacts, user: str) -> None:
    assert line(facts) == f"/usr/bin/{facts.name} {PLAIN} {user} {SHOWN} {ENTRY}"


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_only_actions_that_need_a_network_have_one(name: EngineName) -> None:
    assert "--network none" in line(engine(name))
    assert "--network" not in line(engine(name), network=True)


def test_restricted_hosts_get_limits_and_a_runtime() -> None:
    way = Way(limits=LIMITS, runtime="runc")
    limits = "--ulimit nofile=1024:4096 --ulimit nproc=1000:-1"
    of_podman, of_docker = (line(engine(name), way) for name in ("podman", "docker"))
    assert of_podman.startswith("/usr/bin/podman --runtime runc run ")
    assert of_docker.startswith("/usr/bin/docker run ")
    assert f"--user 1000:100 {limits} " in of_podman
    assert f"--user 1000:100 --runtime runc {limits} " in of_docker
    assert describe(way) == "--runtime runc --ulimit"


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_nothing_is_labeled_and_only_selinux_is_told(name: EngineName) -> None:
    assert "--security-opt" not in line(engine(name))
    told = line(engine(name, selinux=True))
    assert "--security-opt label=disable" in told
    assert ":z" not in told


@pytest.mark.parametrize(
    ("axis", "docker", "podman"),
    [
        ("cu130", "--gpus all", "--device nvidia.com/gpu=all"),
        ("rocm7.2", *["--device /dev/kfd --device /dev/dri --group-add video"] * 2),
        ("cpu", "", ""),
        ("", "", ""),
    ],
)
def test_gpus_of_a_variant(axis: str, docker: str, podman: str) -> None:
    for facts, words in ((engine("docker"), docker), (engine("podman"), podman)):
        plain, passed = line(facts), line(facts, gpus=gpus_of(axis))
        assert passed == plain.replace(f" {SHOWN}", f" {words} {SHOWN}" if words else f" {SHOWN}")


@pytest.mark.parametrize(
    ("name", "words"),
    [("bullseye", "bullseye"), ("manylinux_2_28", "manylinux-2-28"), ("My Image!", "my-image"), ("__", "image")],
)
def test_names_of_images_are_valid_ones(name: str, words: str) -> None:
    assert image_reference(name, ImageId("0123456789abcdef" * 4)) == f"localhost/axletree/{words}:0123456789ab"


def test_the_usual_way_is_tried_first() -> None:
    free = list(ways(limits=LIMITS, may_raise=True, runtimes=("runc",)))
    bound = list(ways(limits=LIMITS, may_raise=False, runtimes=("runc",)))
    assert free[0] == Way()
    assert bound[0] == Way(limits=LIMITS)
    assert {*free} == {*bound}
    assert len(free) == 4


def test_other_commands_start_the_same_way() -> None:
    facts, way = engine("podman"), Way(runtime="runc", limits=LIMITS)
    start = ("/usr/bin/podman", "--runtime", "runc")
    assert remove_command(["a", "b"], facts, way) == (*start, "rm", "--force", "--volumes", "a", "b")
    assert load_command("x.tar", facts, way) == (*start, "load", "--quiet", "--input", "x.tar")
    assert layers_command("i", facts, way)[3:5] == ("image", "inspect")
    assert "label=axletree.store=s" in list_command("s", facts, way)
