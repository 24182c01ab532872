"""Kill domains with real processes: whatever happens to whom, nothing of a stage stays behind.

Each case runs in a process of its own. Everything in it inherits one pipe, so that the pipe ends exactly when the last
of them is gone, wherever it went.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

HEAD = """
import os, socket, subprocess, sys, time
from axletree.host import sandbox
from axletree.host.sandbox import Isolation, run_isolated
say = lambda *words: print(*words, flush=True)
DETACHED = ["setsid", "sh", "-c", "setsid sleep 600 & sleep 600"]
"""
FALLBACK = "sandbox._unshare = lambda *, network, store: Isolation(processes=False, network=False)\n"
HANG = 60
"""Seconds after which a test that would wait for ever is given up."""


def body(text: str, *, network: bool = False, parent: str = "None") -> str:
    """A script that runs some lines inside."""
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    return f"{HEAD}def body(granted):\n{lines}\nsys.exit(run_isolated(body, network={network}, parent={parent}))\n"


def run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=HANG, check=False)


@pytest.fixture
def start() -> Iterator[Any]:
    """Start a script; at the end of the test, whatever it left is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(script: str, **more: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True, **more
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def output(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def read_to_the_end(stream: IO[str]) -> str:
    """What is still to be read until the last process that could write is gone."""
    text = b""
    while True:
        ready, _, _ = select.select([stream], [], [], HANG)
        assert ready, f"somebody still lives and holds the pipe; so far: {text!r}"
        piece = os.read(stream.fileno(), 4096)
        if not piece:
            return text.decode()
        text += piece


@pytest.fixture(scope="module")
def granted() -> dict[str, bool]:
    """What isolation this system grants."""
    words = run(body("say(granted.processes, granted.network, granted.mounts)\nreturn 0")).stdout.split()
    return dict(zip(("processes", "network", "mounts"), (word == "True" for word in words), strict=True))


@pytest.fixture(params=["namespace", "fallback"])
def prelude(request: pytest.FixtureRequest, granted: dict[str, bool]) -> str:
    """Both ways to keep processes together: the kernel's, and ours where it refuses."""
    if request.param == "fallback":
        return FALLBACK
    if not granted["processes"]:
        pytest.skip("this system grants no PID namespace")
    return ""


def with_prelude(prelude: str, script: str) -> str:
    return script.replace("def body", f"{prelude}def body", 1)


@pytest.mark.parametrize(
    ("text", "code"), [("return 0", 0), ("return 3", 3), ("sys.exit(5)", 70), ("raise OSError('no')", 70)]
)
def test_the_exit_code_is_the_bodys(prelude: str, text: str, code: int) -> None:
    """An exception must not get out: the process is a fork of its caller."""
    ended = run(with_prelude(prelude, body(text)))
    assert ended.returncode == code
    assert ("OSError: no" in ended.stderr) == ("OSError" in text)


def test_what_the_body_printed_is_flushed(prelude: str) -> None:
    assert run(with_prelude(prelude, body("sys.stdout.write('half a line')\nreturn 0"))).stdout == "half a line"


def test_a_body_that_was_killed_gives_128_and_the_signal() -> None:
    assert run(with_prelude(FALLBACK, body("os.kill(os.getpid(), 9)"))).returncode == 137


def test_what_was_detached_dies_when_the_body_returns(prelude: str, start: Any) -> None:
    process = start(
        with_prelude(prelude, body("subprocess.Popen(DETACHED)\ntime.sleep(0.2)\nsay('started')\nreturn 4"))
    )
    assert read_to_the_end(output(process)) == "started\n"
    assert process.wait() == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_was_detached_dies_by_a_signal_to_the_outer_process(prelude: str, start: Any, number: int) -> None:
    process = start(with_prelude(prelude, body("subprocess.Popen(DETACHED)\nsay('started')\ntime.sleep(600)")))
    assert output(process).readline() == "started\n"
    process.send_signal(number)
    assert read_to_the_end(output(process)) == ""
    assert process.wait() == 128 + signal.SIGKILL


def test_what_was_detached_dies_when_the_outer_process_is_killed(start: Any, granted: dict[str, bool]) -> None:
    if not granted["processes"]:
        pytest.skip("this system grants no PID namespace")
    process = start(body("subprocess.Popen(DETACHED)\nsay('started')\ntime.sleep(600)"))
    assert output(process).readline() == "started\n"
    process.kill()
    assert read_to_the_end(output(process)) == ""


def test_without_namespaces_what_was_not_detached_dies_when_the_outer_process_is_killed(start: Any) -> None:
    process = start(with_prelude(FALLBACK, body("say('started')\ntime.sleep(600)")))
    assert output(process).readline() == "started\n"
    process.kill()
    assert read_to_the_end(output(process)) == ""


def test_it_dies_with_the_process_that_started_it(prelude: str, start: Any) -> None:
    inner = with_prelude(prelude, body("say('started')\ntime.sleep(600)", parent="os.getppid()"))
    process = start(
        f"import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', {inner!r}])\ntime.sleep(600)"
    )
    assert output(process).readline() == "started\n"
    process.kill()
    assert read_to_the_end(output(process)) == ""


def test_it_does_not_start_for_a_parent_that_is_gone(prelude: str) -> None:
    ended = run(with_prelude(prelude, body("say('started')\nreturn 0", parent="1")))
    assert (ended.returncode, ended.stdout) == (137, "")


def test_the_outer_process_killed_at_any_moment_leaves_nothing(prelude: str, start: Any) -> None:
    """Also between the fork and the first line of the child."""
    for delay in (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01):
        script = (
            f"import threading\nos.fork_ = os.fork\n"
            f"def fork():\n"
            f"    child = os.fork_()\n"
            f"    if child: time.sleep({delay}); os.kill(os.getpid(), 9)\n"
            f"    return child\n"
            f"os.fork = fork\n"
        )
        process = start(with_prelude(prelude + script, body("time.sleep(600)")))
        assert read_to_the_end(output(process)) == ""


def test_processes_inside_see_only_themselves(granted: dict[str, bool]) -> None:
    if not granted["processes"]:
        pytest.skip("this system grants no PID namespace")
    ended = run(body("say(os.getpid(), *sorted(name for name in os.listdir('/proc') if name.isdigit()))\nreturn 0"))
    pid, *seen = ended.stdout.split()
    assert pid == "1"
    if seen != ["1"]:
        pytest.skip("this system does not let /proc be mounted")


@pytest.fixture
def listener() -> Generator[int]:
    """Port of a server on the host's loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


CONNECT = """
try:
    socket.create_connection(('127.0.0.1', {port}), timeout=20).close()
    say('connected')
except OSError as error:
    say(error.strerror)
return 0
"""


def test_no_network_reaches_the_host(granted: dict[str, bool], listener: int) -> None:
    if not granted["network"]:
        pytest.skip("this system grants no network namespace")
    assert run(body(CONNECT.format(port=listener))).stdout == "Connection refused\n"


def test_with_network_the_host_is_reached(listener: int) -> None:
    assert run(body(CONNECT.format(port=listener), network=True)).stdout == "connected\n"


def test_without_network_a_process_can_talk_to_itself() -> None:
    text = "server = socket.create_server(('127.0.0.1', 0))\nport = server.getsockname()[1]"
    ended = run(body(text + CONNECT.replace("{port}", "port")))
    assert ended.stdout == "connected\n", ended.stderr


def test_a_user_without_rights_gets_the_same(granted: dict[str, bool]) -> None:
    """Where we are root: as nobody, through a user namespace, with the system's Python where ours may not be read."""
    if os.geteuid() != 0 or not all(granted.values()):
        pytest.skip("not root, or root gets no namespaces either")
    script = body("say(granted.processes, granted.network, granted.mounts, os.geteuid())\nreturn 0")
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            ended = subprocess.run(
                [python, "-c", script],
                user=65534,
                group=65534,
                extra_groups=(),
                capture_output=True,
                text=True,
                timeout=HANG,
                check=False,
                cwd="/",
                env={"PATH": os.defpath, "PYTHONPATH": ":".join(path for path in sys.path if path)},
            )
        except (PermissionError, FileNotFoundError):
            continue
        if "ImportError" in ended.stderr or "ModuleNotFoundError" in ended.stderr:
            continue  # of another version, or our packages may not be read
        if ended.stdout.startswith("False"):
            pytest.skip("this system grants nobody no user namespaces")
        assert (ended.stdout, ended.returncode) == ("True True True 65534\n", 0), ended.stderr
        return
    pytest.skip("no interpreter that nobody may run has our packages")


REFUSING = """
def refuse(uid, gid):
    raise PermissionError(1, 'Operation not permitted', '/proc/self/uid_map')
sandbox._map_identity = refuse
os.geteuid = lambda: 1000
"""
"""As with AppArmor's restriction of user namespaces: they are granted, but nothing may be done in them."""


def test_a_user_namespace_that_is_of_no_use_is_not_entered() -> None:
    text = "say(granted.processes, granted.network, os.readlink('/proc/self/ns/user'))\nreturn 0"
    ended = run(with_prelude(REFUSING, body(text)))
    assert ended.stdout.split() == ["False", "False", os.readlink("/proc/self/ns/user")], ended.stderr  # noqa: PTH115


PROTECT = """
from pathlib import Path
folder = Path({folder!r})
def write():
    try:
        folder.joinpath('f').write_text('changed')
        say('written')
    except OSError as error:
        say(error.strerror)
"""


def test_folders_can_be_made_read_only_for_a_while_and_for_one_stage_alone(
    granted: dict[str, bool], tmp_path: Path
) -> None:
    if not granted["mounts"]:
        pytest.skip("this system grants no mounts")
    (tmp_path / "f").write_text("as it was")
    text = (
        "with sandbox.read_only([folder, folder / 'none']):\n    write()\n    say(sys.stdin.read())\nwrite()\nreturn 0"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", with_prelude(PROTECT.format(folder=str(tmp_path)), body(text))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert output(process).readline() == "Read-only file system\n"
    (tmp_path / "f").write_text("by somebody else")
    said, _ = process.communicate((tmp_path / "f").read_text())
    assert said == "by somebody else\nwritten\n"
    assert process.returncode == 0


def test_outside_of_a_kill_domain_nothing_is_mounted(tmp_path: Path) -> None:
    """The mounts would be those of the whole machine."""
    script = f"from axletree.host import sandbox\n{PROTECT.format(folder=str(tmp_path))}"
    ended = run(
        f"say = print\n{script}with sandbox.read_only([folder]):\n    say(sandbox.can_protect())\n    write()\n"
    )
    assert ended.stdout == "False\nwritten\n", ended.stderr
