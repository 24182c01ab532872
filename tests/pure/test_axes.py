"""Variants: product, zips, excludes, ids, selection."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from axletree.core.errors import UsageError
from axletree.recipe.axes import Variant, expand, matches, project, select, variant_id
from axletree.recipe.base import Matrix
from support.recipes import SMALL, recipe_of

if TYPE_CHECKING:
    from axletree.recipe.base import Condition
    from axletree.recipe.model import Recipe

SOURCE = 'name = "x"\nversion = "1"\nsource = { path = "." }\n'
BARE = recipe_of(SOURCE)


def with_axes(axes: dict[str, list[str]], **matrix: Any) -> Recipe:
    return replace(BARE, axes={axis: tuple(values) for axis, values in axes.items()}, matrix=Matrix(**matrix))


def ids(recipe: Recipe) -> list[str]:
    return [variant.id for variant in expand(recipe)]


@pytest.mark.parametrize(
    ("axis", "value", "listed", "token"),
    [
        ("python", "3.11", ["3.11"], "py311"),
        ("python", "3.13t", ["3.13t"], "py313t"),
        ("gpu", "cu130", ["cpu", "cu130"], "cu130"),
        ("blas", "mkl", ["mkl"], "mkl"),
        ("magma", "on", ["on", "off"], "magma"),
        ("magma", "off", ["on", "off"], "nomagma"),
        ("lto", "on", ["on"], "lto"),
        ("magma", "none", ["on", "off", "none"], ""),
        ("magma", "on", ["on", "off", "none"], "magma"),
        ("magma", "off", ["none", "off"], "nomagma"),
        ("glibc", "none", ["2.17", "none"], ""),
        ("glibc", "2.17", ["2.17", "none"], "glibc2.17"),
        ("mode", "off", ["off", "auto", "none"], "modeoff"),
        ("mode", "on", ["on", "auto"], "modeon"),
        ("platform", "linux-x86_64", ["linux-x86_64"], ""),
        ("platform", "linux-x86_64", ["linux-x86_64", "linux-aarch64"], "linux-x86_64"),
        ("torch", "2.13.0", ["2.13.0"], "torch2.13.0"),
    ],
)
def test_token(axis: str, value: str, listed: list[str], token: str) -> None:
    assert variant_id({axis: value}, {axis: listed}) == token


def test_order_is_that_of_the_recipe() -> None:
    assert ids(recipe_of(SMALL)) == ["py311-cpu", "py311-cu130", "py312-cpu", "py312-cu130"]


def test_a_recipe_without_axes_has_one_variant() -> None:
    assert expand(BARE) == (Variant(id="any", values={}),)


def test_zipped_axes_advance_together_where_the_first_of_them_stands() -> None:
    axes = {"python": ["3.11", "3.12"], "gpu": ["cpu", "cu130"], "torch": ["2.12.0", "2.13.0"]}
    assert ids(with_axes(axes, zip=(("torch", "python"),))) == [
        "py311-cpu-torch2.12.0",
        "py311-cu130-torch2.12.0",
        "py312-cpu-torch2.13.0",
        "py312-cu130-torch2.13.0",
    ]


def test_excludes() -> None:
    axes = {"python": ["3.11", "3.12", "3.13t"], "gpu": ["cpu", "cu130"]}
    exclude: tuple[Condition, ...] = ({"python": ("3.12", "3.13t"), "gpu": "cu130"},)
    assert ids(with_axes(axes, exclude=exclude)) == ["py311-cpu", "py311-cu130", "py312-cpu", "py313t-cpu"]


AXES = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.sampled_from("12345"), min_size=1, max_size=4, unique=True), max_size=4
)


@given(AXES)
def test_without_zips_and_excludes_it_is_the_product(axes: dict[str, list[str]]) -> None:
    variants = expand(with_axes(axes))
    assert len(variants) == math.prod(map(len, axes.values()))
    assert [tuple(variant.values.values()) for variant in variants] == list(itertools.product(*axes.values()))
    assert len({variant.id for variant in variants}) == len(variants)


@given(AXES, st.data())
def test_excluded_and_kept_make_all(axes: dict[str, list[str]], data: st.DataObject) -> None:
    condition: Condition = {
        axis: tuple(data.draw(st.lists(st.sampled_from(values))))
        for axis, values in axes.items()
        if data.draw(st.booleans())
    }
    every = expand(with_axes(axes))
    kept = expand(with_axes(axes, exclude=(condition,)))
    assert set(ids(with_axes(axes))) == {v.id for v in kept} | {v.id for v in every if matches(condition, v.values)}
    assert not any(matches(condition, variant.values) for variant in kept)


def test_a_condition_matches_by_value_or_list() -> None:
    values = {"gpu": "cpu", "python": "3.11"}
    assert matches({}, values)
    assert matches({"gpu": "cpu", "python": ("3.11", "3.12")}, values)
    assert not matches({"gpu": ("cu130",)}, values)
    assert not matches({"blas": "mkl"}, values)


def test_a_projection_keeps_the_order_of_the_recipe() -> None:
    values = {"python": "3.11", "gpu": "cpu", "torch": "2.13.0"}
    assert list(project(values, ["torch", "python"])) == ["python", "torch"]


def chosen(patterns: list[str], skip: list[str] | None = None) -> list[str]:
    return [variant.id for variant in select(expand(recipe_of(SMALL)), patterns, skip or [])]


@pytest.mark.parametrize(
    ("patterns", "skip", "expected"),
    [
        ([], [], ["py311-cpu", "py311-cu130", "py312-cpu", "py312-cu130"]),
        (["py311-*"], [], ["py311-cpu", "py311-cu130"]),
        (["*-cu130", "py311-*"], [], ["py311-cpu", "py311-cu130", "py312-cu130"]),
        (["py312-cpu"], [], ["py312-cpu"]),
        ([], ["*cu*"], ["py311-cpu", "py312-cpu"]),
        (["py311*"], ["*-cpu"], ["py311-cu130"]),
        (["py31[12]-cpu"], [], ["py311-cpu", "py312-cpu"]),
    ],
)
def test_select(patterns: list[str], skip: list[str], expected: list[str]) -> None:
    assert chosen(patterns, skip) == expected


def test_a_pattern_without_a_match_names_all_of_a_few_variants_and_the_nearest_of_many() -> None:
    few = tuple(Variant(id=f"py311-cu{number}", values={}) for number in (118, 121, 124))
    with pytest.raises(UsageError, match=r"no variant matches '124'\n  hint: variants: py311-cu118, py311-cu121, "):
        select(few, ["124"])
    many = tuple(Variant(id=f"py311-cu{number}", values={}) for number in range(121, 131))
    with pytest.raises(UsageError, match=r"hint: closest matches: py311-cu12\d, .* \(of 10; to list all, run"):
        select(many, ["py311-cu12", "py311-*"])


def test_each_pattern_without_a_match_is_told_once() -> None:
    with pytest.raises(UsageError) as caught:
        chosen(["py39*", "py39*"], ["rocm*"])
    assert [problem.message for problem in caught.value.problems] == [
        "no variant matches 'py39*'",
        "no variant matches 'rocm*'",
    ]


def test_nothing_left_is_an_error() -> None:
    with pytest.raises(UsageError, match="removes every selected variant"):
        chosen(["py311-*"], ["py3*"])
