"""Locks of conda environments: named by variant, the same text for the same packages, read back as written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from axletree.core.errors import RecipeError
from axletree.recipe.conda_locks import (
    CondaLock,
    Exports,
    LockedPackage,
    check_conda_lock,
    exports_of,
    parse_conda_lock,
    render_conda_lock,
)
from axletree.recipe.environments import TargetEnvironment, conda_lock_name

TEXT = st.text(max_size=12)
PACKAGES = st.lists(
    st.builds(
        LockedPackage,
        name=TEXT,
        version=TEXT,
        build=TEXT,
        build_number=st.integers(0, 9),
        subdir=TEXT,
        filename=TEXT.filter(lambda name: "/" not in name),
        channel=TEXT,
        url=TEXT,
        size=st.integers(0, 1 << 40),
        sha256=TEXT,
        md5=TEXT,
        depends=st.lists(TEXT, max_size=2).map(tuple),
        noarch=st.sampled_from([None, "generic", "python"]),
        run_exports=st.builds(Exports, weak=st.lists(TEXT, max_size=2).map(tuple)),
    ),
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
        "run `axletree lock RECIPE`",
    )
    assert problem.message.startswith("the file is not a valid lock of a conda environment: ")


def package(name: str, **fields: object) -> LockedPackage:
    given = {"version": "1", "build": "h_0", "subdir": "linux-64", "filename": f"{name}-1-h_0.conda", "size": 1}
    return LockedPackage(name=name, sha256="0" * 64, **given | fields)  # type: ignore[arg-type]


def environment(**fields: object) -> TargetEnvironment:
    given = {"name": "host", "python": "3.11", "requires": ("zlib",), "axes": {}, "lock": "x", "channels": ("c",)}
    return TargetEnvironment(**given | {"provider": "conda"} | fields)  # type: ignore[arg-type]


LOCK = CondaLock(
    platform="linux-64",
    channels=("c",),
    requires=("zlib", "python 3.11.*"),
    exported=("libstdcxx >=13",),
    packages=(
        package("zlib", run_exports=Exports(weak=("zlib >=1.3,<2",))),
        package("deep", run_exports=Exports(weak=("deep >=1",), strong=("deep >=1",))),
    ),
)


def test_only_packages_that_are_named_export() -> None:
    assert exports_of(LOCK, "weak") == ("zlib >=1.3,<2",)
    assert exports_of(LOCK, "strong") == ()


@pytest.mark.parametrize(
    ("fields", "exported", "platform", "said"),
    [
        ({}, ["libstdcxx >=13"], "linux-64", []),
        ({}, ["libstdcxx >=13"], "linux-aarch64", ["the platform is linux-aarch64, was linux-64"]),
        ({}, [], "linux-64", ["run export libstdcxx >=13 removed"]),
        (
            {"python": "3.12"},
            ["libstdcxx >=13"],
            "linux-64",
            ["requirement python 3.12.* added", "requirement python 3.11.* removed"],
        ),
        ({"channels": ("d", "c")}, ["libstdcxx >=13"], "linux-64", ["channel d added"]),
        ({"wheels": ("demo",)}, ["libstdcxx >=13"], "linux-64", ["wheel demo added"]),
    ],
)
def test_what_no_longer_fits_is_said(
    fields: dict[str, object], exported: list[str], platform: str, said: list[str]
) -> None:
    found = check_conda_lock(LOCK, environment(**fields), file="x", platform=platform, exported=exported)
    assert [each.message for each in found] == [f"the lock is out of date: {text}" for text in said]


def test_a_file_name_leads_nowhere_else() -> None:
    text = render_conda_lock(LOCK).replace("zlib-1-h_0.conda", "../zlib-1-h_0.conda")
    with pytest.raises(RecipeError, match="must be a plain file name"):
        parse_conda_lock(text, file="x")
