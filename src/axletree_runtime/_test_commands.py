"""Tests of console scripts: each starts a program that is there and answers as the manifest says."""

from __future__ import annotations

import importlib
import json
import os
import sys
import sysconfig
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._testing import PASSED, Case, failed, skipped, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._sdk import Command, SdkPackage
    from ._testing import Bench, Outcome

_OWN = """
def run(words):
    import contextlib, importlib, io
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            code = importlib.import_module(words[0] + "._cli").main(words[1:])
        except SystemExit as stop:
            code = stop.code
    return [code or 0, said.getvalue()]
"""
_LAUNCH = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from importlib import import_module
import_module(sys.argv.pop(1) + "._launch").launch(sys.argv.pop(1), sys.argv.pop(1))
"""


def command_cases(bench: Bench) -> Iterator[Case]:
    """Tests of console scripts: those of the selector, and all that packages ship."""
    sdk = bench.sdk
    for word, expect in (("--help", "usage:"), ("version", sdk.file.version), ("targets", "")):
        run = partial(_own_command, bench, word, expect)
        yield Case("command", sdk.file.dist, f"{sdk.file.command} {word}", run)
    for package in bench.present:
        for each in sdk.shipped(package).commands:
            yield Case("command", package.dist, each.name, partial(_command, bench, package, each))
        if bench.dists.get(package.dist):
            yield Case("command", package.dist, "entry points", partial(_entry_points, bench, package))


def run_own_command(bench: Bench, *words: str) -> tuple[int, str]:
    """Exit code of the SDK's own command, and what it prints; text of the process where it broke."""
    said, ran = bench.python(_OWN, bench.sdk.file.module, *words)
    if not said or said["error"]:
        return ran.code or 1, said.get("error") or f"{ran.end}: {ran.tail}"
    return said["value"][0], said["value"][1]


def _own_command(bench: Bench, word: str, expect: str) -> Outcome:
    """The SDK's own command answers."""
    status, text = run_own_command(bench, word)
    if status or expect not in text:
        called = f"{bench.sdk.file.command} {word}"
        return failed(
            f"{called} exited with {status} and printed {text[:200]!r}, expected {expect!r}",
            bench.again(bench.sdk.file.dist),
        )
    return PASSED


def _command(bench: Bench, package: SdkPackage, command: Command) -> Outcome:
    """A program is there; if the manifest says how to call it, it answers."""
    folder = bench.installed.get(package)
    if folder is not None:
        path = folder / command.path
        if not path.is_file():
            return failed(f"{path} is missing", bench.again(package.dist))
        if os.name == "posix" and not os.access(path, os.X_OK):
            return failed(f"{path} is not executable", bench.again(package.dist))
    devel = bench.sdk.devel_package()
    if command.args and command.devel and devel is not None and devel not in bench.present:
        return skipped(
            f"the program needs the whole SDK, but {devel.dist} is not installed", bench.sdk.install_hint([devel])
        )
    if not command.args:
        return PASSED if folder is not None else skipped("the manifest does not specify how to run the program")
    ran = bench.spawn([*_words(bench, package, command), *command.args])
    text = ran.out + ran.error
    called = " ".join((command.name, *command.args))
    lacking = sorted(soname for soname in bench.missing if soname in text)
    if lacking and (ran.code not in command.expect_exit or command.expect not in text):
        return bench.lacks(lacking)
    if ran.late or ran.code not in command.expect_exit:
        return failed(f"{called} {ran.end or 'exited with code 0'}: {ran.tail}", bench.again(package.dist))
    if command.expect not in text:
        return failed(f"{called} should print {command.expect!r}, but printed {ran.tail or 'nothing'}")
    return PASSED


def _words(bench: Bench, package: SdkPackage, command: Command) -> list[str]:
    """How a user starts a command: its console script, or where none is installed the function behind it."""
    script = _script(bench, package.dist, command.name)
    if script is not None:
        return [str(script)]
    return [
        *(sys.executable, "-I", "-S", "-c", _LAUNCH),
        *(json.dumps(sys.path), bench.sdk.file.module, package.folder, command.name),
    ]


def _script(bench: Bench, dist: str, name: str) -> Path | None:
    """The file of a console script, as RECORD tells."""
    for found in bench.dists.get(dist, [])[:1]:
        if name not in dict(found.scripts):
            continue
        for row in found.record:
            path = Path(row.path)
            if path.name in (name, f"{name}.exe") and path.parts[0] == ".." and (found.site / path).is_file():
                return Path(os.path.normpath(found.site / path))
        path = Path(sysconfig.get_path("scripts"), name)
        if found.site == Path(sysconfig.get_path("platlib")) and path.is_file():
            return path
    return None


def _entry_points(bench: Bench, package: SdkPackage) -> Outcome:
    """Each console script calls a function that is there, and each is one of a program that is shipped."""
    shipped = {each.name for each in bench.sdk.shipped(package).commands}
    problems = []
    for name, value in (point for found in bench.dists[package.dist][:1] for point in found.scripts):
        module, _, function = value.partition(":")
        try:
            there = callable(getattr(importlib.import_module(module), function, None))
        except ImportError:
            there = False
        if not there:
            problems.append(f"{name} calls {value}, which does not exist")
        elif name not in shipped:
            problems.append(f"{name} is a console script, but {package.dist} does not contain that program")
    return some(problems, bench.again(package.dist))
