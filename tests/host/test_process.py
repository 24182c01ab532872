"""Programs of a stage: their output in its log, without secrets, and the progress that they tell."""

from __future__ import annotations

import io
import os
import re
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from axletree.core.errors import StageError
from axletree.core.secrets import looks_secret
from axletree.execute.process import Log, check_program, run_program, secrets_of
from support.elfs import need

if TYPE_CHECKING:
    from pathlib import Path

ENV = {"PATH": "/usr/bin:/bin"}


class Told:
    """What was told as progress."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int | None, int | None]] = []

    def __call__(self, message: str, *, done: int | None = None, total: int | None = None) -> None:
        self.steps.append((message, done, total))


@pytest.fixture
def stream() -> io.BytesIO:
    return io.BytesIO()


def run(script: str, folder: Path, stream: io.BytesIO, **more: Any) -> tuple[int, Told]:
    told = Told()
    log = Log(stream, secrets=more.pop("secrets", ()))
    code = run_program(["sh", "-c", script], cwd=folder, env={**ENV, **more}, log=log, progress=told, quiet=True)
    return code, told


def test_both_outputs_go_to_the_log_in_order(tmp_path: Path, stream: io.BytesIO) -> None:
    code, _ = run("echo one; echo two >&2; printf three", tmp_path, stream)
    assert (code, stream.getvalue()) == (0, b"one\ntwo\nthree")


def test_the_program_sees_the_environment_that_it_is_given_and_no_input(tmp_path: Path, stream: io.BytesIO) -> None:
    code, _ = run("env | grep -v ^_= | grep -v ^PWD= | grep -v ^SHLVL= | sort; cat; pwd", tmp_path, stream, A="b")
    assert code == 0
    assert stream.getvalue().decode() == f"A=b\nPATH=/usr/bin:/bin\n{tmp_path}\n"


def test_progress_of_ninja_is_seen(tmp_path: Path, stream: io.BytesIO) -> None:
    lines = ["[1/12] Building a.o", "[ 2/12]  Building b.o", "text [3/12]", "[x/y] no", "[12/12]", "[4/12 tests] no"]
    script = "\n".join(f"echo '{line}'" for line in lines)
    _, told = run(script, tmp_path, stream)
    assert told.steps == [("Building a.o", 1, 12), ("Building b.o", 2, 12), ("", 12, 12)]
    assert stream.getvalue().decode().splitlines() == lines


SETUP = """
from setuptools import Extension, setup
setup(name="fast", ext_modules=[Extension("fast", ["a.c", "src/b.c"]), Extension("slow", ["c.c"])])
"""
MAKE = "all: a.o b.o c.o\nb.o: src/b.c\n\tcc -c src/b.c -o b.o\n%.o: %.c\n\tcc -c $< -o $@\n"


@pytest.mark.parametrize(
    ("command", "needed"), [(f"{sys.executable} setup.py build_ext", "cc"), ("make --no-print-directory", "make")]
)
def test_objects_that_setuptools_and_make_compile_are_counted(
    command: str, needed: str, tmp_path: Path, stream: io.BytesIO
) -> None:
    need("cc", needed)
    (tmp_path / "src").mkdir()
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "Makefile").write_text(MAKE)
    for name in ("a.c", "src/b.c", "c.c"):
        (tmp_path / name).write_text(
            f"static int {name[-3]} = 1;\nint *of_{name[-3]}(void) {{ return &{name[-3]}; }}\n"
        )
    code, told = run(command, tmp_path, stream)
    assert code == 0, stream.getvalue().decode()
    assert sorted(message for message, _, _ in told.steps) == ["compiling a.c", "compiling b.c", "compiling c.c"]
    assert [(done, total) for _, done, total in told.steps] == [(1, None), (2, None), (3, None)]


def test_output_that_is_no_text_is_kept(tmp_path: Path, stream: io.BytesIO) -> None:
    code, told = run(r"printf '[1/2] \377\n\000\n'", tmp_path, stream)
    assert (code, stream.getvalue()) == (0, b"[1/2] \xff\n\x00\n")
    assert told.steps == [("\ufffd", 1, 2)]


def test_exit_codes_and_signals(tmp_path: Path, stream: io.BytesIO) -> None:
    assert run("exit 7", tmp_path, stream)[0] == 7
    assert run("kill -9 $$", tmp_path, stream)[0] == -9


def test_the_command_is_written_down_unless_asked_not_to(tmp_path: Path, stream: io.BytesIO) -> None:
    log = Log(stream)
    run_program(["echo", "a b"], cwd=tmp_path, env=ENV, log=log, progress=Told())
    assert stream.getvalue() == b"$ echo a b\na b\n"


@pytest.mark.parametrize(
    ("script", "message"),
    [("exit 3", "the build failed with exit code 3"), ("kill -11 $$", "the build was terminated by SIGSEGV")],
)
def test_a_program_that_must_succeed(tmp_path: Path, stream: io.BytesIO, script: str, message: str) -> None:
    log = Log(stream)
    with pytest.raises(StageError, match=message):
        check_program(["sh", "-c", script], cwd=tmp_path, env=ENV, log=log, progress=Told(), what="the build")


def test_a_program_that_is_not_there(tmp_path: Path, stream: io.BytesIO) -> None:
    with pytest.raises(StageError, match="cannot run nosuch: No such file or directory"):
        run_program(["nosuch"], cwd=tmp_path, env=ENV, log=Log(stream), progress=Told())


@pytest.mark.parametrize(
    "name",
    [
        *("TOKEN", "GITHUB_TOKEN", "aws_secret_access_key", "PGPASSWORD", "DB_PASSWD", "API_KEY", "APIKEY"),
        *("SSH_AUTH_SOCK", "GPG_PASSPHRASE", "HTTP_AUTHORIZATION", "PROXY_AUTH"),
        *("DB_PASS", "SESSION_COOKIE", "GH_PAT", "SIGNING_KEY"),
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "HOME", "CFLAGS", "TORCH_CUDA_ARCH_LIST", "KEYBOARD", "COMPASS", "LANG"),
        *("GIT_AUTHOR_NAME", "AUTHORS"),
    ],
)
def test_names_of_others(name: str) -> None:
    assert not looks_secret(name)


def test_secrets_longest_first_and_no_short_ones() -> None:
    """One that is the beginning of another must not leave the other's end; ``1`` would blot out half of a log."""
    environ = {"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefghij", "C_TOKEN": "1", "PATH": "/secret"}
    assert secrets_of(environ) == (b"abcdefghij", b"abcdefgh")


def test_logins_of_settings_are_secrets_too() -> None:
    assert secrets_of({}, ["https://me:s3cr3t-word@i.example/simple", "/wheels"]) == (b"s3cr3t-word",)


def test_secrets_do_not_reach_the_log(tmp_path: Path, stream: io.BytesIO) -> None:
    environ = {
        "UPLOAD_TOKEN": "s3cr3t-value",
        "KEY_PASSWORD": "line one\nline two",
        "PIP_INDEX_URL": "https://u:p%40ss-word@i.example/simple",
    }
    script = """
        echo "token s3cr3t-value and s3cr3t-value"
        echo 'header: line two'
        echo '[1/2] fetch https://u:p%40ss-word@i.example/simple/x'
        echo 'decoded p@ss-word'
        echo 'other https://name:other-word@h.example/ git+ssh://git@h.example/r'
    """
    run(script, tmp_path, stream, secrets=secrets_of(environ))
    text = stream.getvalue().decode()
    for secret in ("s3cr3t", "line two", "p%40ss-word", "p@ss-word", "other-word"):
        assert secret not in text
    assert "token *** and ***" in text
    assert "i.example/simple/x" in text


def test_secrets_do_not_reach_what_is_said_and_what_is_found_again(stream: io.BytesIO) -> None:
    log = Log(stream, secrets=(b"s3cr3t",))
    log.say("error: s3cr3t at https://u:p@h.example/")
    assert stream.getvalue() == b"error: *** at https://***@h.example/\n"
    assert log.redact("s3cr3t") == "***"
    assert log.last_match(re.compile("error: (.*) at")) == "***"


def test_the_last_match_is_the_latest(stream: io.BytesIO) -> None:
    log = Log(stream)
    for number in range(1000):
        log.say(f"{number} passed")
    assert log.last_match(re.compile(r"(\d+) passed")) == "999"
    assert log.last_match(re.compile(r"^(5) passed")) is None
    assert log.last_match(re.compile(r"(\d+) failed")) is None


def test_what_was_printed_is_in_the_log_while_the_program_runs(tmp_path: Path) -> None:
    """Somebody follows the log of a build that takes an hour."""
    path = tmp_path / "log"
    script = (
        "import pathlib, sys, time\n"
        "print('begun', flush=True)\n"
        "while 'begun' not in pathlib.Path(sys.argv[1]).read_text(): time.sleep(0.01)"
    )
    with path.open("wb") as stream:
        code = run_program(
            [sys.executable, "-c", script, str(path)],
            cwd=tmp_path,
            env=ENV,
            log=Log(stream),
            progress=Told(),
            quiet=True,
        )
    assert code == 0


def test_a_program_left_in_the_background_is_not_waited_for(tmp_path: Path, stream: io.BytesIO) -> None:
    """It holds the output open, and may print for ever."""
    pids = tmp_path / "pids"
    script = f"echo begun; sleep 600 & echo $! >> {pids}; yes & echo $! >> {pids}; sleep 0.3; exit 5"
    try:
        code, _ = run(script, tmp_path, stream)
    finally:
        for pid in pids.read_text().split():
            os.kill(int(pid), signal.SIGKILL)
    assert code == 5
    assert stream.getvalue().startswith(b"begun\n")


def test_all_that_was_printed_before_the_end_is_in_the_log(tmp_path: Path, stream: io.BytesIO) -> None:
    for _attempt in range(20):
        stream.truncate(0)
        stream.seek(0)
        assert run("seq 1 9000; printf end", tmp_path, stream)[0] == 0
        assert stream.getvalue().split() == [*(str(number).encode() for number in range(1, 9001)), b"end"]


def test_output_without_ends_of_lines_does_not_gather_in_memory(tmp_path: Path) -> None:
    """It reaches the log while the program runs, and is cut between words: a secret must stay in one piece."""

    class Pieces(io.BytesIO):
        longest = 0

        def write(self, data: Any, /) -> int:
            self.longest = max(self.longest, len(data))
            return super().write(data)

    pieces = Pieces()
    run("yes s3cr3t-value | head -n 60000 | tr '\\n' ' '", tmp_path, pieces, secrets=(b"s3cr3t-value",))
    assert pieces.getvalue().split() == [b"***"] * 60000
    assert pieces.longest <= 1 << 16
