"""Every command reports in the one envelope, and what it really prints is as the published schema says."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import jsonschema
import msgspec
import pytest
from click.testing import CliRunner

from axletree.cli.main import cli
from axletree.cli.reporting import ReportCommand, all_commands, report_types
from axletree.report.schema import report_schema
from support import projects
from support.artifacts import make_artifact
from support.elfs import compile_library
from support.envelopes import check_envelope, result_of
from support.faulty import LIBRARY, Project, make_project
from support.gizmo_sdk import MANIFEST, make_gizmo
from support.hip_library import bundles, hip_library
from support.images import make_layout, tiny_layer
from support.projects import write_tree
from support.repositories import Project as Repositories
from support.small_torch import make_small_torch
from support.tiny import need_pythons
from support.tug import make_tug

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NO_REPORT = {
    "schema": "prints a schema, which is JSON already",
    "completion": "prints a script of a shell",
    "shell": "becomes somebody else's command",
    "image shell": "becomes a shell in an image",
    "env run": "becomes somebody else's command",
}
"""Commands without a report, and why."""

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
ENVIRONMENT = f"""
[environments.bare]
axes = []
python = "{PYTHON}"
provider = "system"
"""
IMAGES = '[images.tiny]\nfrom = "oci:oci"\n'
CACHE = "# a cache\nCMAKE_HOME_DIRECTORY:INTERNAL=/src\n//Use it\nUSE_IT:BOOL=ON\n"
LOG = "In file included from a.cpp:1:\na.cpp:2:10: fatal error: b.h: No such file or directory\n"


@dataclass(frozen=True)
class Place:
    """A folder with an input for each command; what takes time is made when it is asked for."""

    folder: Path

    @cached_property
    def project(self) -> Project:
        """It was built."""
        project = make_project(self.folder / "project", LIBRARY + ENVIRONMENT)
        assert project.build().code == 0
        return project

    @cached_property
    def wheel(self) -> Path:
        return next(self.project.out.glob("*.whl"))

    @cached_property
    def library(self) -> Path:
        return compile_library(self.folder / "libdemo.so", "-lm")

    @cached_property
    def environment(self) -> Path:
        made = self.project.run("env", "create", "small.toml", "made")
        assert made.code == 0, made.err
        return self.project.folder / "made"

    @cached_property
    def gizmo(self) -> list[str]:
        """Manifest and files of an SDK."""
        manifest = self.folder / "gizmo.toml"
        manifest.write_text(MANIFEST)
        return [str(manifest), "--prefix", str(make_gizmo(self.folder / "gizmo"))]

    def file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("place"))


def _unpacked(place: Place) -> Path:
    assert place.project.run("unpack", place.wheel, "--out", "unpacked").code == 0
    return next((place.project.folder / "unpacked").iterdir())


def _active(place: Place) -> list[str | Path]:
    """A command, in an environment that is active."""
    return ["env", "run", place.environment, "--", sys.executable, "-P", "-m", "axletree", "env", "deactivate"]


def _developed(place: Place, folder: str = "tug") -> list[str | Path]:
    stage = '[stages.core]\naction = "compile"\nenvironment = "tools"\ntools = ["c++", "cmake", "ninja"]\n'
    tug = make_tug(place.folder / folder, "cmake", stage, versions=need_pythons(1))
    return ["dev", tug.recipe, "-v", "py*-nomagma"]


def _pure(place: Place) -> Path:
    """A project whose backend is its own, so that building it needs nothing else."""
    return write_tree(place.folder / "pure", projects.IN_TREE)


def _rebuilt(place: Place) -> list[str | Path]:
    words = _developed(place, "rebuilt")
    assert place.project.run(*words).code == 0
    return ["rebuild", place.folder / "rebuilt" / "project" / "src"]


def _synced(place: Place) -> list[str | Path]:
    repositories = Repositories(place.folder / "origins")
    repositories.first_release()
    return ["source", "sync", repositories.recipe, "--into", place.folder / "checkouts"]


def _fetched(place: Place) -> list[str | Path]:
    make_artifact(place.folder / "in", "rand_lib_gfx90a", {"lib/a.so": b"x"})
    words: list[str | Path] = [
        "--artifacts",
        place.folder / "in",
        "--archives",
        "--out",
        place.folder / "runs" / "1-linux",
    ]
    laid = place.project.run("sdk", "lay-out", place.gizmo[0], *words)
    assert laid.code == 0, laid.err
    words = ["--from", place.folder / "runs", "--run-id", "1", "--artifact-group", "gfx90a"]
    return ["sdk", "fetch", *words, "--out", place.folder / "got"]


def _uploaded(place: Place) -> list[str | Path]:
    out = place.folder / "sdk"
    assert place.project.run("sdk", "build", *place.gizmo, "--level", "1", "--out", out).code == 0
    words: list[str | Path] = [
        "--from",
        out,
        "--to",
        place.folder / "uploads",
        "--run-id",
        "1",
        "--artifact-group",
        "gfx9-all",
    ]
    return ["sdk", "upload", *words]


def _images(place: Place) -> Path:
    make_layout(place.folder / "oci", [tiny_layer()])
    return place.file("images.toml", IMAGES)


def _image(place: Place) -> str:
    """The id of an image that is in the store."""
    ended = place.project.run("image", "make", _images(place), "--json")
    return str(result_of(ended.out.splitlines()[-1])["images"][0]["id"])


CALLS: dict[str, Callable[[Place], list[str | Path]]] = {
    "audit": lambda place: ["audit", place.wheel],
    "build": lambda _: ["build", "small.toml", "--out", "dist"],
    "check": lambda place: ["check", "small.toml", place.file("bad.toml", "name = 1\n")],
    "clean": lambda place: ["clean", place.project.source],
    "cmake-cache": lambda place: ["cmake-cache", place.file("CMakeCache.txt", CACHE), "--expect", "USE_IT=OFF"],
    "dev": _developed,
    "diagnose": lambda place: ["diagnose", place.file("build.log", LOG)],
    "doctor": lambda _: ["doctor"],
    "drift": lambda _: ["drift", "small.toml", "--source", "src"],
    "edit-elf": lambda place: ["edit-elf", place.library, "--runpath", "$ORIGIN", "--soname", "libother.so"],
    "env activate": lambda place: ["env", "activate", place.environment],
    "env create": lambda _: ["env", "create", "small.toml", "anew"],
    "env deactivate": _active,
    "env export": lambda place: ["env", "export", place.environment],
    "env import": lambda place: ["env", "import", place.file("environment.yml", "dependencies: [zlib, pip]\n")],
    "env verify": lambda place: ["env", "verify", place.environment, "--compiler", "c++"],
    "facts": lambda _: ["facts"],
    "image export": lambda place: ["image", "export", _image(place), "--to", f"tar:{place.folder / 'root.tar'}"],
    "image list": lambda place: ["image", "list", *([] if _image(place) else ())],
    "image make": lambda place: [
        "image",
        "make",
        f"{place.file('images.toml', IMAGES)}:tiny",
        *([] if _image(place) else ()),
    ],
    "image remove": lambda place: ["image", "remove", _image(place)],
    "init": lambda place: ["init", _pure(place), "--out", "pure.toml"],
    "ledger": lambda _: ["ledger", "small.toml", "--out", "dist"],
    "lock": lambda _: ["lock", "small.toml"],
    "matrix": lambda _: ["matrix", "small.toml"],
    "pack": lambda place: ["pack", _unpacked(place), "--out", "packed"],
    "plan": lambda _: ["plan", "small.toml"],
    "rebuild": _rebuilt,
    "recipes": lambda _: ["recipes"],
    "repair": lambda place: ["repair", place.wheel, "--out", "repaired"],
    "retag": lambda place: ["retag", place.wheel, "--build", "7", "--out", "retagged"],
    "rules": lambda _: ["rules"],
    "run-stage": lambda _: ["run-stage", "lib"],
    "sdk build": lambda place: ["sdk", "build", *place.gizmo, "--level", "1", "--out", place.folder / "other"],
    "sdk check-versions": lambda _: ["sdk", "check-versions", "1+rocm.7.1", "1+rocm.10.1"],
    "sdk explain": lambda place: ["sdk", "explain", *place.gizmo],
    "sdk fetch": _fetched,
    "sdk lay-out": lambda place: ["sdk", "lay-out", *place.gizmo, "--out", place.folder / "laid-out"],
    "sdk upload": _uploaded,
    "sdk version": lambda _: ["sdk", "version", "--base", "7.1.0", "--release-type", "release"],
    "settings": lambda _: ["settings"],
    "sizes": lambda place: ["sizes", place.wheel, place.library],
    "source sync": _synced,
    "split": lambda place: ["split", make_small_torch(place.folder / "torch"), "--out", "split", "--format", "conda"],
    "store du": lambda _: ["store", "du"],
    "store gc": lambda _: ["store", "gc", "--dry-run"],
    "store verify": lambda _: ["store", "verify"],
    "thin": lambda place: ["thin", hip_library(place.folder / "libhip.so", bundles(2)), "--arch-each", "--dry-run"],
    "unpack": lambda place: ["unpack", place.wheel, "--out", "once-more"],
    "wheel": lambda place: ["wheel", _pure(place), "--python", PYTHON, "--out", "wheels"],
}


def test_every_command_reports() -> None:
    without = {name for name, command in all_commands(cli) if not isinstance(command, ReportCommand)}
    assert without == set(NO_REPORT)


def test_every_report_is_tried() -> None:
    assert set(report_types(cli)) == set(CALLS)


@pytest.mark.parametrize("name", report_types(cli))
def test_what_is_printed_is_as_the_schema_says(name: str, place: Place) -> None:
    ended = place.project.run(*CALLS[name](place), "--json")
    assert ended.out, ended.err
    envelope = json.loads(ended.out.splitlines()[-1])
    assert (envelope["command"], envelope["schema"]) == (name, 1)
    check_envelope(envelope)


@pytest.mark.parametrize("name", report_types(cli))
def test_each_schema_is_printed_alone(name: str) -> None:
    done = CliRunner().invoke(cli, ["schema", name], catch_exceptions=False)
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == json.loads(msgspec.json.encode(report_schema(name, report_types(cli)[name])))
    assert schema["properties"]["command"] == {"const": name}


def spoiled(**changes: object) -> str:
    """A report of ``store gc`` that is not as its schema says."""
    report = {
        "dry_run": True,
        "records": [],
        "blobs": 0,
        "folders": [],
        "files": 0,
        "freed": 0,
        "kept_records": 0,
        "kept_blobs": 0,
    }
    kept = {key: value for key, value in {**report, **changes}.items() if value is not None}
    return json.dumps({"schema": 1, "command": "store gc", "version": "0", "result": kept})


def test_a_report_that_is_not_as_its_schema_says_is_noticed() -> None:
    assert result_of(spoiled())["blobs"] == 0
    for changes in ({"blobs": "none"}, {"blobs": None}, {"blobbs": 0}):
        with pytest.raises(jsonschema.ValidationError):
            result_of(spoiled(**changes))
