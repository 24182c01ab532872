"""Stages in conda environments: solved, linked, activated as conda-build has it, and the same in every store."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from conda_package_handling.api import extract  # type: ignore[import-untyped]

from axletree.cli.main import cli
from axletree.core.errors import AxletreeError
from axletree.package.wheel.metadata import create_metadata
from support.conda import put, text
from support.conda_world import (
    RECIPE,
    SOURCE,
    TRIPLET,
    conda_project,
    make_world,
    package,
    put_compiler,
    put_zed,
    reindex,
)
from support.envelopes import events_of
from support.faults import faults_in_stages
from support.tiny import need_pythons
from support.wheels import wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from support.tiny import Tiny


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The channel; not to be changed."""
    pytest.importorskip("rattler")
    folder = tmp_path_factory.mktemp("world") / "channel"
    make_world(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, channel: Path) -> Tiny:
    """Locked and built; not to be changed."""
    tiny = conda_project(tmp_path_factory.mktemp("conda"), channel)
    locked = tiny.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    tiny.built()
    return tiny


def lock_of(tiny: Tiny, name: str) -> dict[str, Any]:
    return tomllib.loads((tiny.folder / "tiny" / name).read_text())


def line_of(tiny: Tiny, zed: str) -> dict[str, Any]:
    """The line of the built package in its channel."""
    page = json.loads((tiny.out / f"zed-{zed}" / "conda" / "linux-64" / "repodata.json").read_text())
    (line,) = page["packages.conda"].values()
    found: dict[str, Any] = line
    return found


def refused(tiny: Tiny, *command: str) -> str:
    """What a command says that must fail, in this process."""
    result = CliRunner(env=tiny.variables()).invoke(cli, [*command], catch_exceptions=True)
    assert isinstance(result.exception, AxletreeError), result.output
    return str(result.exception)


def test_locks_have_files_digests_and_run_exports_and_no_path(base: Tiny) -> None:
    build, host = lock_of(base, "conda-lock.build.toml"), lock_of(base, "conda-lock.host-zed1.3.toml")
    assert {each["name"] for each in build["packages"]} == {"gxx_linux-64", "gcc_linux-64", "gxx_impl_linux-64"}
    assert {each["name"] for each in host["packages"]} == {"zed", "libcxx-like"}
    assert host["exported"] == ["libcxx-like >=13"]
    (zed,) = (each for each in host["packages"] if each["name"] == "zed")
    assert zed["run-exports"] == {"weak": ["zed >=1.3,<1.4.0a0"]}
    assert (zed["channel"], len(zed["sha256"])) == ("./channel", 64)
    assert str(base.folder) not in (base.folder / "tiny" / "conda-lock.build.toml").read_text()


def test_objects_are_compiled_by_the_environment(base: Tiny) -> None:
    """The source itself refuses another compiler."""
    (commands, _) = base.store.glob("workspaces/*/**/compile_commands.json")
    (command,) = json.loads(commands.read_text())
    assert f"/bin/{TRIPLET}-c++ " in command["command"]
    assert command["command"].startswith("/axletree/store/environments/")
    assert "/usr/local/src/conda/package-0" in command["command"]


def test_run_exports_are_dependencies_of_the_package(base: Tiny) -> None:
    for zed in ("1.2", "1.3"):
        pin = f"zed >={zed},<1.{int(zed[-1]) + 1}.0a0"
        assert line_of(base, zed)["depends"][1:] == ["libcxx-like >=13", pin]


def test_libraries_of_the_host_environment_are_searched_where_they_are_installed(base: Tiny, tmp_path: Path) -> None:
    """The compiler's flags have the path of the environment, as conda-forge's have."""
    (made,) = (base.out / "zed-1.3" / "conda" / "linux-64").glob("*.conda")
    extract(str(made), str(tmp_path / "tiny"))
    said = subprocess.run(
        ["readelf", "-d", tmp_path / "tiny/lib/libtiny.so"], capture_output=True, text=True, check=True
    )
    assert "[$ORIGIN]" in said.stdout
    assert b"/axletree/store" not in (tmp_path / "tiny/lib/libtiny.so").read_bytes()


def test_nothing_runs_again(base: Tiny) -> None:
    assert base.built().counts["ran"] == 0


def test_another_store_gets_the_same(base: Tiny, channel: Path, tmp_path: Path) -> None:
    other = conda_project(tmp_path / "a-path-of-another-length", channel)
    shutil.copytree(base.folder / "tiny", other.folder / "tiny")
    trees = other.built("-v", "*1.3*").trees
    ours = base.built("-v", "*1.3*").trees
    assert trees["lib"] == ours["lib"]
    assert line_of(other, "1.3")["sha256"] == line_of(base, "1.3")["sha256"]


def test_a_package_may_ignore_run_exports(base: Tiny) -> None:
    again = replace(base, home=base.home.with_name("ignoring"), store=base.store)
    shutil.copytree(base.home / "links", again.home / "links")
    ignoring = ("--set", 'packages.tiny.conda.ignore-run-exports=["gxx_linux-64"]')
    assert again.built("-v", "*1.2*", *ignoring).stages("done") == {
        "pack-conda:tiny",
        "audit-conda:tiny",
        "channel:zed-1.2",
    }
    assert line_of(again, "1.2")["depends"][1:] == ["zed >=1.2,<1.3.0a0"]


def test_what_was_killed_while_it_was_linked_is_made_whole(base: Tiny, channel: Path, tmp_path: Path) -> None:
    tiny = conda_project(tmp_path, channel)
    shutil.copytree(base.folder / "tiny", tiny.folder / "tiny")
    killed = replace(tiny, environ=faults_in_stages(tmp_path / "fault", "conda-meta", 1)).build("-v", "*1.3*")
    assert killed.code == 1
    assert killed.stages("failed") in ({"environment:build"}, {"environment:host"})
    prefixes = list((tiny.store / "environments").iterdir())
    assert prefixes
    for path in (found for prefix in prefixes for found in prefix.rglob("*") if found.is_file()):
        path.unlink()  # as if it had been killed earlier
    tiny.built("-v", "*1.3*")
    assert line_of(tiny, "1.3")["sha256"] == line_of(base, "1.3")["sha256"]


def test_locking_that_is_killed_writes_no_lock(channel: Path, tmp_path: Path) -> None:
    tiny = conda_project(tmp_path, channel)
    command = [*tiny.program, "lock", str(tiny.recipe)]
    with subprocess.Popen(command, env=tiny.variables(), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any("solving host" in line for line in process.stderr)
        process.kill()
    assert not list(tiny.folder.glob("tiny/conda-lock*"))
    assert tiny.call("lock", str(tiny.recipe)).returncode == 0


def test_another_compiler_builds_again_and_an_edited_lock_is_refused(base: Tiny, channel: Path, tmp_path: Path) -> None:
    tiny = replace(conda_project(tmp_path, channel), store=base.store)
    shutil.copytree(base.folder / "tiny", tiny.folder / "tiny")
    put_compiler(tiny.folder / "channel", "14.1")
    reindex(tiny.folder / "channel")
    assert tiny.built("-v", "*1.3*").counts["ran"] == 0  # the lock decides, not the channel
    assert tiny.call("lock", str(tiny.recipe), "--upgrade").returncode == 0
    built = tiny.built("-v", "*1.3*", "--out", str(tmp_path / "dist"))
    assert {"environment:build", "lib", "pack-conda:tiny"} <= built.stages("done")
    assert "environment:host" not in built.stages("done")
    put_zed(tiny.folder / "channel", "1.3", returns=9)
    lock = tiny.folder / "tiny" / "conda-lock.host-zed1.3.toml"
    digest = next(each["sha256"] for each in lock_of(tiny, lock.name)["packages"] if each["name"] == "zed")
    lock.write_text(lock.read_text().replace(digest, "0" * 64))
    failed = tiny.build("-v", "*1.3*", "--locked")
    assert failed.code == 2
    assert "zed-1.3-h0_0.conda is not the locked file" in failed.why()


BAD_LOCKS = {
    'requires = ["gxx_linux-64"]': (
        'requires = ["gxx_linux-64", "cmake >=3"]',
        "environments.build: the requirements cannot be satisfied: No candidates were found for cmake >=3",
    ),
    'requires = ["zed {zed}.*"]': (
        'requires = ["zed {zed}.*", "libcxx-like <13"]',
        "environments.host: the requirements cannot be satisfied: ",
    ),
    'channels = ["./channel"]\nrequires = ["zed': (
        'channels = ["./chanel"]\nrequires = ["zed',
        "the channel does not exist: ./chanel",
    ),
    'channels = ["./channel"]\nrequires = ["gxx': (
        'channels = ["conda-forge"]\nrequires = ["gxx',
        "cannot read channel conda-forge with --offline",
    ),
}


@pytest.mark.parametrize("old", BAD_LOCKS)
def test_what_cannot_be_locked_is_said(old: str, channel: Path, tmp_path: Path) -> None:
    new, said = BAD_LOCKS[old]
    tiny = conda_project(tmp_path, channel)
    tiny.change(old, new)
    assert said in refused(tiny, "lock", str(tiny.recipe))
    assert not list(tiny.folder.glob("tiny/conda-lock*"))


def test_locks_that_do_not_fit_are_refused_before_anything_runs(base: Tiny, tmp_path: Path) -> None:
    tiny = replace(base, folder=tmp_path / "project")
    shutil.copytree(base.folder, tiny.folder)
    lock = tiny.folder / "tiny" / "conda-lock.build.toml"
    text = lock.read_text()
    build = ("build", str(tiny.recipe), "--locked", "--out", str(tmp_path / "dist"))
    lock.write_text(text.replace('platform = "linux-64"', 'platform = "osx-arm64"'))
    assert "the lock is out of date: the platform is linux-64, was osx-arm64" in refused(tiny, *build)
    lock.write_text(text.replace("libcxx-like >=13", "libcxx-like >=14"))
    assert "the lock is out of date: run export libcxx-like >=14 added" in refused(tiny, *build)
    lock.write_text(text.replace("lock-version = 2", "lock-version = 1"))
    assert "the file has format 1, which an older version of Axletree wrote" in refused(tiny, *build)
    lock.unlink()
    assert "environment 'build' has no lock for this variant (conda-lock.build.toml)" in refused(tiny, *build)


BAD_RECIPES = {
    'requires = ["zed {zed}.*"]\n': (
        'requires = ["zed {zed}.*"]\nrequires-from = "none.txt"\n',
        "cannot read none.txt: No such file or directory",
    ),
    'host = "host"\n': ('host = "host"\nimage = "old"\n', "a stage cannot use both an image and a conda environment"),
    'environment = "build"\n': ("", "host needs an environment beside it"),
    'axes = []\nprovider = "conda"\nchannels = ["./channel"]\nrequires = ["gxx_linux-64"]': (
        'axes = []\npython = "3.11"',
        "environment 'build' is not a conda environment, but the stage has a host",
    ),
    'channels = ["./channel"]\nrequires = ["gxx': (
        'channels = ["https://me:secret@example.org/c"]\nrequires = ["gxx',
        "the channel contains a user name, password or token",
    ),
    "axes = []\n": ('axes = ["zed"]\n', None),
    'axes = ["zed"]\nprovider': (
        "axes = []\nprovider",
        "uses axis 'zed', which is not declared here",
    ),
}


@pytest.mark.parametrize("old", BAD_RECIPES)
def test_recipes_that_cannot_be_are_refused_with_their_line(old: str, tmp_path: Path) -> None:
    new, said = BAD_RECIPES[old]
    assert old in RECIPE
    recipe = tmp_path / "tiny.toml"
    recipe.write_text(RECIPE.replace(old, new, 1) + '\n[images.old]\nfrom = "tar:x"\n')
    result = CliRunner().invoke(cli, ["check", str(recipe)], catch_exceptions=True)
    if said is None:
        assert result.exit_code == 0, result.output + str(result.exception)
        return
    assert isinstance(result.exception, AxletreeError), result.output
    assert said in str(result.exception)
    assert all(problem.line is not None for problem in result.exception.problems)


PYTHON_RECIPE = """\
name = "tiny"
version = "1.0"
summary = "A module."
license = "MIT"
[source]
path = "src"
[axes]
python = ["PYTHON"]

[environments.build]
axes = []
provider = "conda"
channels = ["./channel"]
requires = ["gxx_linux-64"]
[environments.host]
provider = "conda"
channels = ["./channel"]
requires = ["zed 1.3.*", "python {python}.*"]
wheels = ["other"]
requires-from = "requirements.txt"
[environments.run]
provider = "conda"
channels = ["./channel"]
requires = ["zed", "libcxx-like"]
wheels = ["demo"]

[stages.module]
action = "run"
axes = ["python"]
environment = "build"
host = "host"
tools = ["c++"]
commands = [
  "python -c 'import demo, other'",
  "mkdir $AXLETREE_OUT/tiny",
  "c++ $CXXFLAGS $LDFLAGS -DBY_CONDA -shared -fPIC -o $AXLETREE_OUT/tiny/_tiny.so tiny.cpp",
  "cp __init__.py $AXLETREE_OUT/tiny/",
]

[packages.tiny]
from = "module"
formats = ["conda", "wheel"]

[tests.used]
packages = ["tiny"]
environment = "run"
installers = ["conda", "pip", "uv"]
commands = ["python -c 'import tiny, demo; print(tiny.answer())'", "test -n \\"$CONDA_PREFIX\\""]
"""
MODULE = """\
import ctypes, pathlib, demo, sys
ctypes.CDLL(sys.prefix + "/lib/libzed.so.1", ctypes.RTLD_GLOBAL)
library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("_tiny.so")))
def answer() -> int:
    return library.tiny()
"""


@pytest.fixture(scope="module")
def python_project(tmp_path_factory: pytest.TempPathFactory, channel: Path) -> Tiny:
    """A module that is built with, and tested in, conda environments that have wheels too."""
    recipe = PYTHON_RECIPE.replace("PYTHON", need_pythons(1)[0])
    files = [
        ("requirements.txt", "# comment\ndemo>=1  # why\n"),
        ("src/__init__.py", MODULE),
        ("src/tiny.cpp", SOURCE.replace("|| !defined(ARGS_OF_CONDA)", "")),
    ]
    tiny = conda_project(tmp_path_factory.mktemp("python"), channel, recipe=recipe, files=files)
    for name in ("demo", "other"):
        wheel = tiny.home / "links" / f"{name}-1.0-py3-none-any.whl"
        wheel.write_bytes(wheel_bytes({f"{name}/__init__.py": b""}, metadata=create_metadata(name=name, version="1.0")))
    return tiny


def test_an_editable_tree_has_prefixes_of_its_own(base: Tiny, channel: Path, tmp_path: Path) -> None:
    """The source refuses another compiler; a change is compiled alone; what `build` made of it is not touched."""
    tiny = replace(conda_project(tmp_path, channel), store=base.store)
    shutil.copytree(base.folder / "tiny", tiny.folder / "tiny")
    made = tiny.call("dev", str(tiny.recipe), "-v", "*1.3*")
    assert made.returncode == 0, made.stderr
    ours = tiny.source / ".axletree"
    (command,) = json.loads((ours / "build" / "compile_commands.json").read_text())
    assert command["command"].startswith(f"{ours}/build-prefix/bin/{TRIPLET}-c++ ")
    assert (ours / "venv" / "include" / "zed.h").exists()
    assert f"programs: {str(ours)[1:]}/venv/bin" in made.stdout  # from the root, where it was called
    tiny.edit("src/tiny.cpp", "* 10", "* 20")
    assert "2 of 2 steps" in tiny.call("rebuild", str(tiny.source)).stdout
    assert tiny.call("rebuild", str(tiny.source)).stdout.startswith(("0 of 2 steps", "nothing to do"))
    shutil.rmtree(ours / "build-prefix" / "conda-meta")  # as a killed process leaves it
    tiny.recipe.touch()
    tiny.change("options = {", 'options = { NOTHING = "1",')
    again = tiny.call("dev", str(tiny.recipe), "-v", "*1.3*")
    assert again.returncode == 0, again.stderr
    assert (ours / "build-prefix" / "conda-meta").is_dir()


def test_a_failed_stage_is_looked_at_in_its_environment(base: Tiny, channel: Path, tmp_path: Path) -> None:
    tiny = replace(conda_project(tmp_path, channel), store=base.store)
    shutil.copytree(base.folder / "tiny", tiny.folder / "tiny")
    tiny.edit("src/tiny.cpp", "* 10", "* nonsense")
    assert tiny.build("-v", "*1.3*").code == 1
    shown = tiny.call("shell", "tiny:lib[zed1.3]", "sh", "-c", 'basename "$CXX"; ls $PREFIX/include')
    assert shown.stdout.split() == [f"{TRIPLET}-c++", "zed.h"], shown.stderr


def test_a_prefix_that_is_too_long_is_refused(base: Tiny, tmp_path: Path) -> None:
    long = tmp_path / ("a" * 120) / ("b" * 120)
    command = ("env", "create", str(base.recipe), str(long), "-v", "*1.3*", "--environment", "host")
    assert "bytes, but conda packages allow 255" in refused(base, *command)
    assert not (long / "prefix").exists()


def test_without_the_client_nothing_is_tried(base: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.host.conda_install.importlib.util.find_spec", lambda _: None)
    for command in (("lock",), ("build", "--locked", "--out", str(base.out))):
        said = refused(base, command[0], str(base.recipe), *command[1:])
        assert "needs py-rattler, which is not installed" in said
        assert "pip install 'py-rattler" in said


PYDEMO = {
    "pydemo/__init__.py": b"",
    "pydemo-2.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: pydemo\nVersion: 2.0\n",
}


@pytest.mark.parametrize("way", ["requirement", "file", "program"])
def test_a_wheel_does_not_replace_what_conda_packages_have(way: str, channel: Path, tmp_path: Path) -> None:
    python = need_pythons(1)[0]
    tiny = conda_project(tmp_path, channel, recipe=PYTHON_RECIPE.replace("PYTHON", python))
    files = [text(f"lib/python{python}/site-packages/{path}", data) for path, data in PYDEMO.items()]
    files.append(text("bin/pydemo", b"#!/bin/sh\n", executable=True))
    put(tiny.folder / "channel", package("pydemo", "2.0", depends=("python",)), files)
    reindex(tiny.folder / "channel")
    name = "pydemo" if way == "requirement" else "thief"
    members = {"pydemo/__init__.py" if way == "file" else "thief.py": b""}
    if way == "program":
        members["thief-1.0.dist-info/entry_points.txt"] = b"[console_scripts]\npydemo = thief:main\n"
    wheel = wheel_bytes(members, metadata=create_metadata(name=name, version="1.0"))
    (tiny.home / "links" / f"{name}-1.0-py3-none-any.whl").write_bytes(wheel)
    tiny.change('requires = ["zed", "libcxx-like"]\nwheels = ["demo"]', f'requires = ["pydemo"]\nwheels = ["{name}"]')
    tiny.change('requires-from = "requirements.txt"\n', "")
    said = refused(tiny, "env", "create", str(tiny.recipe), str(tmp_path / "made"), "--environment", "run")
    assert {
        "requirement": "wheel pydemo would replace conda package pydemo 2.0",
        "file": f"would replace lib/python{python}/site-packages/pydemo/__init__.py of conda package pydemo-2.0-h0_0",
        "program": "wheel thief-1.0-py3-none-any.whl would replace bin/pydemo of conda package pydemo-2.0-h0_0",
    }[way] in said
    assert not (tmp_path / "made" / "prefix").exists()


def test_wheels_lie_on_top_and_tests_run_in_conda_environments(python_project: Tiny) -> None:
    tiny = python_project
    locked = tiny.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    (host,) = tiny.folder.glob("tiny/conda-lock.host-*.toml")
    assert lock_of(tiny, host.name)["wheel-requires"] == ["other", "demo>=1"]
    run = tiny.built()
    assert {"test:used:conda", "test:used:pip", "test:used:uv"} <= {
        name.partition("[")[0] for name in run.stages("done")
    }


USER = """\
name = "user"
version = "1.0"
[source]
path = "src"
[axes]
python = ["PYTHON"]
[recipes.tiny]
recipe = "tiny.toml"
[environments.host]
provider = "conda"
channels = ["./channel"]
requires = ["zed 1.3.*", "python {python}.*"]
wheels = ["demo"]
packages = ["tiny/tiny"]
[stages.use]
action = "run"
axes = ["python"]
environment = "host"
inputs = ["tiny/module"]
commands = [
  "python -c 'import tiny; print(tiny.answer())' >$AXLETREE_OUT/answer",
  "test -e $AXLETREE_IN_TINY_MODULE/tiny/_tiny.so",
]
"""


def test_a_wheel_of_another_recipe_lies_on_top_too(python_project: Tiny) -> None:
    """Both recipes have environments of conda; what is imported was built before, and does not run again."""
    tiny = python_project
    tiny.call("lock", str(tiny.recipe))
    tiny.built()
    user = tiny.folder / "user.toml"
    user.write_text(USER.replace("PYTHON", need_pythons(1)[0]))
    locked = tiny.call("lock", str(user))
    assert locked.returncode == 0, locked.stderr
    done = tiny.call("build", str(user), "--json", "--out", str(tiny.home / "other"))
    assert done.returncode == 0, done.stdout + done.stderr
    ended = {event["stage"]: event["status"] for event in events_of(done.stdout) if event["event"] == "stage-finished"}
    assert {stage for stage, status in ended.items() if status == "done"} == {
        f"{stage}[py{need_pythons(1)[0].replace('.', '')}]" for stage in ("environment:host", "use")
    }
    assert any(stage.startswith("tiny/audit:tiny") for stage in ended)
    wheel = wheel_bytes({"tiny.py": b""}, metadata=create_metadata(name="tiny", version="0.9"))
    (tiny.home / "links" / "tiny-0.9-py3-none-any.whl").write_bytes(wheel)
    user.write_text(user.read_text().replace('wheels = ["demo"]', 'wheels = ["demo", "tiny"]'))
    assert tiny.call("lock", str(user)).returncode == 0
    twice = tiny.call("build", str(user), "--out", str(tiny.home / "other"))
    assert twice.returncode == 2
    assert "the environment gets tiny from a recipe, but its lock has tiny 0.9" in twice.stderr
