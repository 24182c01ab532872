"""``axletree init`` and ``axletree wheel``, called as users call them."""

from __future__ import annotations

import json
import os
import platform
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.app.projects import make_defaults
from axletree.app.recipes import load_recipe, with_defaults
from axletree.app.source_lock import has_lock, pin_source
from axletree.cli.main import main
from axletree.cli.opening import lock_context, settings
from axletree.host.indexes import IndexSettings
from axletree.recipe.axes import expand
from axletree.recipe.target import resolve
from support import projects
from support.index_server import Server, serve
from support.projects import info, sdist_bytes, write_tree
from support.repositories import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.recipe.model import Recipe

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def here(tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder; no package index is asked unless a test names one."""
    monkeypatch.chdir(folder := write_tree(tmp_path / "work", {"empty/.keep": ""}))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    for name in ("PIP_FIND_LINKS", "UV_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return folder


@pytest.fixture
def server(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve() as found:
        monkeypatch.delenv("PIP_NO_INDEX")
        monkeypatch.setenv("PIP_INDEX_URL", f"{found.address}/simple")
        yield found


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as caught:
        main(args)
    code = caught.value.code
    assert isinstance(code, int)
    return code, *capsys.readouterr()


def recipe_in(folder: Path, name: str = "gizmo.toml") -> Recipe:
    """The recipe, with stand-ins for what a lock fills in."""
    return load_recipe(folder / name).recipe


def filled_in(folder: Path, name: str) -> Recipe:
    """The recipe with its defaults, without the locks of its environments."""
    loaded = load_recipe(folder / name)
    surroundings = lock_context(settings())
    indexes = IndexSettings(index_url=None)
    variant = expand(loaded.recipe)[0]
    source = resolve(loaded.recipe, variant).source
    upgrade = {"upgrade": False, "note": str}
    lock = pin_source(loaded, source, indexes, surroundings, **upgrade) if has_lock(source) else None  # type: ignore[arg-type]
    return with_defaults(loaded, make_defaults(loaded, lock, indexes, surroundings, print)).recipe


def test_an_sdist_of_the_index(here: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    old = sdist_bytes("gizmo-1.1", projects.SETUPTOOLS)
    new = sdist_bytes("gizmo-1.2", projects.SETUPTOOLS | {"PKG-INFO": info("gizmo", "1.2")})
    later = sdist_bytes("gizmo-2.0rc1", {})
    server.add_project("gizmo", {"gizmo-1.1.tar.gz": old, "gizmo-1.2.tar.gz": new, "gizmo-2.0rc1.tar.gz": later})
    code, out, err = call(capsys, "init", "Gizmo")
    assert (code, out.splitlines()) == (
        0,
        ["gizmo.toml: gizmo 1.2", "next: axletree lock gizmo.toml", "then: axletree build gizmo.toml"],
    )
    assert "reading gizmo-1.2.tar.gz" in err
    recipe = recipe_in(here)
    assert (recipe.source.pypi, recipe.version, recipe.axes) == ("gizmo", "1.2", {"python": (PYTHON,)})
    code, out, _ = call(capsys, "init", "gizmo==1.1", "--out", "old.toml")
    assert (code, recipe_in(here, "old.toml").version) == (0, "1.1")  # what a lock looks for


def test_what_the_index_does_not_have(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.add_project("gizmo", {"gizmo-1.2.tar.gz": b""})
    code, _, err = call(capsys, "init", "gadget")
    assert (code, "does not contain a project 'gadget'" in err) == (2, True)
    code, _, err = call(capsys, "init", "gizmo==7")
    assert (code, "has neither an sdist nor a wheel of gizmo 7" in err) == (2, True)
    assert "hint: name another release, such as gizmo==1.2, or specify a different index" in err
    for absent in ("./gizmo", "gizmo-7.tar.gz"):
        code, _, err = call(capsys, "init", absent)
        assert (code, f"{absent} does not exist\n  hint: check the path; to build an sdist" in err) == (2, True)
    code, _, err = call(capsys, "init", "gizmo==1.2.x.y")
    assert (code, "is not a valid version (PEP 440)" in err) == (2, True)


def test_offline_asks_no_network(here: Path, server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    server.add_project("gizmo", {"gizmo-1.2.tar.gz": sdist_bytes("gizmo-1.2", projects.SETUPTOOLS)})
    code, _, err = call(capsys, "init", "gizmo", "--offline")
    assert (code, server.requests) == (2, [])
    (here / "links").mkdir()
    (here / "links" / "gizmo-1.2.tar.gz").write_bytes(sdist_bytes("gizmo-1.2", projects.SETUPTOOLS))
    code, _, err = call(capsys, "init", "gizmo", "--offline", "--find-links", "links")
    assert (code, server.requests, err) == (0, [], "reading gizmo-1.2.tar.gz\n")


def test_a_folder_and_the_way_to_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.SETUPTOOLS | {"build/old.c": "", ".venv/pyvenv.cfg": ""})
    assert call(capsys, "init", "gizmo")[0] == 0
    assert recipe_in(here).source.path == "gizmo"
    assert recipe_in(here).source.exclude == ("build", "dist", ".venv")
    assert call(capsys, "init", "gizmo", "--out", "recipes/mine.toml")[0] == 0
    assert recipe_in(here, "recipes/mine.toml").source.path == "../gizmo"


def test_locks_never_go_to_a_package_of_the_project(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here, {"gizmo-tools/__init__.py": ""})
    write_tree(here / "gizmo", projects.HATCHLING)
    code, out, err = call(capsys, "init", "gizmo")
    assert (code, out.splitlines()[0].partition(":")[0]) == (0, "gizmo-tools-wheel.toml")
    assert "note: gizmo-tools/ is a Python package, so the recipe is gizmo-tools-wheel.toml, and its locks go" in err
    assert load_recipe(here / "gizmo-tools-wheel.toml").places.locks.name == "gizmo-tools-wheel"


def test_a_file_is_never_overwritten(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.SETUPTOOLS)
    (here / "gizmo.toml").write_text("mine")
    code, out, err = call(capsys, "init", "gizmo")
    assert (code, out) == (2, "")
    assert "gizmo.toml already exists and was not changed" in err
    assert (here / "gizmo.toml").read_text() == "mine"


def test_a_folder_without_a_project_is_refused(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "init", "empty")
    assert (code, out) == (2, "")
    assert "the folder empty is not a Python project: it has neither pyproject.toml nor setup.py" in err


def test_an_archive(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "gizmo-1.2.zip").write_bytes(b"")
    (here / "gizmo-1.2.tar.gz").write_bytes(sdist_bytes("gizmo-1.2", projects.MESON))
    assert call(capsys, "init", "gizmo-1.2.tar.gz")[0] == 0
    recipe = recipe_in(here)
    assert (recipe.source.url, recipe.version) == ((here / "gizmo-1.2.tar.gz").as_uri(), "4.5.6")
    code, _, err = call(capsys, "init", "gizmo-1.2.zip")
    assert (code, "gizmo-1.2.zip" in err) == (2, True)
    code, _, err = call(capsys, "init", "gone-1.tar.gz")
    assert (code, "gone-1.tar.gz does not exist" in err) == (2, True)


def test_a_git_repository_at_its_newest_release(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    origin = Origin(here / "gizmo.git")
    write_tree(origin.folder, projects.HATCHLING)
    for tag in ("v1.2", "v1.10", "v2.0rc1", "nightly"):
        origin.git("add", ".")
        origin.git("commit", "-q", "--allow-empty", "-m", tag)
        origin.git("tag", tag)
    assert call(capsys, "init", origin.url)[0] == 0
    recipe = recipe_in(here, "gizmo-tools.toml")
    assert (recipe.source.git, recipe.source.ref, recipe.version) == (origin.url, "v1.10", "1.10")
    built = filled_in(here, "gizmo-tools.toml").stages["build"]
    assert built.env == {"SETUPTOOLS_SCM_PRETEND_VERSION": "{version}"}
    assert call(capsys, "init", f"git+{origin.url}@v1.2", "--out", "old.toml")[0] == 0
    assert recipe_in(here, "old.toml").version == "1.2"
    code, _, err = call(capsys, "init", "ssh://git@host.example/x.git")
    assert (code, "unsupported git address" in err) == (2, True)


def test_a_checkout_says_the_version_by_its_tags(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    origin = Origin(here / "gizmo")
    write_tree(origin.folder, projects.HATCHLING)
    origin.git("add", ".")
    origin.git("commit", "-q", "-m", "one")
    origin.git("tag", "v1.2")
    assert call(capsys, "init", "gizmo")[0] == 0
    assert recipe_in(here, "gizmo-tools.toml").version == "1.2"
    origin.git("commit", "-q", "--allow-empty", "-m", "two")
    assert call(capsys, "init", "gizmo", "--out", "later.toml")[0] == 0
    assert recipe_in(here, "later.toml").version == "1.3.dev1"


def test_rust_without_its_crates_is_one_message(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.MATURIN)
    code, out, err = call(capsys, "init", "gizmo")
    assert (code, out) == (3, "")
    assert "gizmo is written in Rust, but its crates are not in its source, and stages have no network" in err
    assert "cargo vendor > .cargo/config.toml`; then run this command again" in err
    (here / "gizmo-1.tar.gz").write_bytes(sdist_bytes("gizmo-1", projects.MATURIN))
    code, _, err = call(capsys, "init", "gizmo-1.tar.gz")
    assert (code, 'which sets source.path = "FOLDER"' in err) == (3, True)
    assert not list(here.glob("*.toml"))


MESON = projects.MESON | {
    "meson.build": "project('gizmo', 'cpp', version: '1')\ncogs = dependency('gizmo-cogs')\n",
    "subprojects/cogs.wrap": "[wrap-file]\ndirectory = cogs-1\nsource_url = x\n[provide]\ngizmo-cogs = cogs\n",
}
CMAKE = projects.SCIKIT_BUILD | {
    "CMakeLists.txt": "cmake_minimum_required(VERSION 3.24)\nproject(gizmo LANGUAGES CXX)\ninclude(FetchContent)\n"
    "FetchContent_Declare(cogs URL https://x/y.tar.gz)\nFetchContent_MakeAvailable(cogs)\n",
}


@pytest.mark.parametrize(
    ("files", "message", "step"),
    [
        (
            MESON,
            "meson downloads gizmo-cogs (meson.build:2) when it configures gizmo",
            "run `meson subprojects download`",
        ),
        (CMAKE, "CMake downloads cogs (CMakeLists.txt:5) when it configures", "set FETCHCONTENT_SOURCE_DIR_COGS"),
    ],
    ids=["meson", "cmake"],
)
@pytest.mark.parametrize("command", ["init", "wheel"])
def test_what_a_build_would_download_is_one_message(
    command: str, files: dict[str, str], message: str, step: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(here / "gizmo", files)
    code, out, err = call(capsys, command, "gizmo")
    assert (code, out, err.count("error:")) == (3, "", 1)
    assert message in err
    assert step in err
    assert not list(here.glob("**/gizmo*.toml"))


def test_a_subproject_that_this_host_has_is_not_downloaded(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(here / "gizmo", MESON)
    asked = '#!/bin/sh\n[ "$2" = gizmo-cogs ] && echo 1.0\n'
    _program(here / "bin" / "pkg-config", asked, monkeypatch)
    assert call(capsys, "init", "gizmo")[0] == 0


@pytest.mark.parametrize(("version", "required"), [("3.23.2", True), ("3.24.0", False), ("4.1.0-rc1", False)])
def test_a_program_that_is_too_old_is_required_as_a_wheel(
    version: str, *, required: bool, here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(here / "gizmo", CMAKE | {"CMakeLists.txt": CMAKE["CMakeLists.txt"].partition("include")[0]})
    _program(here / "bin" / "cmake", f"#!/bin/sh\necho cmake version {version}\n", monkeypatch)
    assert call(capsys, "init", "gizmo")[0] == 0
    recipe = filled_in(here, "gizmo-core.toml")
    assert ("cmake>=3.24" in recipe.environments["build"].requires) is required
    assert ("cmake" in recipe.stages["build"].tools) is not required


def _program(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    path.write_text(text)
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")


def test_torch_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.TORCH)
    code, _, err = call(capsys, "init", "gizmo")
    assert (code, "compiles against PyTorch (setup.py:3)" in err, "--torch 2.13.0" in err) == (2, True, True)
    assert call(capsys, "init", "gizmo", "--torch", "2.13.0", "--gpu", "cu130")[0] == 0
    assert recipe_in(here, "torch-gizmo.toml").axes["gpu"] == ("cu130",)
    code, _, err = call(capsys, "init", "gizmo", "--torch", "2.13.0", "--gpu", "warp9")
    assert (code, "unknown GPU platform 'warp9'" in err) == (2, True)


def test_a_portable_wheel_by_zig_or_the_reason_against_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if platform.machine() != "x86_64":
        pytest.skip("only x86_64 is supported")
    write_tree(here / "gizmo", projects.SETUPTOOLS)
    assert call(capsys, "init", "gizmo", "--portable")[0] == 0
    recipe = recipe_in(here)
    assert recipe.stages["build"].env["CC"] == "python-zig cc -target x86_64-linux-gnu.2.17"
    assert "ziglang" in recipe.environments["build"].requires
    write_tree(here / "scatter", projects.TORCH)
    for command in ("init", "wheel"):
        code, out, err = call(capsys, command, "scatter", "--portable", "--torch", "2.13.0")
        assert (code, out) == (2, "")
        assert "for glibc 2.17: the project compiles against PyTorch (setup.py:" in err
        assert "run the command without --portable" in err
    write_tree(here / "rusty", projects.MATURIN)
    code, _, err = call(capsys, "init", "rusty", "--portable")
    assert (code, "contains Rust (" in err, "crates" in err) == (2, True, False)
    code, _, err = call(capsys, "init", "gizmo", "--portable", "--torch", "2.13.0", "--out", "other.toml")
    assert (code, "--torch was given" in err) == (2, True)


def test_the_users_word_about_torch_counts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.SETUPTOOLS)
    code, _, err = call(capsys, "init", "gizmo", "--gpu", "cpu")
    assert (code, "--gpu needs --torch" in err) == (2, True)
    assert call(capsys, "init", "gizmo", "--torch", "2.13.0")[0] == 0
    assert filled_in(here, "gizmo.toml").environments["build"].requires[0] == "torch=={torch}+{gpu}"


def test_pythons_that_the_project_does_not_take(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.SETUPTOOLS)
    code, _, err = call(capsys, "init", "gizmo", "--python", "3.8,3.12")
    assert (code, "gizmo supports Python >=3.9 (setup.py:12), but not 3.8" in err) == (2, True)
    code, _, err = call(capsys, "init", "gizmo", "--python", "three")
    assert (code, "these are not Python versions: three" in err) == (2, True)
    assert call(capsys, "init", "gizmo", "--python", "3.11, 3.12")[0] == 0
    assert recipe_in(here).axes["python"] == ("3.11", "3.12")


def test_json_has_each_fact_with_its_place(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here / "gizmo", projects.SETUPTOOLS)
    code, out, _ = call(capsys, "init", "gizmo", "--json")
    report = json.loads(out)
    assert (code, report["command"], report["result"]["recipe"]) == (0, "init", "gizmo.toml")
    assert report["result"]["project"]["version"]["stated"] == {
        "value": "1.2",
        "file": "setup.py",
        "line": 11,
        "why": "",
    }


def test_wheel_goes_the_whole_way_and_keeps_the_recipe(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_tree(here, projects.IN_TREE)
    code, out, err = call(capsys, "wheel", "--python", PYTHON)
    assert code == 0, out + err
    assert (here / "dist" / "gizmo.toml").is_file()
    assert [path.name for path in (here / "dist").glob("*.whl")] == ["gizmo-1.0-py3-none-any.whl"]
    assert recipe_in(here / "dist").source.path == ".."
    assert "not known: the requirements of its own build backend (backend)" in err
    assert call(capsys, "wheel", "--python", PYTHON)[0] == 0  # the same once more
    (here / "dist" / "gizmo.toml").write_text("mine")
    code, _, err = call(capsys, "wheel", "--python", PYTHON)
    assert (code, "dist/gizmo.toml already exists" in err) == (2, True)


REAL = {
    "msgpack==1.1.0": ("msgpack", "msgpack._cmsgpack"),
    "tornado==6.5.2": ("tornado", "tornado.speedups"),
    "frozenlist==1.8.0": ("frozenlist",),
    "contourpy==1.3.3": ("contourpy", "contourpy._contourpy"),
}


@pytest.mark.network
@pytest.mark.parametrize("spec", REAL)
def test_real_sdists(
    spec: str, tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = call(capsys, "init", spec)
    if code != 0:
        pytest.skip(f"the index that pip uses has no {spec}: {err.strip().splitlines()[-1]}")
    name, _, version = spec.partition("==")
    assert call(capsys, "lock", f"{name}.toml")[0] == 0
    recipe = recipe_in(tmp_path, f"{name}.toml")
    assert recipe.version == version
    assert recipe.tests["imports"].imports == REAL[spec]
    assert (recipe.environments["build"].axes == ()) is (name == "tornado")
