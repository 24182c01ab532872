"""Where text goes, how much of it there is, in which colours, and that no command is silent for long."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest

from axletree.cli import main as cli_main
from axletree.cli import notes
from axletree.cli.build import _view
from axletree.cli.build import command as build_command
from axletree.cli.main import LazyGroup, wants_color
from axletree.cli.notes import SILENCE, Heartbeat, at_work, is_quiet, print_line, say_aside, speaking
from axletree.view.plain import running_text
from support import events
from support.events import fold
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


def beats(clock: Clock, heartbeat: Heartbeat, seconds: int) -> None:
    """Let seconds go by, and look at the clock after each."""
    for _ in range(seconds):
        clock.time += 1
        heartbeat.beat()


def test_a_silent_command_speaks_once_a_minute() -> None:
    said: list[str] = []
    clock = Clock()
    heartbeat = Heartbeat("thin", said.append, what="torch.whl", now=clock)
    beats(clock, heartbeat, 59)
    assert said == []
    beats(clock, heartbeat, 66)
    assert said == ["still running thin: torch.whl, 1 min 00 s", "still running thin: torch.whl, 2 min 00 s"]
    heartbeat.at_work("libtorch_cuda.so")
    beats(clock, heartbeat, 60)
    assert said[2:] == ["still running thin: libtorch_cuda.so, 3 min 00 s"]


def test_a_command_that_speaks_has_no_heartbeat() -> None:
    said: list[str] = []
    clock = Clock()
    heartbeat = Heartbeat("lock", said.append, now=clock)
    for _ in range(20):
        beats(clock, heartbeat, 50)
        heartbeat.spoke()
    assert said == []
    beats(clock, heartbeat, 60)
    assert said == ["still running lock, 17 min 40 s"]


def test_the_heartbeat_beats_by_itself_and_ends_with_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notes, "SILENCE", 0.0)
    monkeypatch.setattr(notes, "_LOOK", 0.001)
    said = ""

    def heard() -> bool:
        nonlocal said
        said += capsys.readouterr().err
        return "still running lock: py311, " in said

    with speaking("lock", quiet=False):
        at_work("py311")
        until(heard)
    assert notes._SPEECH.heartbeat is None


def test_what_is_said_is_what_is_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    with speaking("lock", quiet=False):
        heartbeat = notes._SPEECH.heartbeat
        assert heartbeat is not None
        clock = Clock()
        monkeypatch.setattr(heartbeat, "_now", clock)
        clock.time += SILENCE
        say_aside("asking the index\nfor torch")
        assert heartbeat._spoke == clock.time
        clock.time += SILENCE
        print_line("a.whl")
        assert heartbeat._spoke == clock.time
        assert heartbeat._what == "asking the index"


def test_quiet_means_no_notes_and_no_heartbeat(capsys: pytest.CaptureFixture[str]) -> None:
    with speaking("lock", quiet=True):
        assert is_quiet()
        say_aside("asking the index")
        assert notes._SPEECH.heartbeat is None
        print_line("the result")
    assert capsys.readouterr() == ("the result\n", "")
    assert not is_quiet()


def test_a_build_is_at_its_oldest_stage() -> None:
    view = fold(events.green_run()[:30])
    oldest = min(view.having("running"), key=lambda stage: stage.started or 0.0)
    assert running_text(view).startswith(oldest.stage)
    assert running_text(fold(events.green_run())) == ""


# Colours


@pytest.mark.parametrize(
    ("choice", "environ", "color"),
    [
        ("auto", {}, None),
        ("auto", {"CI": "true"}, None),
        ("auto", {"NO_COLOR": ""}, None),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "0"}, None),
        ("auto", {"CLICOLOR_FORCE": "1"}, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_who_decides_on_colours(choice: str, environ: dict[str, str], color: bool | None) -> None:  # noqa: FBT001
    assert wants_color(choice, environ) is color


def axletree(*words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    argv = [sys.executable, "-m", "axletree", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=clean | environ)


@pytest.mark.parametrize(
    ("words", "environ", "coloured"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        ((), {"FORCE_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
    ],
)
def test_results_and_errors_have_the_colours_that_were_asked_for(
    tmp_path: Path, words: tuple[str, ...], environ: dict[str, str], *, coloured: bool
) -> None:
    (tmp_path / "build.log").write_text(
        "x.c:1:10: fatal error: zstd.h: No such file or directory\nmake: *** [x] Error 1\n"
    )
    result = axletree(*words, "diagnose", tmp_path / "build.log", **environ)
    assert result.returncode == 1
    assert bool(COLOUR.search(result.stdout)) == coloured
    error = axletree(*words, "check", tmp_path / "no.toml", **environ)
    assert error.returncode == 2
    assert bool(COLOUR.search(error.stderr)) == coloured
    assert COLOUR.sub("", error.stderr).startswith("error: ")


# The group


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """How the group lets its command speak."""
    found: list[dict[str, Any]] = []
    real = notes.speaking

    def noted(name: str, **how: Any) -> Any:
        found.append({"name": name, **how})
        return real(name, **how)

    monkeypatch.setattr(notes, "speaking", noted)
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: click.Command("any", callback=lambda: None, params=[]))
    return found


def test_a_command_is_told_of_by_its_file_and_by_no_secret(tmp_path: Path, told: list[dict[str, Any]]) -> None:
    (tmp_path / "a.whl").touch()
    with pytest.raises(SystemExit):
        cli_main.main(["thin", "--token", "s3cret", str(tmp_path / "a.whl")])
    assert told == [{"name": "thin", "quiet": False, "what": str(tmp_path / "a.whl")}]


def test_commands_that_are_a_terminal_of_their_own_have_no_heartbeat(told: list[dict[str, Any]]) -> None:
    for name in ("shell", "run-stage"):
        with pytest.raises(SystemExit):
            cli_main.main(["--quiet", name])
    with pytest.raises(SystemExit):
        cli_main.main(["-q", "lock"])
    assert told == [{"name": "lock", "quiet": True, "what": ""}]


def test_a_quiet_build_shows_no_events(capsys: pytest.CaptureFixture[str]) -> None:
    for quiet in (True, False):
        with click.Context(build_command), speaking("build", quiet=quiet):
            view, tick = _view()
            with view:
                for event in events.failing_run():
                    view.handle(event, event.time)
                    tick()
        assert (capsys.readouterr().out == "") == quiet
