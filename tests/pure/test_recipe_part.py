"""``--format`` and ``--package``: which packages, stages and tests are left of a target."""

from __future__ import annotations

import pytest

from axletree.core.errors import UsageError
from axletree.recipe.axes import expand
from axletree.recipe.part import parts_of
from axletree.recipe.target import Target, resolve
from support.recipes import SMALL, recipe_of

TEXT = (
    SMALL.replace('[packages.small]\nfrom = "bind"', '[packages.small]\nfrom = "bind"\nformats = ["wheel", "conda"]')
    + """installers = ["pip", "conda"]

[stages.docs]
action = "run"
commands = ["make docs"]

[packages.small-docs]
from = "docs"
formats = ["zip"]

[tests.lib]
packages = ["small-lib"]
environment = "build"
imports = ["small_lib"]
"""
)
RECIPE = recipe_of(TEXT)


def parts(*, formats: tuple[str, ...] = (), packages: tuple[str, ...] = (), text: str = TEXT) -> tuple[Target, ...]:
    recipe = recipe_of(text)
    targets = [resolve(recipe, variant) for variant in expand(recipe)]
    return parts_of(recipe, targets, formats=formats, packages=packages)


def names(target: Target) -> tuple[list[str], list[str], list[str]]:
    return (
        [package.name for package in target.packages],
        [stage.name for stage in target.stages],
        [test.name for test in target.tests],
    )


def test_nothing_asked_is_everything() -> None:
    assert names(parts()[0]) == (["small-lib", "small", "small-docs"], ["lib", "bind", "docs"], ["smoke", "lib"])


def test_a_package_brings_what_it_requires_and_is_made_of() -> None:
    assert names(parts(packages=("small",))[0]) == (["small-lib", "small"], ["lib", "bind"], ["smoke", "lib"])
    assert names(parts(packages=("small-lib",))[0]) == (["small-lib"], ["lib"], ["lib"])
    assert names(parts(packages=("small-docs",))[0]) == (["small-docs"], ["docs"], [])


def test_a_format_leaves_the_clients_that_install_it() -> None:
    wheels = parts(formats=("wheel",))[0]
    assert [package.formats for package in wheels.packages] == [("wheel",), ("wheel",)]
    assert all(package.conda is None for package in wheels.packages)
    assert [(test.name, test.installers) for test in wheels.tests] == [("smoke", ("pip",)), ("lib", ("pip", "uv"))]
    conda = parts(formats=("conda",))[0]
    assert names(conda) == (["small"], ["lib", "bind"], ["smoke"])
    assert [(test.packages, test.installers) for test in conda.tests] == [(("small",), ("conda",))]


def test_packages_that_are_cut_from_one_tree_stay_together() -> None:
    text = TEXT + '\n[packages.small-dev]\nfrom = "lib"\nlocal = "{gpu}"\nfiles = ["include/**"]\n'
    assert names(parts(packages=("small-dev",), text=text)[0])[0] == ["small-lib", "small-dev"]


def test_variants_without_the_package_are_left_out() -> None:
    text = TEXT.replace(
        'action = "run"\ncommands = ["make docs"]', 'action = "run"\naxes = ["gpu"]\ncommands = ["make docs"]'
    )
    text = text.replace('from = "docs"', 'from = "docs"\nlocal = "{gpu}"\nwhen = { gpu = "cpu" }')
    assert [part.variant for part in parts(packages=("small-docs",), text=text)] == ["py311-cpu", "py312-cpu"]


def test_what_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="has no package 'smal'") as caught:
        parts(packages=("smal",))
    assert caught.value.problems[0].hint == "did you mean 'small'?"
    with pytest.raises(UsageError, match="in the selected variants matches --format conda --package small-docs"):
        parts(formats=("conda",), packages=("small-docs",))
