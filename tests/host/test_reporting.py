"""How commands print their reports: text, or one line of JSON in the one envelope."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from axletree import __version__
from axletree.cli.reporting import ReportCommand, Reported, all_commands, report_types, until_error, wants_json
from axletree.core.errors import UsageError


class Small(msgspec.Struct):
    """A report."""

    path: Path
    count: int = 2


class Other(msgspec.Struct):
    """Another one."""


@click.command(cls=ReportCommand, report=Small)
@click.argument("name")
def ends(name: str) -> Reported:
    """Say how a name ends."""
    if not wants_json():
        click.echo("working", err=True)
    report = Small(path=Path(name)) if name != "other" else Other()
    if name == "surrogate":
        return Reported(report, lambda: "odd \udcff")
    return Reported(report, lambda: (f"line {number}" for number in (1, 2)), exit_code=1)


@click.group()
def group() -> None:
    """Stand for the command line."""


@group.group()
def env() -> None:
    """Stand for a group in it."""


@click.command(cls=ReportCommand, report=Small)
@click.argument("names", nargs=-1)
def each(names: tuple[str, ...]) -> Reported:
    """Work on names up to one that is bad, and write them as bytes."""

    def work(name: str) -> bytes:
        if name == "bad":
            raise UsageError("a bad name")
        return os.fsencode(f"{name}\n")

    done, error = until_error(names, work)
    return Reported(Small(path=Path(), count=len(done)), lambda: b"".join(done), error=error)


env.add_command(ends)
env.add_command(each)


def call(*args: str) -> tuple[int, str, str]:
    """The value that the command returns, what it printed, and what it said beside."""
    done = CliRunner().invoke(group, args, standalone_mode=False, catch_exceptions=False, prog_name="axletree")
    return done.return_value, done.stdout, done.stderr


def test_text() -> None:
    assert call("env", "ends", "a") == (1, "line 1\nline 2\n", "working\n")


def test_json_is_one_line_in_the_envelope() -> None:
    code, out, err = call("env", "ends", "a/b", "--json")
    assert (code, err, out.count("\n")) == (1, "", 1)
    assert json.loads(out) == {
        "schema": 1,
        "command": "env ends",
        "version": __version__,
        "result": {"path": "a/b", "count": 2},
    }


def test_names_that_are_not_utf8_are_kept() -> None:
    _, out, _ = call("env", "ends", "--json", os.fsdecode(b"a\xff"))
    assert os.fsencode(json.loads(out)["result"]["path"]) == b"a\xff"


def test_text_that_is_not_utf8_is_shown_with_numbers_and_bytes_are_written_as_they_are() -> None:
    done = CliRunner().invoke(group, ["env", "each", os.fsdecode(b"\xff")], prog_name="axletree")
    assert done.stdout_bytes == b"\xff\n"
    assert call("env", "ends", "surrogate")[1] == "odd \\udcff\n"


def test_what_was_done_before_an_error_is_reported() -> None:
    more: tuple[tuple[str, ...], ...] = ((), ("--json",))
    for words, out in zip(more, (b"one\ntwo\n", b'"count":2}}\n'), strict=True):
        done = CliRunner().invoke(group, ["env", "each", "one", "two", "bad", "three", *words], prog_name="axletree")
        assert done.stdout_bytes.endswith(out)
        assert isinstance(done.exception, UsageError)


def test_commands_are_found_in_groups() -> None:
    assert [name for name, _ in all_commands(group)] == ["env each", "env ends"]
    assert report_types(group) == {"env each": Small, "env ends": Small}


def test_a_command_reports_only_what_it_declares() -> None:
    with pytest.raises(TypeError, match=r"axletree env ends reported .*Other"):
        call("env", "ends", "other")
