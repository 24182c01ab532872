"""Locks: what is written is read back, is valid PEP 751, holds no place, and tells when it is out of date."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.pylock import Pylock

from axletree.core.errors import RecipeError
from axletree.recipe.environments import TargetEnvironment
from axletree.recipe.locks import (
    LockedWheel,
    PyLock,
    SourceLock,
    check_lock,
    check_source,
    make_lock,
    parse_lock,
    parse_source,
    render_lock,
    render_source,
)
from axletree.recipe.target_source import TargetSource

FILE = "r/pylock.build-py311.toml"


def wheel(name: str = "torch", version: str = "2.13.0+cpu", tag: str = "cp311-cp311-linux_x86_64") -> LockedWheel:
    filename = f"{name.replace('-', '_')}-{version}-{tag}.whl"
    return LockedWheel(name=name, version=version, filename=filename, size=10, sha256="ab" * 32)


LOCK = make_lock(
    ["torch==2.13.0+cpu", "setuptools<81"],
    python="3.11",
    platform="linux-x86_64",
    wheels=[wheel(), wheel("setuptools", "80.9.0", "py3-none-any")],
)


def environment(*requires: str, python: str = "3.11") -> TargetEnvironment:
    return TargetEnvironment(name="build", python=python, requires=requires, axes={"python": python}, lock=FILE)


names = st.from_regex(r"[a-z]([a-z0-9]|-[a-z0-9]){0,10}", fullmatch=True)
versions = st.from_regex(r"(0|[1-9][0-9]?)(\.(0|[1-9][0-9]?)){0,2}(\+[a-z]{1,4})?", fullmatch=True)


@st.composite
def locks(draw: st.DrawFn) -> PyLock:
    chosen = draw(st.dictionaries(names, versions, max_size=5))
    wheels = [
        LockedWheel(
            name=name,
            version=version,
            filename=f"{name.replace('-', '_')}-{version}-py3-none-any.whl",
            size=draw(st.integers(0, 1 << 40)),
            sha256=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
            url=draw(st.sampled_from([None, "https://index.example/files/some.whl"])),
        )
        for name, version in chosen.items()
    ]
    python = draw(st.sampled_from(["3.11", "3.13t"]))
    return make_lock(chosen, python=python, platform="linux-aarch64", wheels=wheels)


@given(locks())
def test_what_is_written_is_read_back_and_is_valid_pep_751(lock: PyLock) -> None:
    text = render_lock(lock)
    assert parse_lock(text, file=FILE) == lock
    peer = Pylock.from_dict(tomllib.loads(text))
    assert [(package.name, str(package.version)) for package in peer.packages] == [
        (wheel.name, wheel.version) for wheel in lock.wheels
    ]


def test_a_lock_reads_well_and_holds_no_place() -> None:
    assert render_lock(LOCK) == (
        'lock-version = "1.0"\n'
        "environments = [\n"
        '    "implementation_name == \\"cpython\\" and python_version == \\"3.11\\" and sys_platform == \\"linux\\"'
        ' and platform_machine == \\"x86_64\\"",\n'
        "]\n"
        'requires-python = "==3.11.*"\n'
        'created-by = "axletree"\n'
        "\n[[packages]]\n"
        'name = "setuptools"\n'
        'version = "80.9.0"\n'
        "\n[[packages.wheels]]\n"
        'path = "setuptools-80.9.0-py3-none-any.whl"\n'
        "size = 10\n"
        "\n[packages.wheels.hashes]\n"
        f'sha256 = "{"ab" * 32}"\n'
        "\n[[packages]]\n"
        'name = "torch"\n'
        'version = "2.13.0+cpu"\n'
        "\n[[packages.wheels]]\n"
        'path = "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl"\n'
        "size = 10\n"
        "\n[packages.wheels.hashes]\n"
        f'sha256 = "{"ab" * 32}"\n'
        "\n[tool.axletree]\n"
        "requires = [\n"
        '    "torch==2.13.0+cpu",\n'
        '    "setuptools<81",\n'
        "]\n"
        'python = "3.11"\n'
        'platform = "linux-x86_64"\n'
    )


def test_the_order_of_wheels_does_not_matter() -> None:
    turned = make_lock(LOCK.requires, python="3.11", platform="linux-x86_64", wheels=reversed(LOCK.wheels))
    assert render_lock(turned) == render_lock(LOCK)


def test_the_environment_of_a_lock_is_a_marker() -> None:
    (marker,) = tomllib.loads(render_lock(LOCK))["environments"]
    here = {"implementation_name": "cpython", "python_version": "3.11", "sys_platform": "linux"}
    assert Marker(marker).evaluate(here | {"platform_machine": "x86_64"})
    assert not Marker(marker).evaluate(here | {"platform_machine": "aarch64"})


def test_a_lock_that_fits_has_no_problems() -> None:
    fitting = environment("setuptools <81", "Torch==2.13.0+cpu")
    assert check_lock(LOCK, fitting, file=FILE, platform="linux-x86_64") == ()


def test_each_change_of_the_recipe_is_named() -> None:
    problems = check_lock(
        LOCK, environment("torch==2.13.0+cpu", "numpy", python="3.12"), file=FILE, platform="linux-aarch64"
    )
    assert [problem.message for problem in problems] == [
        "the lock is out of date: requirement numpy added",
        "the lock is out of date: requirement setuptools<81 removed",
        "the lock is out of date: Python is 3.12, was 3.11",
        "the lock is out of date: the platform is linux-aarch64, was linux-x86_64",
    ]
    assert {(problem.file, problem.key, problem.hint) for problem in problems} == {
        (FILE, "environments.build", "run `axletree lock RECIPE`")
    }


def test_a_wheel_that_somebody_exchanged_by_hand_is_found() -> None:
    edited = make_lock(["torch==2.13.0+cpu"], python="3.11", platform="linux-x86_64", wheels=[wheel(version="2.13.0")])
    (problem,) = check_lock(edited, environment("torch==2.13.0+cpu"), file=FILE)
    assert "torch==2.13.0+cpu is not met: the lock contains version 2.13.0" in problem.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('lock-version = "1.0"', "lock-version =", "not valid TOML"),
        ('created-by = "axletree"', 'created-by = "uv"', "not a lock created by `axletree lock`"),
        ('version = "80.9.0"', "", "missing required field `version`"),
        ("size = 10", "size = -1", "Expected `int` >= 0"),
        ("ab" * 32, "../../x", "Expected `str` matching regex"),
        ("setuptools-80.9.0-py3", "/tmp/setuptools-80.9.0-py3", "must be a plain file name"),
        ("setuptools-80.9.0-py3", "setuptools-81.0-py3", "is not a wheel of setuptools 80.9.0"),
        ('name = "setuptools"', 'name = "torch"', "the lock lists a package twice: torch"),
        ("-py3-none-any.whl", ".tar.gz", "Invalid wheel filename"),
    ],
)
def test_broken_locks_are_refused(old: str, new: str, message: str) -> None:
    text = render_lock(LOCK)
    assert old in text
    with pytest.raises(RecipeError) as caught:
        parse_lock(text.replace(old, new, 1), file=FILE)
    assert message in str(caught.value)
    assert all(problem.file == FILE for problem in caught.value.problems)


SOURCE = SourceLock(
    kind="pypi",
    location="torch-scatter",
    version="2.1.2",
    filename="torch_scatter-2.1.2.tar.gz",
    sha256="cd" * 32,
    size=9,
)
GIT = SourceLock(kind="git", location="https://h.example/r", version="1", ref="v1", commit="1" * 40, tree="2" * 40)


@pytest.mark.parametrize("lock", [SOURCE, GIT])
def test_a_source_lock_is_read_back(lock: SourceLock) -> None:
    assert parse_source(render_source(lock), file="source.lock.toml") == lock
    assert "null" not in render_source(lock)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (render_source(SOURCE).replace("sha256", "sha512"), "unknown field `sha512`"),
        (render_source(msgspec.structs.replace(SOURCE, sha256=None)), "needs `filename` and `sha256`"),
        (render_source(msgspec.structs.replace(GIT, tree=None)), "needs `commit` and `tree`"),
        (render_source(msgspec.structs.replace(GIT, commit="--upload-pack=x")), "matching regex"),
        (render_source(msgspec.structs.replace(SOURCE, filename="../x.tar.gz")), "must be a plain file name"),
        ("kind", "not valid TOML"),
    ],
)
def test_broken_source_locks_are_refused(text: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_source(text, file="source.lock.toml")
    assert message in str(caught.value)


def test_a_source_lock_that_no_longer_fits_says_why() -> None:
    now = TargetSource(kind="pypi", location="torch-scatter", version="2.1.3")
    assert check_source(SOURCE, msgspec.structs.replace(now, version="2.1.2"), file="s") == ()
    (problem,) = check_source(SOURCE, now, file="s")
    assert problem.message == "the lock is out of date: version is 2.1.3, was 2.1.2"
    moved = TargetSource(kind="git", location="https://h.example/r", version="1", ref="v2")
    assert [problem.message for problem in check_source(GIT, moved, file="s")] == [
        "the lock is out of date: ref is v2, was v1"
    ]


def test_a_digest_in_the_recipe_must_be_that_of_the_lock() -> None:
    now = TargetSource(kind="url", location="https://h.example/a.tar.gz", version="1", sha256="ef" * 32)
    lock = SourceLock(kind="url", location=now.location, version="1", filename="a.tar.gz", sha256="cd" * 32)
    assert len(check_source(lock, now, file="s")) == 1


@pytest.mark.parametrize("filename", ["torch-scatter-2.1.1.tar.gz", "torch-2.1.2.tar.gz", "notes.txt"])
def test_a_lock_of_another_file_than_the_sdist_of_its_version_does_not_fit(filename: str) -> None:
    now = TargetSource(kind="pypi", location="torch-scatter", version="2.1.2")
    (problem,) = check_source(msgspec.structs.replace(SOURCE, filename=filename), now, file="s")
    assert problem.message == f"{filename} is not an sdist of torch-scatter 2.1.2"
