"""What a recipe may say otherwise than what was built, and what it may not."""

from __future__ import annotations

import msgspec
import pytest

from axletree.core.stated import Wanted
from axletree.package.wheel.agreement import disagreements, said_otherwise
from axletree.package.wheel.metadata import create_metadata, with_field
from axletree.package.wheel.tags import takes


@pytest.mark.parametrize(
    ("recipe", "built"),
    [
        ("1.0", "1.0.0"),
        ("0.4.dev0", "0.4.dev"),
        ("1.0rc1", "1.0-RC.1"),
        ("1!2.0", "1!2"),
        ("1.0.post2", "1.0-2"),
        ("0.4+torch.2.13.cpu", "0.4"),
        ("0.4+cpu", "0.4+debian"),
        ("0.4+cpu", "0.4.0+CPU"),
    ],
)
def test_versions_that_are_equal_or_get_a_label_agree(recipe: str, built: str) -> None:
    assert said_otherwise(Wanted(name="a", version=recipe), name="a", version=built) == ()


@pytest.mark.parametrize(
    ("recipe", "built"), [("0.4", "0.3"), ("0.4", "0.4.dev0"), ("0.4", "0.4.1"), ("0.4+cpu", "0.3+cpu"), ("1", "1!1")]
)
def test_other_versions_do_not(recipe: str, built: str) -> None:
    (found,) = said_otherwise(Wanted(name="a", version=recipe), name="a", version=built)
    assert (found.key, found.recipe, found.built) == ("version", recipe.partition("+")[0], f"Version: {built}")
    assert "packages.a.relabel = true" in found.hint


def test_a_version_that_is_none_is_told_as_it_is() -> None:
    (found,) = said_otherwise(Wanted(name="a", version="1"), name="a", version="2004d")
    assert found.built == "Version: 2004d"


def test_a_label_that_would_be_lost_is_told_but_conda_has_none() -> None:
    wanted = Wanted(name="a", version="0.4")
    (found,) = said_otherwise(wanted, name="a", version="0.4+cu130")
    assert found.key == "local"
    assert 'packages.a.local = "cu130"' in found.hint
    assert said_otherwise(msgspec.structs.replace(wanted, labels=False), name="a", version="0.4+cu130") == ()


def test_a_release_of_the_command_line_may_be_in_what_was_built_or_not() -> None:
    wanted = Wanted(name="a", version="2.7.0.dev20260822+cpu", source_version="2.6.0")
    assert said_otherwise(wanted, name="a", version="2.7.0.dev20260822") == ()
    assert said_otherwise(wanted, name="a", version="2.6") == ()
    (found,) = said_otherwise(wanted, name="a", version="2.5")
    assert found.recipe == "2.7.0.dev20260822 (`version`: 2.6.0)"


@pytest.mark.parametrize("built", ["0.0.0", "0.1.dev0", "0.1.dev12+g1a2b3c4", "0+unknown", "0.0.0+unknown.1a2b3c4"])
def test_versions_of_tools_without_history_are_told_as_such(built: str) -> None:
    (found,) = said_otherwise(Wanted(name="a", version="0.4"), name="a", version=built)
    assert "SETUPTOOLS_SCM_PRETEND_VERSION" in found.hint


def test_names_are_compared_normalised() -> None:
    assert said_otherwise(Wanted(name="zope-interface", version="1"), name="Zope.Interface", version="1") == ()
    (found,) = said_otherwise(Wanted(name="small", version="1"), name="Other_One", version="1")
    assert (found.key, found.recipe, found.built) == ("name", "small", "Name: Other_One")
    assert "[packages.other-one]" in found.hint
    (unknown,) = said_otherwise(Wanted(name="small", version="1"), name="UNKNOWN", version="1")
    assert "setuptools>=61" in unknown.hint


def test_a_part_of_a_tree_has_another_name_where_a_sibling_has_that_of_the_whole() -> None:
    part = Wanted(name="small-tests", version="1", siblings=("small", "small-tests"))
    assert said_otherwise(part, name="Small", version="1") == ()
    assert [each.key for each in said_otherwise(part, name="other", version="2")] == ["name", "version"]
    assert said_otherwise(msgspec.structs.replace(part, siblings=None), name="other", version="1") == ()
    assert said_otherwise(msgspec.structs.replace(part, relabel=True), name="other", version="2") == ()


def test_pythons_are_compared_where_both_name_some() -> None:
    built = create_metadata(name="a", version="1", requires_python=">=3.9,<4")
    assert disagreements(Wanted(name="a", version="1", requires_python="<4, >=3.9"), built) == ()
    assert disagreements(Wanted(name="a", version="1"), built) == ()
    (found,) = disagreements(Wanted(name="a", version="1", requires_python=">=3.8"), built)
    assert (found.key, found.recipe, found.built) == ("requires-python", ">=3.8", "Requires-Python: >=3.9,<4")
    plain = create_metadata(name="a", version="1")
    assert disagreements(Wanted(name="a", version="1", requires_python=">=3.8"), plain) == ()


@pytest.mark.parametrize(
    ("recipe", "built", "agree"),
    [
        ("torch==2.13.0", "torch", True),
        ("torch==2.13.0", "torch>=2", True),
        ("torch==2.13.0+cpu", "torch==2.13.0", True),
        ("torch==2.13.0", "torch<2.13", False),
        ("Torch>=2", "torch>=2.1", False),
        ("torch", "torch>=2", False),
        ("torch>=2", "torch[opt]>=2", False),
        ("torch[opt]==2.13.0", "torch>=2", True),
        ("torch>=2; python_version < '3.12'", "torch>=3", True),
        ("numpy", "torch>=2", True),
        ("torch>=2", "torch @ https://files.example/torch.whl", False),
        ("torch>=2", "torch (>2 or so)", True),
    ],
)
def test_a_requirement_may_narrow_what_the_project_requires(recipe: str, built: str, agree: bool) -> None:  # noqa: FBT001
    metadata = with_field(create_metadata(name="a", version="1"), "Requires-Dist", built)
    found = disagreements(Wanted(name="a", version="1", requires=(recipe,)), metadata)
    assert [each.key for each in found] == ([] if agree else ["requires"])
    assert disagreements(Wanted(name="a", version="1", requires=(recipe,), relabel=True), metadata) == ()


def test_a_field_is_put_where_it_was_or_behind_the_version() -> None:
    metadata = create_metadata(name="a", version="1", summary="One.", requires=["b"])
    assert [key for key, _ in with_field(metadata, "Requires-Python", ">=3").fields][2:5] == [
        "Version", "Requires-Python", "Summary",
    ]  # fmt: skip
    assert with_field(metadata, "summary", "Two.").get("Summary") == "Two."


@pytest.mark.parametrize(
    ("python", "tags", "taken"),
    [
        ("3.11", ["cp311-cp311-linux_x86_64"], True),
        ("3.11", ["cp312-cp312-linux_x86_64"], False),
        ("3.11", ["cp39-abi3-linux_x86_64"], True),
        ("3.11", ["cp312-abi3-linux_x86_64"], False),
        ("3.11", ["py2-none-any", "py3-none-any"], True),
        ("3.11", ["py3-none-macosx_11_0_arm64"], True),
        ("3.11", ["py2-none-any"], False),
        ("3.11", ["pp39-pypy39_pp73-linux_x86_64"], False),
        ("3.13t", ["cp313-cp313t-linux_x86_64"], True),
        ("3.13t", ["cp313-cp313-linux_x86_64"], False),
        ("3.13", ["cp313-cp313t-linux_x86_64"], False),
        ("3.11", ["cp311-none-any"], True),
    ],
)
def test_what_a_python_takes(python: str, tags: list[str], taken: bool) -> None:  # noqa: FBT001
    assert takes(python, tags) is taken
