"""Locks of conda environments: named by variant, the same text for the same packages, read back as written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.core.errors import RecipeError
from axletree.recipe.conda_locks import CondaLock, LockedPackage, conda_lock_name, parse_conda_lock, render_conda_lock

TEXT = st.text(max_size=12)
PACKAGES = st.lists(
    st.builds(LockedPackage, name=TEXT, version=TEXT, build=TEXT, url=TEXT, sha256=TEXT, md5=TEXT),
    max_size=5,
    unique_by=lambda each: each.name,
)


@settings(max_examples=50)
@given(packages=PACKAGES, channels=st.lists(TEXT, max_size=3), requires=st.lists(TEXT, max_size=3), data=st.data())
def test_a_lock_is_read_back_whatever_stands_in_it(
    packages: list[LockedPackage], channels: list[str], requires: list[str], data: st.DataObject
) -> None:
    lock = CondaLock(
        platform="linux-64",
        channels=tuple(channels),
        requires=tuple(requires),
        packages=tuple(sorted(packages, key=lambda each: each.name)),
    )
    text = render_conda_lock(lock)
    assert parse_conda_lock(text, file="x") == lock
    shuffled = CondaLock(
        platform="linux-64",
        channels=tuple(channels),
        requires=tuple(requires),
        packages=tuple(data.draw(st.permutations(packages))),
    )
    assert render_conda_lock(shuffled) == text


AXES = {"python": ["3.11", "3.13t"], "gpu": ["cpu", "cu130"], "platform": ["linux-64"]}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "conda-lock.test.toml"),
        ({"platform": "linux-64"}, "conda-lock.test.toml"),
        ({"python": "3.13t", "gpu": "cu130"}, "conda-lock.test-py313t-cu130.toml"),
    ],
)
def test_a_lock_is_named_by_the_variant(values: dict[str, str], name: str) -> None:
    assert conda_lock_name("test", values, AXES) == name


SOUND = render_conda_lock(CondaLock(platform="linux-64", channels=("c",), requires=("python",), packages=()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lock-version = ",
        SOUND.replace('platform = "linux-64"', "platform = 3"),
        SOUND.replace("packages = []", 'packages = [{ name = "a" }]'),
        "a = " + "[" * 5000,
    ],
)
def test_what_is_no_lock_is_said_with_what_to_do(text: str) -> None:
    assert text != SOUND
    with pytest.raises(RecipeError) as error:
        parse_conda_lock(text, file="conda-lock.test.toml")
    (problem,) = error.value.problems
    assert (problem.file, problem.hint) == (
        "conda-lock.test.toml",
        "remove the file and run `axletree env create` again",
    )
    assert problem.message.startswith("the file is not a valid lock of a conda environment: ")


def test_digests_that_a_channel_does_not_tell_are_left_out() -> None:
    package = LockedPackage(name="a", version="1", build="h_0", url="https://example.org/a.conda", md5="0" * 32)
    text = render_conda_lock(CondaLock(platform="linux-64", channels=(), requires=(), packages=(package,)))
    assert "sha256" not in text
    assert f'md5 = "{"0" * 32}"' in text
