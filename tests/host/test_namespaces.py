"""What is said where images cannot be entered: what this machine lacks, and every way there is."""

from __future__ import annotations

import pytest

from axletree.host.namespaces import no_images, obstacles

CLONE, MOST = "sys/kernel/unprivileged_userns_clone", "sys/user/max_user_namespaces"
APPARMOR = "sys/kernel/apparmor_restrict_unprivileged_userns"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, ()),
        ({CLONE: "1\n", MOST: "15000\n", APPARMOR: "0\n", "self/status": "Name:\tx\nSeccomp:\t0\n"}, ()),
        ({CLONE: "0\n"}, ("kernel.unprivileged_userns_clone is 0",)),
        ({MOST: "0\n"}, ("user.max_user_namespaces is 0",)),
        ({APPARMOR: "1\n"}, ("kernel.apparmor_restrict_unprivileged_userns is 1",)),
        ({"self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n"}, ()),
        (
            {"self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffdfffff\n"},
            ("root has no right to mount: CAP_SYS_ADMIN is missing",),
        ),
        ({"self/status": "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n"}, ()),
        ({"self/status": "Seccomp:\t2\n"}, ("a seccomp filter restricts this process, as containers have it",)),
    ],
)
def test_what_the_kernel_tells(files: dict[str, str], said: tuple[str, ...]) -> None:
    assert obstacles(lambda path: files.get(path, "")) == said


def test_all_ways_are_named() -> None:
    problem = no_images([], read=lambda path: "0" if path == MOST else "")
    assert "(user.max_user_namespaces is 0), and neither podman nor docker is installed" in problem.message
    for way in (
        "sysctl",
        "--security-opt",
        "--runner podman or --runner docker where one is installed",
        "--runner here",
    ):
        assert way in str(problem.hint)


def test_an_engine_that_is_installed_is_the_one_to_use() -> None:
    problem = no_images(["docker"], read=lambda _: "")
    assert problem.message.endswith("it does not allow namespaces with mounts")
    assert "or use --runner docker;" in str(problem.hint)
    assert "podman" not in str(problem.hint)
