"""CMakeCache.txt: nothing is lost, edits do what they say, bad ones are refused together."""

from __future__ import annotations

from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.buildsystem.cmake.cache import (
    EntryType,
    diff_caches,
    edit_cache,
    is_true,
    parse_cache,
    render_cache,
    render_diff,
)
from axletree.core.errors import IntegrityError, UsageError

TEXT = """\
# This is the CMakeCache file.
########################
# EXTERNAL cache entries
########################

//Build with MAGMA
USE_MAGMA:BOOL=OFF

//Path to a program.
CMAKE_AR:FILEPATH=/usr/bin/ar

"odd:name":STRING='  blanks '
CMAKE_CXX_FLAGS:STRING=-D'f()=1' -O2
NOTHING:PATH=

########################
# INTERNAL cache entries
########################

//ADVANCED property for variable: CMAKE_AR
CMAKE_AR-ADVANCED:INTERNAL=1
CMAKE_GENERATOR:INTERNAL=Ninja
"""


def test_types_values_and_lines() -> None:
    cache = parse_cache(TEXT, file="C")
    assert (cache.get("USE_MAGMA"), cache.entries["USE_MAGMA"].type, cache.entries["USE_MAGMA"].line) == (
        "OFF",
        "BOOL",
        7,
    )
    assert cache.get("odd:name") == "  blanks "
    assert cache.get("CMAKE_CXX_FLAGS") == "-D'f()=1' -O2"
    assert (cache.get("NOTHING"), cache.get("ABSENT")) == ("", None)
    assert render_cache(cache) == TEXT


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[A-Za-z_][A-Za-z0-9_.+-]{0,10}", fullmatch=True),
            st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20),
        ),
        max_size=8,
        unique_by=lambda pair: pair[0],
    )
)
def test_what_was_set_is_read_back(pairs: list[tuple[str, str]]) -> None:
    cache = parse_cache(TEXT, file="C")
    wanted = {name: ("STRING", value) for name, value in pairs if name not in cache.entries}
    edited = edit_cache(cache, wanted)  # type: ignore[arg-type]
    assert {name: edited.get(name) for name in wanted} == {name: value for name, (_, value) in wanted.items()}
    assert {name: edited.get(name) for name in cache.entries} == {name: cache.get(name) for name in cache.entries}
    assert render_cache(edit_cache(edited, dict.fromkeys(wanted))) == TEXT


HOSTILE = st.text(st.sampled_from("aB:=\"'/#\\ \t;$\x0b\x85\u2028é\udcff\n\r"), max_size=8)


@given(HOSTILE, HOSTILE, st.sampled_from(get_args(EntryType)))
def test_any_edit_is_refused_or_read_back(name: str, value: str, kind: EntryType) -> None:
    cache = parse_cache(TEXT, file="C")
    with suppress(UsageError):
        edited = edit_cache(cache, {name: (kind, value)})
        assert edited.entries.keys() == cache.entries.keys() | {name}
        assert (edited.get(name), edited.entries[name].type) == (value, kind)
        assert render_cache(edit_cache(edited, {name: None})) == TEXT


@given(st.text(max_size=200) | st.lists(HOSTILE, max_size=6).map("\n".join))
def test_any_text_is_read_whole_or_refused(text: str) -> None:
    with suppress(IntegrityError):
        assert render_cache(parse_cache(text, file="C")) == text


def test_edits_keep_all_other_lines() -> None:
    cache = parse_cache(TEXT, file="C")
    edited = edit_cache(cache, {"USE_MAGMA": "ON", "CMAKE_AR": None, "NEW": "x", "HIDDEN": ("INTERNAL", "y")})
    before, after = TEXT.splitlines(), render_cache(edited).splitlines()
    assert [line for line in before if line not in after] == [
        "USE_MAGMA:BOOL=OFF",
        "//Path to a program.",
        "CMAKE_AR:FILEPATH=/usr/bin/ar",
        "//ADVANCED property for variable: CMAKE_AR",
        "CMAKE_AR-ADVANCED:INTERNAL=1",
    ]
    assert [line for line in after if line not in before] == [
        "USE_MAGMA:BOOL=ON",
        "NEW:UNINITIALIZED=x",
        "HIDDEN:INTERNAL=y",
    ]
    assert after.index("NEW:UNINITIALIZED=x") < after.index("# INTERNAL cache entries")
    assert render_diff(diff_caches(cache, edited)).splitlines() == [
        "-CMAKE_AR:FILEPATH=/usr/bin/ar",
        "-CMAKE_AR-ADVANCED:INTERNAL=1",
        "+HIDDEN:INTERNAL=y",
        "+NEW:UNINITIALIZED=x",
        "-USE_MAGMA:BOOL=OFF",
        "+USE_MAGMA:BOOL=ON",
    ]


def test_help_and_types() -> None:
    cache = parse_cache("//One line, and\n// more\n//\\n another\nA:BOOL=ON\n\nB:UNINITIALIZED=1\n", file="C")
    assert [each.help for each in cache.entries.values()] == ["One line, and more\n another", ""]
    edited = edit_cache(cache, {"B": ("BOOL", "1")})
    assert render_diff(diff_caches(cache, edited)) == "-B:UNINITIALIZED=1\n+B:BOOL=1\n"


def test_an_entry_that_stands_twice_is_read_as_cmake_does_and_removed_whole() -> None:
    cache = parse_cache("A:BOOL=ON\nB:BOOL=ON\n//again\nA:BOOL=OFF\n", file="C")
    assert cache.get("A") == "OFF"
    assert render_cache(edit_cache(cache, {"A": None})) == "B:BOOL=ON\n"


def test_all_bad_edits_are_told_at_once() -> None:
    cache = parse_cache(TEXT, file="C")
    changes = {"USE_MAGMA": "maybe", "CMAKE_GENERATOR": "Unix Makefiles", "A=B": "1", "MULTI": "a\nb"}
    with pytest.raises(UsageError) as caught:
        edit_cache(cache, changes, file="C")
    assert [problem.key for problem in caught.value.problems] == list(changes)


def test_damaged_lines_are_told_with_their_numbers() -> None:
    with pytest.raises(IntegrityError) as caught:
        parse_cache("A:BOOL=ON\nwhat is this\nB:FLOAT=1\n", file="C")
    assert [(problem.line, problem.file) for problem in caught.value.problems] == [(2, "C"), (3, "C")]


def test_another_file_is_told_in_one_sentence_and_much_damage_in_few() -> None:
    with pytest.raises(IntegrityError, match=r"^L:1: the file is not a CMake cache: no line has the form"):
        parse_cache("project(x)\n" * 1000, file="L")
    with pytest.raises(IntegrityError) as caught:
        parse_cache("A:BOOL=ON\n" + "?\n" * 1000, file="C")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5, 6, None]
    assert caught.value.problems[-1].message == "and 995 more damaged lines"


@pytest.mark.parametrize(
    ("value", "truth"),
    [
        *(
            (value, True)
            for value in ("ON", "yes", "1", "2", "-1", "0.0", "word", "/usr/lib", "notfound", "00", "OFF ")
        ),
        *((value, False) for value in ("0", "", "off", "x-NOTFOUND", "NOTFOUND", "Ignore", "n", "False", "NO")),
    ],
)
def test_truth(value: str, *, truth: bool) -> None:
    assert is_true(value) is truth
