"""The tables ``[sources.NAME]`` of a recipe: their faults with lines, what they are filled in, and their locks."""

from __future__ import annotations

import msgspec
import pytest

from axletree.core.errors import LockError, RecipeError
from axletree.core.trees import Entry
from axletree.core.values import Digest
from axletree.execute.actions.place import taken_by
from axletree.plan.actions.fetch import FileSource
from axletree.plan.actions.table import ACTIONS
from axletree.recipe.locks import SourceLock, parse_source, parse_sources, render_source
from axletree.recipe.target_source import extras_of
from support.recipes import problems_of, recipe_of, targets_of

HEAD = """\
name = "small"
version = "1.0"
source = { path = "src" }
[axes]
gpu = ["cpu", "cu130"]
[stages.lib]
action = "run"
axes = ["gpu"]
commands = ["true"]
"""
URL = f'url = "https://h.example/a-{{version}}.tar.gz"\nsha256 = "{"ab" * 32}"\n'
USER = '[stages.b]\naction = "run"\nsource = false\ncommands = ["true"]\nsources = ["a"]'


def test_texts_are_filled_in_and_conditions_choose() -> None:
    text = HEAD + f'[sources.a]\n{URL}into = "third_party/a"\nwhen = {{ gpu = "cu130" }}\n'
    cpu, gpu = (targets_of(text)[name].source for name in ("cpu", "cu130"))
    assert (cpu.extras, cpu.axes) == ((), {"gpu": "cpu"})
    assert [(extra.location, extra.into) for extra in gpu.extras] == [
        ("https://h.example/a-1.0.tar.gz", "third_party/a")
    ]
    assert [extra.name for extra in extras_of(recipe_of(text))] == ["a"]


@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        ('[sources.a]\ninto = "a"', 10, "exactly one of pypi, url, git, path is required, found none"),
        (f'[sources.a]\n{URL}git = "https://h.example/a"\nref = "x"\ninto = "a"', 10, "found url and git"),
        ('[sources.a]\nurl = "https://h.example/a.zip"\ninto = "a"', 10, "a source with a URL needs a digest"),
        ('[sources.a]\ngit = "https://h.example/a"\ninto = "a"', 10, "a git source needs a ref"),
        ('[sources.a]\npypi = "a"\ninto = "a"', 10, "a pypi source needs the version of its sdist"),
        (f'[sources.a]\n{URL}version = "1"\ninto = "a"', 13, "version is only for pypi sources; this is a url source"),
        (f'[sources.a]\n{URL}into = "../a"', 13, "must be a relative path inside the folder"),
        (f'[sources.a]\n{URL}into = "/a"', 13, "must be a relative path inside the folder"),
        (f"[sources.a]\n{URL}", 10, "nothing uses source 'a'"),
        (f'[sources.a]\n{URL}into = "x"\n[sources.b]\n{URL}into = "x"', 17, "'b' would be put into the same place as"),
        (f'[sources.a]\n{URL}into = "x/y"\n[sources.b]\n{URL}into = "x"', 17, "overlaps that of source 'a'"),
        (f'[sources.a]\n{URL}into = "x"\nstrip = 0\nunpack = false', 14, "this one is not unpacked"),
        (f'[sources.a]\n{URL}into = "x"\nwhen = {{ gpu = "rocm" }}', 14, "has no value 'rocm'"),
        ('[stages.b]\naction = "run"\ncommands = ["true"]\nsources = ["a"]', 13, "unknown source 'a'"),
        (
            f'[sources.a]\n{URL}when = {{ gpu = "cpu" }}\n{USER}',
            18,
            "source 'a' differs by axis 'gpu'",
        ),
    ],
)
def test_faults_have_lines(table: str, line: int, said: str) -> None:
    (problem,) = problems_of(f"{HEAD}{table}\n")
    assert (problem.line, said in problem.message) == (line, True), problem


DOWNLOAD = '[stages.crates]\naction = "download"\n'
DIGEST = f'sha256 = "{"ab" * 32}"\n'


@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        (DOWNLOAD, 10, "a download stage needs commands"),
        (f'{DOWNLOAD}commands = ["x"]\nsha256 = "ab"', 13, "is not a SHA-256 digest"),
        (f'{DOWNLOAD}commands = ["x"]\nworkspace = true', 13, "a download stage keeps no folder"),
        (f'{DOWNLOAD}commands = ["x"]\noptions = {{ A = "1" }}', 13, "options is only for compile stages"),
        (f'[stages.b]\naction = "run"\ncommands = ["x"]\n{DIGEST}', 13, "sha256 is only for download stages"),
    ],
)
def test_faults_of_download_stages_have_lines(table: str, line: int, said: str) -> None:
    (problem,) = problems_of(f"{HEAD}{table}\n")
    assert (problem.line, said in problem.message) == (line, True), problem


def test_the_digest_of_a_download_is_a_parameter_and_what_lacks_one_has_the_key_that_it_had() -> None:
    (stage,) = (each for each in targets_of(f'{HEAD}{DOWNLOAD}commands = ["x"]\n{DIGEST}')["cpu"].stages[1:])
    assert ACTIONS["download"].of_stage is not None
    asked = ACTIONS["download"].of_stage(stage)
    assert msgspec.to_builtins(asked)["sha256"] == "ab" * 32
    assert ACTIONS["download"].network
    source = FileSource(filename="a.zip", sha256=Digest("0" * 64))
    assert msgspec.to_builtins(source).keys() == {"kind", "filename", "sha256"}


def test_sources_of_different_variants_may_share_a_place() -> None:
    tables = [f'[sources.{name}]\n{URL}into = "x"\nwhen = {{ gpu = "{name}" }}\n' for name in ("cpu", "cu130")]
    assert problems_of(HEAD + "".join(tables)) == ()


MAIN = SourceLock(kind="url", location="https://h.example/s.zip", version="1", filename="s.zip", sha256="ab" * 32)
GIT = SourceLock(kind="git", location="https://h.example/r", ref="v1", commit="1" * 40, tree="2" * 40)


@pytest.mark.parametrize("main", [MAIN, None])
def test_locks_of_several_sources_are_read_back(main: SourceLock | None) -> None:
    text = render_source(main, {"b.c": MAIN, "a": GIT})
    found = parse_sources(text, file="s")
    assert (found.main, found.extras) == (main, {"a": GIT, "b.c": MAIN})
    if main is None:
        with pytest.raises(LockError, match="does not pin the recipe's own source"):
            parse_source(text, file="s")


def test_old_locks_stay_valid() -> None:
    found = parse_sources(render_source(MAIN), file="s")
    assert (found.main, found.extras) == (MAIN, {})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('commit = "1', 'commit = "x', "matching regex"),
        ("sha256", "sha512", "unknown field `sha512`"),
        ('filename = "s.zip"', 'filename = "../s"', "must be a plain file name"),
    ],
)
def test_a_broken_lock_names_the_source(old: str, new: str, said: str) -> None:
    text = render_source(None, {"a": GIT} if "commit" in old else {"a": MAIN}).replace(old, new)
    with pytest.raises(RecipeError) as caught:
        parse_sources(text, file="s")
    (problem,) = caught.value.problems
    assert said in problem.message
    assert (problem.key or "").startswith("sources.a")


def file(path: str) -> Entry:
    return Entry(path=path, blob=Digest("0" * 64), size=1)


@pytest.mark.parametrize(
    ("entry", "into", "taken"),
    [
        (file("x/y"), "x", True),
        (file("x"), "x/y", True),
        (file("x"), "x", True),
        (file("xy"), "x", False),
        (Entry(path="x", kind="directory"), "x", False),
        (Entry(path="x", kind="directory"), "x/y", False),
        (Entry(path="x/y", kind="directory"), "x", True),
        (Entry(path="x", kind="link", target="z"), "x/y", True),
    ],
)
def test_a_place_is_free_or_an_empty_folder(entry: Entry, into: str, *, taken: bool) -> None:
    assert (taken_by([entry], into) is not None) is taken
