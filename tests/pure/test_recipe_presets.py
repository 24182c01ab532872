"""Presets: what is counted, and presets that cannot be."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import Problem, RecipeError, UsageError
from axletree.recipe.base import Matrix
from axletree.recipe.parse import parse_recipe
from axletree.recipe.presets import Part, Preset, PresetPackage, PresetReport, PresetTotals, count_preset
from axletree.recipe.properties import DataFile
from axletree.view.presets import preset_text
from support.recipes import SMALL

MEGABUILD = """
[presets.mega]
summary = "One job for all Pythons, but on macOS"
configurations = [
  { axes = ["platform", "gpu"], when = { platform = "linux" } },
  { axes = ["platform", "python"], when = { platform = "macos" } },
]
[presets.mega.axes]
platform = ["linux", "macos"]
gpu = ["cpu", "cu130"]
python = ["3.11", "3.12", "3.13"]
[presets.mega.matrix]
exclude = [{ platform = "macos", gpu = "cu130" }]
[[presets.mega.packages]]
name = "lib"
axes = ["platform", "gpu"]
[[presets.mega.packages]]
name = "torch"
axes = ["platform", "gpu", "python"]
when = { gpu = "cpu" }
[[presets.mega.packages]]
name = "torch"
axes = ["gpu", "python"]
when = { gpu = "cu130" }
exclude = [{ python = "3.13" }]
[[presets.mega.packages]]
name = "meta"
"""


def presets(text: str = MEGABUILD) -> dict[str, Preset]:
    return parse_recipe(SMALL + text, filename="recipe.toml").presets


def report(*patterns: str) -> PresetReport:
    return count_preset("mega", presets()["mega"], patterns)


def test_configurations_hold_the_variants_that_agree() -> None:
    assert {row.id: (len(row.variants), row.packages) for row in report().configurations} == {
        "linux-cpu": (3, 5),
        "linux-cu130": (3, 4),
        "macos-py311": (1, 3),
        "macos-py312": (1, 3),
        "macos-py313": (1, 3),
    }
    assert report().configurations[-1].values == {"platform": "macos", "python": "3.13"}


def test_packages_are_counted_by_their_own_axes() -> None:
    assert [(row.name, row.count, row.axes) for row in report().packages] == [
        ("lib", 3, ("platform", "gpu")),
        ("torch", 8, ("platform", "gpu", "python")),
        ("meta", 1, ()),
    ]


def test_patterns_choose_variants() -> None:
    found = report("linux-*-py312")
    assert [row.id for row in found.configurations] == ["linux-cpu", "linux-cu130"]
    assert [(row.name, row.count) for row in found.packages] == [("lib", 2), ("torch", 2), ("meta", 1)]
    with pytest.raises(UsageError, match="no variant matches 'win-"):
        report("win-*")


def test_without_configurations_each_variant_is_one() -> None:
    preset = Preset(summary="x", axes={"python": ("3.11", "3.12"), "gpu": ("cpu",)})
    found = count_preset("x", preset)
    assert [row.id for row in found.configurations] == [variant.id for variant in found.variants]


def test_zipped_values_may_repeat_while_their_rows_differ() -> None:
    axes = {"gpu": ("cu129", "cu130", "cu129"), "glibc": ("2.17", "2.28", "2.34"), "python": ("3.11",)}
    preset = Preset(summary="x", axes=axes, matrix=Matrix(zip=(("gpu", "glibc"),)))
    assert [variant.id for variant in count_preset("x", preset).variants] == [
        "cu129-glibc2.17-py311",
        "cu130-glibc2.28-py311",
        "cu129-glibc2.34-py311",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('gpu = ["cpu", "cu130"]\npython', 'gpu = ["cpu", "cpu", "cu130"]\npython', 46, "value 'cpu' is listed twice"),
        ('python = ["3.11", "3.12", "3.13"]', 'python = ["3", "3.12"]', 47, "'3' is not a Python version"),
        ('{ platform = "macos", gpu', '{ platform = "maxos", gpu', 49, "axis 'platform' has no value 'maxos'"),
        ('axes = ["platform", "gpu"]\n[[', 'axes = ["platform", "gp"]\n[[', 52, "unknown axis 'gp'"),
        (
            '{ axes = ["platform", "gpu"], when',
            '{ axes = ["platform", "platform"], when',
            41,
            "'platform' is listed twice",
        ),
        ('exclude = [{ python = "3.13" }]', 'exclude = [{ blas = "mkl" }]', 61, "unknown axis 'blas'"),
        (
            'when = { platform = "macos" } },',
            'when = { platform = "linux", gpu = "cpu" } },',
            42,
            "is in two entries of",
        ),
        (
            'when = { platform = "macos" } },',
            'when = { platform = "macos", gpu = "cu130" } },',
            40,
            "no configuration includes variant",
        ),
        (
            'when = { gpu = "cu130" }',
            'when = { gpu = ["cpu", "cu130"] }',
            57,
            "is in two entries of package 'torch', 2 and 3",
        ),
        ('exclude = [{ platform = "macos", gpu = "cu130" }]', "exclude = [{}]", 49, "no variant is left"),
        ('summary = "One job', 'sumary = "One job', 39, "unknown key"),
        (
            "[presets.mega.matrix]",
            '[presets.mega.matrix]\nzip = [["platform", "python"]]',
            49,
            "zipped axes need the same number of values: platform has 2, python has 3",
        ),
    ],
)
def test_faults(old: str, new: str, line: int, message: str) -> None:
    assert MEGABUILD.count(old) == 1
    with pytest.raises(RecipeError) as caught:
        presets(MEGABUILD.replace(old, new))
    assert any(each.line == line and message in each.message for each in caught.value.problems), caught.value


def test_rows_of_a_zip_cannot_repeat() -> None:
    text = '\n[presets.p]\nsummary = "x"\naxes = { a = ["1", "1"], b = ["2", "2"] }\nmatrix = { zip = [["a", "b"]] }\n'
    with pytest.raises(RecipeError, match="the combination of zipped values a '1', b '2' is listed twice"):
        presets(text)


def test_a_huge_preset_is_told_and_not_expanded() -> None:
    axes = ", ".join(f"{axis} = {list(map(str, range(10, 60)))}" for axis in "abcd")
    with pytest.raises(RecipeError, match="6,250,000 combinations of values, more than the limit of 20,000"):
        presets(f'\n[presets.p]\nsummary = "x"\naxes = {{ {axes} }}\n')


def test_presets_of_data_files_have_their_own_file() -> None:
    text = SMALL.replace("[axes]", 'data = ["p.toml"]\n\n[axes]')

    def problems(own: str, data: str) -> list[Problem]:
        with pytest.raises(RecipeError) as caught:
            parse_recipe(
                text + own, filename="recipe.toml", data=[DataFile(name="p.toml", filename="d/p.toml", text=data)]
            )
        return list(caught.value.problems)

    (fault,) = problems("", MEGABUILD.replace("maxos", "").replace('axes = ["platform", "gpu"]\n', 'axes = ["gp"]\n'))
    assert (fault.file, fault.key) == ("d/p.toml", "presets.mega.packages[0].axes[0]")
    (double,) = problems(MEGABUILD, MEGABUILD)
    assert (double.file, double.message) == ("d/p.toml", "two presets are called 'mega'")


VALUES = st.lists(st.sampled_from("12345"), min_size=1, max_size=3, unique=True)


@given(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), st.data())
def test_counts_are_those_of_a_product(axes: dict[str, list[str]], data: st.DataObject) -> None:
    cut = data.draw(st.lists(st.sampled_from(sorted(axes)), unique=True))
    made = data.draw(st.lists(st.sampled_from(sorted(axes)), unique=True))
    found = count_preset(
        "p",
        Preset(
            summary="x",
            axes={axis: tuple(values) for axis, values in axes.items()},
            configurations=(Part(axes=tuple(cut)),),
            packages=(PresetPackage(name="p", axes=tuple(made)),),
        ),
    )
    assert len(found.variants) == len(list(itertools.product(*axes.values())))
    assert len(found.configurations) == math.prod(len(axes[axis]) for axis in cut)
    assert found.packages[0].count == math.prod(len(axes[axis]) for axis in made)
    assert sum(len(row.variants) for row in found.configurations) == len(found.variants)


def test_text_and_document_tell_the_same_totals() -> None:
    text = preset_text(report(), width=80)
    assert "mega: 5 configurations, 9 variants, 12 packages" in text.splitlines()
    assert "  variants: combinations of one value from each axis, except excluded ones" in text.splitlines()
    assert report().totals == PresetTotals(configurations=5, variants=9, packages=12)


def test_a_preset_without_packages_has_one_table() -> None:
    preset = Preset(summary="x", axes={"gpu": ("cpu",)})
    assert "PACKAGE " not in preset_text(count_preset("x", preset), width=80)
