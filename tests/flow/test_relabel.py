"""A recipe and a project that call one thing by two names: refused before anything is compiled, unless it is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.package.wheel.metadata import create_metadata
from support.faulty import PYTHON, make_project
from support.wheels import wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from support.faulty import Project

RECIPE = f"""\
name = "small"
version = "0.4"
source = {{ path = "src" }}
axes = {{ python = ["{PYTHON}"] }}
environments = {{ plain = {{}} }}

[stages.wheel]
action = "build"
axes = ["python"]
environment = "plain"

[packages.small]
from = "wheel"
"""
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = '''\
"""A build backend: one that says what it will build, and one that only builds."""

import base64
import hashlib
import os
import zipfile

NAME, VERSION = "small", os.environ.get("SMALL_VERSION", "0.3")
INFO = f"{NAME}-{VERSION}.dist-info"
METADATA = f"Metadata-Version: 2.1\\nName: {NAME}\\nVersion: {VERSION}\\n"
TAGS = "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    os.mkdir(f"{folder}/{INFO}")
    with open(f"{folder}/{INFO}/METADATA", "w") as file:
        file.write(METADATA)
    return INFO


def build_wheel(folder, config_settings=None, metadata_directory=None):
    print("an hour of compiling")
    name = f"{NAME}-{VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as archive:
        archive.writestr("small/__init__.py", "")
        archive.writestr(f"{INFO}/METADATA", METADATA)
        archive.writestr(f"{INFO}/WHEEL", TAGS)
        lines = [f"{each},sha256={digest(archive.read(each))},\\n" for each in archive.namelist()]
        archive.writestr(f"{INFO}/RECORD", "".join([*lines, f"{INFO}/RECORD,,\\n"]))
    return name


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
'''
PROJECT = {"src/pyproject.toml": PYPROJECT, "src/backend.py": BACKEND}
SILENT = BACKEND.replace("prepare_metadata_for_build_wheel", "no_such_hook")


def project_of(folder: Path, **files: str) -> Project:
    return make_project(folder / "project", RECIPE, files={**PROJECT, **{f"src/{k}": v for k, v in files.items()}})


@pytest.mark.parametrize(
    ("files", "origin", "compiled"),
    [
        ({}, "its build backend", False),
        ({"backend.py": SILENT}, "small-0.3.dist-info/METADATA from stage wheel", True),
    ],
)
def test_another_version_is_refused_as_early_as_it_is_known(
    files: dict[str, str],
    origin: str,
    compiled: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    project = project_of(tmp_path, **files)
    ended = project.build()
    assert ended.code == 1
    said = "\n".join(line.strip() for line in ended.out.splitlines())
    assert f"small.toml:2: version: the recipe sets 0.4, but {origin}" in said
    assert '2 | version = "0.4"' in said
    assert "packages.small.relabel = true" in said
    logs = "".join(path.read_text(errors="replace") for path in project.store.glob("logs/*.log"))
    assert ("an hour of compiling" in logs) == compiled
    assert project.published() == []


def test_a_relabelled_package_is_built_once_and_said(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    project.edit('from = "wheel"', 'from = "wheel"\nrelabel = true')
    ended = project.build()
    assert ended.code == 0, ended.out
    (wheel,) = project.out.rglob("*.whl")
    assert wheel.name == "small-0.4-py3-none-any.whl"
    logs = "".join(path.read_text(errors="replace") for path in project.store.glob("logs/*.log"))
    assert "built as small 0.3, packaged as small 0.4" in logs
    project.edit("relabel = true", "")  # what was built stays: only packing it is refused
    ended = project.build()
    assert ended.code == 1
    assert "but small-0.3.dist-info/METADATA from stage wheel reports Version: 0.3" in ended.out


def test_another_name_and_a_version_made_up_without_history(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    project.edit("[packages.small]", "[packages.large]")
    project.edit('axes = ["python"]\n', 'axes = ["python"]\nenv = { SMALL_VERSION = "0.1.dev0" }\n')
    ended = project.build()
    assert ended.code == 1
    assert (
        "small.toml:13: packages.large: the recipe sets large, but its build backend reports Name: small" in ended.out
    )
    assert "SETUPTOOLS_SCM_PRETEND_VERSION" in ended.out
    project.edit('SMALL_VERSION = "0.1.dev0"', 'SMALL_VERSION = "{version}"')
    project.edit("[packages.large]", "[packages.small]")
    assert project.build().code == 0


def test_the_release_of_the_command_line_is_no_disagreement(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    project.edit('version = "0.4"', 'version = "0.3"')
    ended = project.build("--release", "nightly=20260822")
    assert ended.code == 0, ended.out
    (wheel,) = project.out.rglob("*.whl")
    assert wheel.name == "small-0.3.dev20260822-py3-none-any.whl"


def test_a_wheel_as_source_is_compared_too(tmp_path: Path) -> None:
    project = project_of(tmp_path)
    project.edit('{ path = "src" }', '{ wheel = "small-0.3-py3-none-any.whl" }')
    metadata = create_metadata(name="small", version="0.3")
    (project.folder / "small-0.3-py3-none-any.whl").write_bytes(
        wheel_bytes({"small/__init__.py": b""}, metadata=metadata)
    )
    ended = project.build()
    assert ended.code == 1
    assert "the recipe sets 0.4, but small-0.3-py3-none-any.whl reports Version: 0.3" in ended.out
