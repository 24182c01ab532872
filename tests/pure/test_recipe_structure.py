"""The walk over a document finds what msgspec would find, all of it, and leaves a copy that converts."""

from __future__ import annotations

import copy
import datetime as dt
import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import tomli_w
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from axletree.recipe.faults import dotted, related
from axletree.recipe.model import Recipe
from axletree.recipe.structure import check_structure
from support.recipes import SMALL, problems_of, targets_of

if TYPE_CHECKING:
    from collections.abc import Iterator

VALID = tomllib.loads(SMALL)
ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.text(max_size=3), max_size=2)
    | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
    | st.just(dt.date(2026, 1, 1))
).filter(lambda value: value is not None)
KEYS = st.sampled_from(["axis", "axes", "form", "from", "python", "Bad Name", "x", "resources", "cores", "zip", ""])


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every value inside."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A valid recipe with some values replaced, removed or added."""
    document = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 5))):
        spots = list(places(document))
        container, key = draw(st.sampled_from(spots)) if spots else (document, "name")
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                container[key] = draw(ODD)
            case "remove":
                container.pop(key, None) if isinstance(container, dict) else container.pop(key)
            case _:
                spot = container if isinstance(container, dict) else document
                spot[draw(KEYS)] = draw(ODD)
    return document


def converts(document: dict[str, Any]) -> bool:
    try:
        msgspec.convert(document, Recipe)
    except msgspec.ValidationError:
        return False
    return True


@given(damaged())
def test_faults_are_found_where_msgspec_finds_one(document: dict[str, Any]) -> None:
    before = copy.deepcopy(document)
    faults, repaired = check_structure(document, Recipe)
    assert repr(document) == repr(before), "what was given is left as it was"
    assert bool(faults) != converts(document)
    msgspec.convert(repaired, Recipe)
    if not faults:
        assert repaired == document


@given(st.dictionaries(KEYS | st.sampled_from(["name", "source", "stages", "tests", "override"]), ODD, max_size=6))
def test_anything_gives_a_copy_that_converts(document: dict[str, Any]) -> None:
    _, repaired = check_structure(document, Recipe)
    assert isinstance(msgspec.convert(repaired, Recipe), Recipe)


OPTIONAL = (
    "tests",
    "tests.smoke.imports",
    "environments.build.requires",
    "stages.bind.inputs",
    "packages.small.requires",
)


@st.composite
def trimmed(draw: st.DrawFn) -> dict[str, Any]:
    """A valid recipe without some axis values and keys that may be missing, and perhaps one that may not."""
    document = copy.deepcopy(VALID)
    for axis, values in document["axes"].items():
        document["axes"][axis] = values[: draw(st.integers(1, len(values)))]
    gone = draw(st.sets(st.sampled_from(OPTIONAL)))
    for name in [*gone, *draw(st.just([]) | st.lists(st.sampled_from(["stages.lib", "source"]), max_size=1))]:
        *above, key = name.split(".")
        table = document
        for each in above:
            table = table.get(each, {})
        table.pop(key, None)
    return document


@settings(max_examples=40)
@given(trimmed())
def test_what_is_accepted_resolves_at_every_variant(document: dict[str, Any]) -> None:
    text = tomli_w.dumps(document)
    assume(not problems_of(text))
    assert targets_of(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("stages", "build", "axes"), "stages.build.axes"),
        (("override", 0, "when", "gpu"), "override[0].when.gpu"),
        (("packages", "a.b", "files", 1), 'packages."a.b".files[1]'),
        (("axes", ""), 'axes.""'),
        (("axes", "\x1b[31m"), 'axes."\\x1b[31m"'),
    ],
)
def test_dotted(path: tuple[str | int, ...], text: str) -> None:
    assert dotted(path) == text


def test_related_paths_lie_on_one_line() -> None:
    assert related(("a", "b"), ("a",))
    assert related(("a",), ("a", 0, "c"))
    assert not related(("a", "b"), ("a", "c"))
    assert related((), ("a",))
