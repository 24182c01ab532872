"""What a source tree says of its name and version before anything is compiled, and what is left to ask the backend."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from build import ProjectBuilder

from axletree.buildsystem.era import Era
from axletree.core.errors import ExpectationError, Problem
from axletree.core.records import LocalFacts
from axletree.core.stated import Expected, Stated, Wanted
from axletree.execute.agreeing import ask_backend, check_source, check_wheel_name
from axletree.execute.backend import backend_warnings, check_requirements, open_builder
from axletree.execute.context import Context
from axletree.execute.process import Log
from axletree.store.store import Store
from support.requests import request_of

ERA = Era(driver="pep517", evidence=())
PYTORCH = Era(driver="setup.py", evidence=(), pytorch=True)
PROJECT = '[project]\nname = "{}"\nversion = "{}"\n'
INFO = "Metadata-Version: {}\nName: small\nVersion: {}\n"


class Stage:
    """A build whose recipe says `small` 0.4+cpu in line 2."""

    def __init__(self, folder: Path, **wanted: Any) -> None:
        said = {"name": "small", "version": "0.4+cpu"} | wanted
        place = Problem(message="", file="small.toml", line=2, key="version")
        expected = [Expected(wanted=Wanted(**said), stated=Stated(places={"version": place}))]
        request = request_of("wheel", local=LocalFacts(expected=tuple(expected)))
        self.said = io.BytesIO()
        self.source = folder / "source"
        self.source.mkdir()
        self.context = Context(
            request=request,
            store=Store.open(folder / "store"),
            work=folder,
            log=Log(self.said, secrets=()),
            progress=lambda message, *, done=None, total=None, unit="steps": None,
        )

    def check(self, env: dict[str, str] | None = None, *, era: Era = ERA, **files: str) -> bool:
        for name, text in files.items():
            (self.source / name.replace("__", ".").replace("_", "-")).write_text(text)
        return check_source(self.context, self.source, era, env or {})

    def ask(self, backend: str) -> None:
        (self.source / "own.py").write_text(backend)
        (self.source / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
        )
        ask_backend(self.context, ProjectBuilder(self.source), {})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_a_static_pyproject_decides_alone(stage: Stage) -> None:
    assert stage.check(pyproject__toml=PROJECT.format("Small", "0.4.0"), PKG_INFO=INFO.format("2.1", "0.3"))
    with pytest.raises(
        ExpectationError, match=r"the recipe sets 0\.4, but the source's pyproject\.toml reports Version: 0\.3"
    ):
        stage.check(pyproject__toml=PROJECT.format("small", "0.3"), PKG_INFO=INFO.format("2.1", "0.4"))


def test_both_are_told_with_the_place_of_the_recipe(stage: Stage) -> None:
    with pytest.raises(ExpectationError) as caught:
        stage.check(pyproject__toml=PROJECT.format("other", "0.3"))
    name, version = caught.value.problems
    assert "reports Name: other" in name.message
    assert (version.file, version.line, version.key) == ("small.toml", 2, "version")


def test_an_old_sdist_that_agrees_is_believed_and_one_that_does_not_is_asked_about(stage: Stage) -> None:
    assert stage.check(PKG_INFO=INFO.format("1.0", "0.4"))
    assert not stage.check(PKG_INFO=INFO.format("2.4", "0.3"))
    assert not stage.check(PKG_INFO="nonsense")
    dynamic = '[project]\nname = "small"\ndynamic = ["version"]\n'
    assert not stage.check(pyproject__toml=dynamic)
    assert stage.check(pyproject__toml=dynamic, PKG_INFO=INFO.format("2.1", "0.4"))
    assert not stage.check(pyproject__toml="[project", PKG_INFO="")
    with pytest.raises(ExpectationError, match="reports Name: other"):
        stage.check(pyproject__toml=dynamic.replace("small", "other"))


def test_a_link_in_a_strangers_tree_is_not_followed(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "info").write_text(INFO.format("2.1", "0.4"))
    (stage.source / "PKG-INFO").symlink_to(tmp_path / "info")
    assert not stage.check()


def test_without_packages_of_it_there_is_nothing_to_ask(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    request = request_of("wheel")
    context = Context(
        request=request,
        store=stage.context.store,
        work=tmp_path,
        log=stage.context.log,
        progress=stage.context.progress,
    )
    assert check_source(context, stage.source, ERA, {})


@pytest.mark.parametrize(
    ("env", "text", "origin"),
    [
        ({}, "0.4.0a0", "the source's version.txt"),
        ({"PYTORCH_BUILD_VERSION": "0.5+cpu"}, "0.4.0a0", "PYTORCH_BUILD_VERSION"),
        ({"PYTORCH_BUILD_VERSION": "0.5", "PYTORCH_BUILD_NUMBER": "2"}, "0.5", "with PYTORCH_BUILD_NUMBER"),
        ({"PYTORCH_BUILD_VERSION": "0.4+cpu", "PYTORCH_BUILD_NUMBER": "1"}, "0.4.0a0", None),
        ({"PYTORCH_BUILD_VERSION": "0.5"}, "0.4", None),
        ({}, "0.4", None),
        ({}, "no version", None),
    ],
)
def test_pytorch_is_never_asked_but_read(stage: Stage, env: dict[str, str], text: str, origin: str | None) -> None:
    if origin is None:
        assert stage.check(env, era=PYTORCH, version__txt=text)
        return
    with pytest.raises(ExpectationError, match=f"the recipe sets 0.4, but .*{origin} reports Version"):
        stage.check(env, era=PYTORCH, version__txt=text)


HOOK = """
import os
def prepare_metadata_for_build_wheel(folder, config_settings=None):
    os.mkdir(f"{folder}/x.dist-info")
    with open(f"{folder}/x.dist-info/METADATA", "w") as file:
        file.write("Metadata-Version: 2.1\\nName: small\\nVersion: VERSION\\n")
    return "x.dist-info"
"""


def test_a_backend_that_would_build_another_version_is_stopped(stage: Stage) -> None:
    with pytest.raises(ExpectationError, match=r"but its build backend reports Version: 0\.1\.dev0"):
        stage.ask(HOOK.replace("VERSION", "0.1.dev0"))


@pytest.mark.parametrize("backend", ["", HOOK.replace("VERSION", "0.4"), HOOK.replace("VERSION", "none")])
def test_a_backend_that_agrees_or_can_not_say_goes_on(stage: Stage, backend: str) -> None:
    stage.ask(backend)


def test_a_backend_that_fails_at_it_builds_first(stage: Stage) -> None:
    stage.ask("def prepare_metadata_for_build_wheel(folder, config_settings=None):\n    raise ValueError('no')\n")
    assert b"cannot report its metadata before the build" in stage.said.getvalue()


def test_the_name_of_a_wheel_says_what_it_is(stage: Stage) -> None:
    check_wheel_name(stage.context, "Small-0.4-py3-none-any.whl")
    with pytest.raises(ExpectationError, match=r"small-0\.3-py3-none-any\.whl reports Version: 0\.3"):
        check_wheel_name(stage.context, "small-0.3-py3-none-any.whl")


WARNING = """
import warnings
def get_requires_for_build_wheel(config_settings=None):
    warnings.warn("gizmo is deprecated")
    return []
"""


def test_what_a_backend_warns_of_is_in_the_log_and_not_on_the_terminal(
    stage: Stage, recwarn: pytest.WarningsRecorder
) -> None:
    (stage.source / "own.py").write_text(WARNING)
    (stage.source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    )
    with backend_warnings(stage.context):
        builder = open_builder(stage.context, stage.source, {"VIRTUAL_ENV": sys.prefix})
        check_requirements(builder, Path(sys.prefix), {})
    assert "gizmo is deprecated" in stage.said.getvalue().decode()
    assert not recwarn.list
