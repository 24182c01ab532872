"""Expressions outside of the diagnosis: none is exponential, and those that meet long texts of strangers are linear."""

from __future__ import annotations

import importlib
import pkgutil
import re
from typing import TYPE_CHECKING

import pytest

import axletree
import axletree_runtime
from axletree.buildsystem.cmake import features, python_switch
from axletree.buildsystem.era import _RUNS_CMAKE
from axletree.environment import loader
from axletree.execute import process, progress
from axletree.execute.actions.test import _COUNT
from axletree.host import git
from axletree.host.facts import privacy
from axletree.host.run import Finished
from axletree.host.sdk.artifacts import parse_checksum
from axletree.package.drift import conda_recipe, scripts, vendored
from axletree.package.sdk.packed import parse_control
from axletree.recipe.checks import values
from axletree.recipe.match_spec import parse_match_spec
from axletree_runtime import _detect, _preload, _test_load
from support.ambiguity import verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = 500_000
"""Characters: an expression that is quadratic takes longer for them than a test may."""
SPACES = " " * MANY


def many(text: str) -> str:
    return text * (MANY // len(text))


def patterns_of(value: object, depth: int = 0) -> Iterator[re.Pattern[str] | re.Pattern[bytes]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth < 3:
        yield from patterns_of(tuple(value.values()), depth + 1)
    elif isinstance(value, (tuple, list)) and depth < 3:
        for each in value:
            yield from patterns_of(each, depth + 1)


def all_patterns() -> dict[tuple[str | bytes, int], str]:
    """Every expression that a module makes when it is imported, and where."""
    found: dict[tuple[str | bytes, int], str] = {}
    for package in (axletree, axletree_runtime):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if module.name.endswith("__main__"):
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                for pattern in patterns_of(value):
                    found.setdefault((pattern.pattern, pattern.flags), f"{module.name}:{name}")
    return found


PATTERNS = all_patterns()


def test_no_expression_is_exponential() -> None:
    assert len(PATTERNS) > 250
    found = {where: pattern for (pattern, flags), where in PATTERNS.items() if verdict(pattern, flags) == "exponential"}
    assert not found


@pytest.mark.parametrize(
    ("pattern", "search", "wanted"),
    [
        (r"(?:a+)+$", False, "exponential"),
        (r"(a*)*b", False, "exponential"),
        (r"(?:a|a)*b", False, "exponential"),
        (r"^Traceback:\n(?:[ \t]+[^\n]*\n)+?(?P<error>[A-Z]\w*)", False, "exponential"),
        (r"\*|(?:[=!<>]=?=?)?[a-z!]+(?:,(?:[=!<>]=?=?)?[a-z!]+)*x", False, "exponential"),
        (r"\s+$", True, "polynomial"),
        (r"\s+$", False, "linear"),
        (r"\s*(.*?)\s*$", False, "polynomial"),
        (r"a.*b.*c", False, "polynomial"),
        (r"(?m)^\s*x", True, "polynomial"),
        (r"(?m)^[ ]*x", True, "linear"),
        (r'(?:[^"\\]|\\.)*"', False, "linear"),
        (r"(?:\w+\.)*x", False, "linear"),
        (r"\d+", True, "linear"),
    ],
)
def test_the_verdict_is_right(pattern: str, *, search: bool, wanted: str) -> None:
    assert verdict(pattern, search=search) == wanted


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(
            lambda: values._CONDA_VERSIONS.fullmatch("1" + ",>=a" * 60 + " "), id="conda versions of a recipe"
        ),
        pytest.param(lambda: process._LOGIN.findall("://" + "a" * MANY), id="login of an address"),
        pytest.param(lambda: progress._SHELL.sub("", "a" + SPACES + "b"), id="command of ninja"),
        pytest.param(lambda: _COUNT.findall("1" * MANY + "x"), id="counts of a test"),
        pytest.param(lambda: features._SUMMARY.match("-- " + SPACES + "a" + SPACES + "b"), id="summary of CMake"),
        pytest.param(lambda: features._TROUBLE.search(many("turn")), id="trouble of CMake"),
        pytest.param(lambda: _RUNS_CMAKE.search(many("cmake ")), id="setup.py"),
        pytest.param(lambda: parse_match_spec("a" + SPACES + "]"), id="match spec, spaces"),
        pytest.param(lambda: parse_match_spec("a[" + "b" * MANY + "]"), id="match spec, table"),
        pytest.param(lambda: parse_match_spec(many("a::") + "["), id="match spec, channels"),
        pytest.param(lambda: loader._CACHED.findall("\n" * MANY + "x"), id="listing of ldconfig"),
        pytest.param(lambda: loader._MISSING.search("a" * MANY), id="the loader's words"),
        pytest.param(lambda: loader._MISSING.search(many("a: version `")), id="the loader's versions"),
        pytest.param(lambda: git._ADDRESS_IN_TEXT.sub("", "a" * MANY), id="words of git"),
        pytest.param(lambda: privacy._CREDENTIALS.sub("", "a" * MANY), id="facts, logins"),
        pytest.param(lambda: privacy._QUERY.sub("", "?" + many("token")), id="facts, queries"),
        pytest.param(lambda: privacy._TOKENS.sub("", many("eyJaaaaaaaaaaaa-")), id="facts, tokens"),
        pytest.param(lambda: conda_recipe._SET.match("{% set a =" + " " * 8000), id="recipe of conda, set"),
        pytest.param(lambda: conda_recipe._IF.match("{% if" + " " * 8000), id="recipe of conda, if"),
        pytest.param(lambda: scripts._FUNCTION.match("f" + SPACES), id="function of a script"),
        pytest.param(lambda: scripts._ARCHIVE.findall(many("a-linux-.")), id="archives of a script"),
        pytest.param(
            lambda: vendored._STRING.search('#define A_VERSION "1' + many(".1")), id="version in a vendored header"
        ),
        pytest.param(lambda: parse_control("Package: a\nX: y" + SPACES + "z", filename="x"), id="control file"),
        pytest.param(
            lambda: parse_checksum("0" * 64 + "  a" + SPACES + "b", filename="a" + SPACES + "b", shown="s"),
            id="checksum",
        ),
        pytest.param(lambda: _preload._LACKS.search("a" * MANY), id="what the loader lacks"),
        pytest.param(lambda: _preload._VERSION.search(many("version `")), id="what version the loader lacks"),
        pytest.param(lambda: _test_load._LACKS.search("a" * MANY), id="what a test's loader lacks"),
        pytest.param(lambda: _detect._SAID.findall("\n" * MANY), id="list of GPUs"),
        pytest.param(lambda: python_switch._words_with("python3", "a" * MANY), id="value of CMake's cache"),
    ],
)
def test_long_texts_come_to_an_end(ask: Callable[[], object]) -> None:
    """Nothing is timed: where an expression goes back and forth, this stands still."""
    ask()


def test_what_they_find_is_as_before() -> None:
    assert python_switch._words_with("py3|py4", "/a/py3.1/b;x -Lpy4 c") == ["/a/py3.1/b", "-Lpy4"]
    assert values._CONDA_VERSIONS.fullmatch(">=1.2,!=1.5,<2|==3!1.0")
    assert not values._CONDA_VERSIONS.fullmatch(">=1.2,")
    assert process._LOGIN.findall("https://me:secret@host a://token@b c://d/e") == [
        ("me", ":", "secret"),
        ("token", "", ""),
    ]
    assert progress._SHELL.sub("", ": && /usr/bin/c++ -o a && :") == "/usr/bin/c++ -o a"
    assert _COUNT.findall("3 passed, 12 failed") == [("3", "passed"), ("12", "failed")]
    summary = features._SUMMARY.match("--   Python version   : 3.11")
    assert summary is not None
    assert summary.groups() == ("Python version", "3.11")
    assert _RUNS_CMAKE.search("check_call(['x', cmake, y, cmake, '--build'])")
    spec = parse_match_spec("conda-forge::numpy >=1.2, <2 [build_number='3', md5=abc]")
    assert spec is not None
    assert (spec.name, spec.version, spec.channel) == ("numpy", ">=1.2,<2", "conda-forge")
    assert spec.more == {"build_number": "3", "md5": "abc"}
    failed = git.git_failure("clone", Finished(1, b"", b"clone of git+https://me:secret@host/x failed"), place="")
    assert "secret" not in str(failed)
    assert privacy._QUERY.sub(r"\1***", "u?x=1&my-auth-token=abc&y=2") == "u?x=1&my-auth-token=***&y=2"
    assigned = conda_recipe._SET.match('{% set version = "1.2 b" -%}')
    assert assigned is not None
    assert assigned.groups() == ("version", "1.2 b")
    condition = conda_recipe._IF.match("{%- if linux and x -%}")
    assert condition is not None
    assert condition.groups() == ("if", "linux and x")
    assert parse_control("Package: a\nVersion:  1.2 \t\n", filename="x").version == "1.2"
    assert parse_checksum(f"{'a' * 64} *dir/x.tar\n", filename="x.tar", shown="s") == "a" * 64
    assert _detect._SAID.findall("  Name:                    gfx90a  \n\ngfx1100:xnack-\n") == ["gfx90a", "gfx1100"]
