"""Recipes from text: what is accepted, how faults are placed, what is not repeated as a consequence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import RecipeError, render_problem
from axletree.recipe.parse import parse_recipe
from support.recipes import SMALL, problems_of, recipe_of

BARE = 'name = "small"\nversion = "1.0"\nsource = { path = "src" }\n'


def messages(text: str) -> list[str]:
    return [f"{problem.key}: {problem.message}" for problem in problems_of(text)]


def test_a_valid_recipe() -> None:
    recipe = recipe_of()
    assert recipe.name == "small"
    assert recipe.axes == {"python": ("3.11", "3.12"), "gpu": ("cpu", "cu130")}
    assert recipe.packages["small"].from_ == "bind"


def test_the_smallest_recipe() -> None:
    assert messages(BARE) == []


def test_a_fault_has_file_line_key_excerpt_and_hint() -> None:
    (problem,) = problems_of(SMALL.replace('environment = "build"\ninputs', 'enviroment = "build"\ninputs'))
    assert (problem.file, problem.line, problem.key) == ("recipe.toml", 21, "stages.bind.enviroment")
    assert problem.excerpt == 'enviroment = "build"'
    assert problem.hint == "did you mean 'environment'?"


def test_faults_are_in_the_order_of_the_file() -> None:
    text = SMALL.replace('"1.0"', '"one"').replace('from = "bind"', 'from = "bond"').replace('"lib"]', '"lob"]')
    lines = [problem.line or 0 for problem in problems_of(text)]
    assert len(lines) >= 3
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # A misspelt key is read as the one that was meant.
        ('axes = ["gpu"]', 'axis = ["gpu"]', ["stages.lib.axis: unknown key"]),
        # What a wrong value would lead to elsewhere is not told.
        ('axes = ["gpu"]', "axes = 3", ["stages.lib.axes: expected a list of strings, found the number 3"]),
        ('gpu = ["cpu", "cu130"]', 'gpu = "cpu"', ["axes.gpu: expected a list of strings, found the string 'cpu'"]),
        ('action = "run"', 'action = "ran"', ["stages.lib.action: unexpected value 'ran'"]),
        ('version = "1.0"\n', "", ["version: missing required key"]),
        # A name that is no name is still not unknown.
        ("[stages.lib]", '[stages."a lib"]', None),
    ],
)
def test_consequences_are_not_told(old: str, new: str, expected: list[str] | None) -> None:
    found = messages(SMALL.replace(old, new, 1))
    if expected is not None:
        assert found == expected
    else:
        assert "is not a name" in found[0]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a = [1", 1, "Unclosed array"),
        ("a = 1\n\nb = \n", 3, "Invalid value"),
        ("a = 1\n[", 2, ""),
        ("a = " + "9" * 5000, None, ""),
        ("a = " + "[" * 5000, None, "the tables or arrays in the file are nested too deeply"),
        ("\x00", 1, ""),
        ("\ufeffa = 1", 1, ""),
    ],
)
def test_what_is_no_toml(text: str, line: int | None, message: str) -> None:
    (problem,) = problems_of(text)
    assert problem.line == line
    assert message in problem.message
    assert problem.file == "recipe.toml"


def test_an_excerpt_shows_no_credentials_and_no_control_characters() -> None:
    (problem,) = problems_of(f'{BARE}colour = "https://user:secret@files.example/\x01"')
    assert "secret" not in render_problem(problem)
    (problem,) = problems_of(f'{BARE}"\\u001b[31m" = 1 # https://user:secret@files.example')
    shown = render_problem(problem)
    assert "secret" not in shown
    assert "\x1b" not in shown


def test_a_long_line_is_cut() -> None:
    (problem,) = problems_of(f'{BARE}colour = "{"x" * 1000}"')
    assert problem.excerpt is not None
    assert len(problem.excerpt) == 120


@pytest.mark.parametrize(
    "line",
    [
        'source = { pypi = "small" }',
        'source = { url = "https://files.example/{name}-{version}.tar.gz", sha256 = "' + "0" * 64 + '" }',
        'source = { git = "https://git.example/small", ref = "v{version}", submodules = true }',
        'source = { git = "file:///srv/git/small", ref = "main" }',
        'source = { path = "..", exclude = ["*.o"] }',
        'source = { wheel = "small-1.0-py3-none-any.whl" }',
        'source = { wheel = "https://files.example/s.whl", sha256 = "' + "0" * 64 + '" }',
    ],
)
def test_sources(line: str) -> None:
    assert messages(BARE.replace('source = { path = "src" }', line)) == []


@pytest.mark.parametrize(
    "git",
    [
        *("--upload-pack=x", "ext::sh -c x", "https:// x", ""),
        *("ssh://git.example/x", "git://git.example/x", "http://git.example/x", "u@git.example:x", "../x", "/x"),
    ],
)
def test_addresses_that_git_is_not_called_with(git: str) -> None:
    """Neither by ``check`` nor by ``lock``: what passes the one must not fail in the other."""
    assert messages(BARE.replace('path = "src"', f'git = "{git}", ref = "main"')) == [
        "source.git: the git URL is not supported: it must begin with https:// or file://"
    ]


def test_a_circle_is_told_once_and_every_circle_is() -> None:
    stages = "".join(
        f'[stages.{name}]\naction = "run"\ncommands = ["true"]\ninputs = {inputs}\n'
        for name, inputs in {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["e"], "e": ["d"], "f": ["a", "d"]}.items()
    )
    circles = [message.rpartition("cycle: ")[2] for message in messages(BARE + stages)]
    assert circles == ["a -> b -> c -> a", "d -> e -> d"]


def test_a_long_chain_of_stages_is_no_circle() -> None:
    chain = "".join(
        f'[stages.s{n}]\naction = "run"\ncommands = ["true"]\ninputs = {[f"s{n - 1}"] if n else []}\n'
        for n in range(2000)
    )
    assert messages(BARE + chain) == []


def test_wheels_of_pythons_and_platforms_are_told_apart_by_their_tags() -> None:
    text = SMALL.replace('local = "{gpu}"\nrequires', "requires")
    assert messages(text) == [
        "packages.small: variants py311-cpu and py311-cu130 would have the same version in the same index"
    ]
    assert messages(SMALL.replace('local = "{gpu}"\nrequires', 'index = "{gpu}"\nrequires')) == []


def test_overrides_are_checked_with_the_axes_of_what_they_change() -> None:
    override = '\n[[override]]\nwhen = { gpu = "cpu" }\nstage = "lib"\nenv = { A = "{gpu} {python}" }\n'
    assert messages(SMALL + override) == ["override[0].env.A: {python} uses axis 'python', which is not declared here"]


def test_as_many_combinations_as_fit_in_memory() -> None:
    axes = "".join(f"{axis} = {[str(n) for n in range(30)]}\n" for axis in "abc")
    assert messages(f"{BARE}[axes]\n{axes}") == [
        "axes: the axes have 27,000 combinations of values, more than the limit of 20,000"
    ]


@given(st.text(st.sampled_from("ab=[]{}\"'\n.,# 1\\")))
def test_any_text_is_a_recipe_or_a_recipe_error(text: str) -> None:
    with pytest.raises(RecipeError):
        parse_recipe(text, filename="recipe.toml")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_missing_lines_give_problems_and_no_crash(count: int) -> None:
    lines = SMALL.splitlines(keepends=True)
    found = [problems_of("".join(lines[:start] + lines[start + count :])) for start in range(len(lines))]
    assert all(problem.message and problem.file == "recipe.toml" for problems in found for problem in problems)
    assert sum(map(bool, found)) > len(lines) / 2


@given(
    st.integers(0, len(SMALL) - 1), st.integers(1, 30), st.sampled_from(["", "x", '"', "[", "{", "}", "=", "1", "\n"])
)
def test_a_damaged_recipe_gives_problems_and_no_crash(at: int, length: int, new: str) -> None:
    for problem in problems_of(SMALL[:at] + new + SMALL[at + length :]):
        assert problem.message
        assert problem.file == "recipe.toml"


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        (SMALL + '\n[stages.libb]\nenv = { A = "1" }\n', "stages.libb.action", "lib"),
        (SMALL + "\n[packages.smal]\nbundle = false\n", "packages.smal", "small"),
    ],
)
def test_a_table_that_lacks_what_makes_it_whole_is_probably_a_misspelt_one(text: str, key: str, meant: str) -> None:
    found = {problem.key: problem.hint or "" for problem in problems_of(text)}
    assert found[key].startswith(f"did you mean {meant!r}?")


def test_the_hint_about_a_missing_key_says_what_to_set() -> None:
    found = {problem.key: problem.hint for problem in problems_of(SMALL + '\n[tests.other]\nimports = ["small"]\n')}
    assert (found["tests.other.packages"] or "").startswith("set `packages`: packages under test")
