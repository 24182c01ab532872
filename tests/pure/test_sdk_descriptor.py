"""Descriptors of artifacts: what is taken by which component, and everything that is wrong with one."""

from __future__ import annotations

import pytest

from axletree.core.errors import IntegrityError, RecipeError
from axletree.package.sdk.descriptor import Descriptor, assign_files, parse_descriptor


def read(text: str, *, platform: str = "linux") -> Descriptor:
    return parse_descriptor(text, filename="artifact-rand.toml", artifact="rand", platform=platform)


def taken(text: str, *paths: str) -> dict[str, str]:
    found = assign_files(read(text), {"rand/stage": paths})
    return {path: component for (_, path), component in found.items()}


ALL = "".join(f'[components.{name}."rand/stage"]\n' for name in ("lib", "dbg", "dev", "doc"))


def test_each_component_takes_what_those_before_it_left() -> None:
    files = (
        "lib/a.so",
        "lib/a.so.1",
        ".build-id/ab/c.debug",
        "include/a.h",
        "lib/cmake/a/b.so",
        "share/doc/x",
        "lib/a.a",
    )
    assert taken(ALL, *files) == {
        "lib/a.so": "lib",
        "lib/a.so.1": "lib",
        "lib/cmake/a/b.so": "lib",
        ".build-id/ab/c.debug": "dbg",
        "include/a.h": "dev",
        "lib/a.a": "dev",
        "share/doc/x": "doc",
    }


def test_run_without_patterns_takes_everything_that_lib_left() -> None:
    text = '[components.run."rand/stage"]\n' + ALL
    assert taken(text, "lib/a.so", "include/a.h", "bin/x") == {"lib/a.so": "lib", "include/a.h": "run", "bin/x": "run"}


def test_includes_add_to_the_usual_ones_unless_these_are_not_wanted() -> None:
    text = '[components.lib."rand/stage"]\ninclude = "bin/**"\n[components.test."rand/stage"]\n'
    assert taken(text, "bin/x", "a.so", "y") == {"bin/x": "lib", "a.so": "lib", "y": "test"}
    text = text.replace('"bin/**"', '["bin/**"]\ndefault_patterns = false')
    assert taken(text, "bin/x", "a.so", "y") == {"bin/x": "lib", "a.so": "test", "y": "test"}


def test_what_is_forced_beats_what_is_excluded_and_that_what_is_included() -> None:
    text = """
[components.lib."rand/stage"]
include = ["data/**"]
exclude = ["data/x*", "**/*.so.1"]
force_include = "data/xx"
[components.test."rand/stage"]
"""
    assert taken(
        text, "data/a", "data/x", "data/xx", "b.so.1", ".kpack/rand_lib.kpm", ".kpack/rand_lib_gfx900.kpack"
    ) == {
        "data/a": "lib",
        "data/x": "test",
        "data/xx": "lib",
        "b.so.1": "test",
        ".kpack/rand_lib.kpm": "lib",
        ".kpack/rand_lib_gfx900.kpack": "lib",
    }


def test_archives_of_gpu_code_are_those_of_the_artifact_and_component() -> None:
    files = (".kpack/blas_lib.kpm", ".kpack/rand_dev.kpm")
    with pytest.raises(IntegrityError, match=r"blas_lib\.kpm, \.kpack/rand_dev\.kpm"):
        taken('[components.lib."rand/stage"]\n', *files)


def test_a_component_without_stage_folder_passes_on_what_those_before_it_took() -> None:
    assert taken('[components.lib."rand/stage"]\n[components.test."rand/stage"]\n', "a.so", "b") == {
        "a.so": "lib",
        "b": "test",
    }


def test_other_extends_change_the_order() -> None:
    text = """
[components.dev]
extends = []
[components.dev."rand/stage"]
[components.lib]
extends = ["dev"]
[components.lib."rand/stage"]
"""
    assert taken(text, "lib/cmake/x.so", "y.so") == {"lib/cmake/x.so": "dev", "y.so": "lib"}


def test_two_components_of_which_none_extends_the_other_dispute() -> None:
    text = """
[components.dev]
extends = []
[components.dev."rand/stage"]
[components.lib."rand/stage"]
"""
    with pytest.raises(IntegrityError, match=r"both lib and dev include rand/stage/lib/cmake/x.so"):
        taken(text, "lib/cmake/x.so")


def test_what_belongs_to_nobody_is_an_error_unless_the_options_let_it_pass() -> None:
    text = '[components.lib."rand/stage"]\n'
    with pytest.raises(IntegrityError, match="rand/stage: no component includes a, b/c"):
        taken(text, "b/c", "a", "x.so")
    assert taken(f'{text}[options]\nunmatched_exclude = ["a", "b/**"]\n', "b/c", "a", "x.so") == {"x.so": "lib"}
    assert taken(f'{text}[options]\nunmatched_include = "c/**"\n', "b/c", "a", "x.so") == {"x.so": "lib"}


def test_empty_folders_may_belong_to_nobody() -> None:
    found = assign_files(
        read('[components.dev."rand/stage"]\n'),
        {"rand/stage": ()},
        folders={"rand/stage": ("include", "empty")},
    )
    assert found == {("rand/stage", "include"): "dev"}


def test_a_missing_stage_folder_is_an_error_unless_every_component_says_that_it_may_be() -> None:
    text = (
        '[components.lib."a"]\noptional = true\n[components.dev."a"]\n%s\n[components.lib."b"]\noptional = "windows"\n'
    )
    with pytest.raises(IntegrityError) as caught:
        assign_files(read(text % ""), {})
    assert [problem.message for problem in caught.value.problems] == [
        "the stage folder a does not exist",
        "the stage folder b does not exist",
    ]
    assert assign_files(read(text % 'optional = ["linux", "windows"]', platform="windows"), {}) == {}


def test_everything_that_is_wrong_is_told_with_its_line() -> None:
    text = """
[component]
x = 1
[components.lib]
extends = "test"
[components.lib."a/stage"]
includ = "x"
optional = "beos"
exclude = ["a/**b", 3]
[components.libs."b"]
[components.dev."../x"]
[components.doc]
y = 3
[options]
unmatched_include = 3
"""
    with pytest.raises(RecipeError) as caught:
        read(text)
    told = [(problem.line, problem.message.partition(",")[0]) for problem in caught.value.problems]
    assert told == [
        (2, "unknown key"),
        (5, "components extend each other in a cycle: lib -> test -> doc -> dev -> dbg -> run -> lib"),
        (7, "unknown key"),
        (8, "unknown platform 'beos'"),
        (9, "'a/**b' has '**' in '**b': '**' matches whole folders; put a '/' before and after it"),
        (9, "expected a string"),
        (10, "unknown component"),
        (11, "the folder must be below the build root: its path cannot start with '/' or contain '..'"),
        (13, "expected a table with the keys of a stage folder"),
        (15, "expected a string or a list of strings"),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no components"),
        ("components = 3", "no components"),
        ("options = 3\n" + ALL, "expected a table of options, such as unmatched_exclude"),
        ("[components]\nlib = 3", "expected a table for each stage folder"),
        ('[components.lib]\nextends = "base"', "extends 'base', which is not a component"),
        ("[components.lib]\nextends = 3", "expected a list of component names"),
        ('[components.lib]\nextends = "lib"', "in a cycle: lib -> lib"),
        ('[components.lib."a"]\noptional = 3', "expected true, false or a list of platform names"),
        ('[components.lib."a"]\ndefault_patterns = "no"', "expected true or false"),
        ('[components.lib."/a"]', "the folder must be below the build root"),
        ("x = ", "not valid TOML"),
    ],
)
def test_broken_descriptors(text: str, told: str) -> None:
    with pytest.raises(RecipeError, match=told):
        read(text)
