"""What a stage's programs find around them: variables, tools, environments that stages share."""

from __future__ import annotations

import importlib.util
import io
import os
import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import pytest
from packaging.markers import default_environment

from axletree.core.records import Grant, Interpreter, LocalFacts
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Digest, canonical_json, digest_of
from axletree.execute.context import Context
from axletree.execute.lacking import lacking_requirements
from axletree.execute.process import Log
from axletree.execute.stage_venvs import DESCRIPTION, LOCK, ensure_venv
from axletree.execute.variables import child_environment
from axletree.host.interpreters import find_interpreter, identity
from axletree.host.tools import SYSTEM_PATH
from axletree.host.venvs import installed, marker_environment
from axletree.recipe.locks import LockedWheel, make_lock, render_lock
from axletree.store.store import Store
from support.requests import request_of
from support.wheels import demo_metadata, wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def context_of(store: Store, *, parallel: Any = "jobs", **local: Any) -> Context:
    """The surroundings of a stage that has been given three jobs; ``local`` are its facts of this machine."""
    request = request_of("lib", local=LocalFacts(**local), grant=Grant(jobs=3, parallel=parallel))
    work = store.work / request.key[:24]
    work.mkdir(exist_ok=True)
    return Context(request=request, store=store, work=work, log=Log(io.BytesIO()), progress=lambda *_, **__: None)


def variables(context: Context, **own: str) -> dict[str, str]:
    """What programs of a stage that compiles get; ``own`` are variables of the recipe."""
    with child_environment(context, venv=None, compiles=True, variables=own) as env:
        return dict(env)


def program(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_flags_of_the_recipe_keep_the_machines_paths_out_of_objects_too(store: Store) -> None:
    context = context_of(store)
    env = variables(context, CXXFLAGS="-O3 -g", LDFLAGS="-s")
    mapped = f"-ffile-prefix-map={context.work}=."
    assert env["CXXFLAGS"] == f"-O3 -g {mapped}"
    assert env["CFLAGS"] == mapped
    assert env["LDFLAGS"] == "-s"


def test_a_compiler_for_gpus_is_there_if_it_is_declared(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Build scripts compile for a GPU because nvcc is there, also for the CPU's PyTorch."""
    nvcc = program(tmp_path / "system" / "nvcc", "echo nvcc")
    program(tmp_path / "system" / "gizmo", "echo gizmo")
    monkeypatch.setattr("axletree.execute.variables.SYSTEM_PATH", (str(tmp_path / "system"), "/usr/bin"))
    path = variables(context_of(store))["PATH"]
    assert shutil.which("nvcc", path=path) is None
    assert shutil.which("gizmo", path=path) is not None
    hipcc = program(tmp_path / "system" / "hipcc", "echo hipcc")
    path = variables(context_of(store, tools={"nvcc": nvcc}))["PATH"]
    assert shutil.which("nvcc", path=path) == nvcc
    assert shutil.which("hipcc", path=path) == hipcc  # so it is in the stage's key


def test_setuptools_keeps_its_own_flags_and_objects_name_no_folder(store: Store) -> None:
    """In ``CFLAGS`` ours would replace ``-O3``: the wheel would work, several times slower."""
    if importlib.util.find_spec("setuptools") is None or shutil.which("cc") is None:
        pytest.skip("needs setuptools and a C compiler")
    context = context_of(store)
    source = context.work / "source"
    source.mkdir()
    (source / "where.c").write_text("const char *where = __FILE__;\nint PyInit_where;\n")
    (source / "setup.py").write_text(
        "import os, setuptools\n"
        "where = setuptools.Extension('where', [os.path.abspath('where.c')])\n"
        "setuptools.setup(name='where', ext_modules=[where])\n"
    )
    with child_environment(context, venv=None, compiles=True, keep_flags=True) as env:
        command = [sys.executable, "setup.py", "build_ext", "--inplace"]
        done = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True, check=True)
    wanted = [word for word in (sysconfig.get_config_var("CFLAGS") or "").split() if word.startswith("-O")]
    compiled = next(line for line in done.stdout.splitlines() if " -c " in line)
    assert wanted
    assert set(wanted) <= set(compiled.split())
    (built,) = source.glob("where.*.so")
    assert b"source/where.c" in built.read_bytes()
    assert os.fsencode(context.work) not in built.read_bytes()


def test_cmake_that_a_setup_script_calls_gets_the_maps(store: Store) -> None:
    if shutil.which("cmake", path=":".join(SYSTEM_PATH)) is None or shutil.which("cc") is None:
        pytest.skip("needs cmake and a C compiler")
    context = context_of(store)
    (context.work / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(it C)\n")
    with child_environment(context, venv=None, compiles=True, keep_flags=True, variables={"CFLAGS": "-g1"}) as env:
        assert env["CFLAGS"] == "-g1"
        subprocess.run(["cmake", "-B", "build"], cwd=context.work, env=env, capture_output=True, check=True)
    cache = (context.work / "build" / "CMakeCache.txt").read_text()
    assert f"CMAKE_C_FLAGS:STRING=-g1 -ffile-prefix-map={context.work}=." in cache


@pytest.mark.parametrize("parallel", ["tokens", "jobs", "setuptools"])
def test_the_number_of_jobs_is_said_in_one_way_only(store: Store, parallel: str) -> None:
    """Beside the tokens of a job server a number would win, and each tool would take as many as it says."""
    env = variables(context_of(store, parallel=parallel), MAX_JOBS="64", CMAKE_BUILD_PARALLEL_LEVEL="64")
    numbers = {env.get("MAX_JOBS"), env.get("CMAKE_BUILD_PARALLEL_LEVEL")}
    assert numbers == {{"tokens": None, "jobs": "3", "setuptools": "1"}[parallel]}
    assert ("MAKEFLAGS" in env) == (parallel == "tokens")


def test_a_declared_tool_is_found_and_its_neighbours_are_not(store: Store, tmp_path: Path) -> None:
    declared = program(tmp_path / "opt" / "declared-tool", "echo here")
    program(tmp_path / "opt" / "neighbour-tool", "echo there")
    env = variables(context_of(store, tools={"declared-tool": declared}))
    assert subprocess.run(["declared-tool"], env=env, capture_output=True, check=True).stdout == b"here\n"
    assert shutil.which("neighbour-tool", path=env["PATH"]) is None


def test_a_compiler_that_is_linked_to_still_finds_its_parts(store: Store, tmp_path: Path) -> None:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    moved = program(tmp_path / "opt" / "bin" / "moved-c++", 'cat "$(dirname "$(readlink -f "$0")")/../lib/part"')
    (tmp_path / "opt" / "lib").mkdir()
    (tmp_path / "opt" / "lib" / "part").write_text("part of it")  # as compilers that are not of the system find theirs
    (tmp_path / "bin").mkdir()
    for name, target in (("my-c++", compiler), ("moved-c++", moved)):
        (tmp_path / "bin" / name).symlink_to(target)
    tools = {name: str(tmp_path / "bin" / name) for name in ("my-c++", "moved-c++")}
    env = variables(context_of(store, tools=tools))
    assert subprocess.run(["moved-c++"], env=env, capture_output=True, check=True).stdout == b"part of it"
    source = tmp_path / "x.cpp"
    source.write_text("#include <iostream>\nint main() { std::cout << __cplusplus; }\n")
    subprocess.run(["my-c++", "-std=c++17", source, "-o", tmp_path / "x"], env=env, check=True)
    assert subprocess.run([tmp_path / "x"], capture_output=True, check=True).stdout == b"201703"


def test_the_cuda_compiler_is_called_where_its_toolkit_is(store: Store, tmp_path: Path) -> None:
    """PyTorch and nvcc itself find the toolkit by the folder."""
    nvcc = program(tmp_path / "cuda" / "bin" / "nvcc", "exit 0")
    ccache = program(tmp_path / "ccache", "exit 0")
    env = variables(context_of(store, tools={"nvcc": nvcc}, ccache=ccache))
    assert shutil.which("nvcc", path=env["PATH"]) == nvcc


def test_the_compiler_cache_stands_before_the_compilers_that_there_are(store: Store, tmp_path: Path) -> None:
    ccache = program(tmp_path / "ccache", "exit 0")
    compiler = program(tmp_path / "opt" / "clang++", "exit 0")
    with_clang = variables(context_of(store, tools={"clang++": compiler}, ccache=ccache))["PATH"]
    found = shutil.which("clang++", path=with_clang)
    assert found is not None
    assert os.readlink(found) == ccache  # noqa: PTH115 (as text)
    without = variables(context_of(store, ccache=ccache))["PATH"]
    plain = os.pathsep.join(folder for folder in without.split(os.pathsep) if str(store.root) not in folder)
    for name in ("cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc"):
        assert (shutil.which(name, path=without) is None) == (shutil.which(name, path=plain) is None)


def test_a_pure_python_stage_needs_no_compiler(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.execute.variables.SYSTEM_PATH", (str(tmp_path),))
    ccache = program(tmp_path / "tools" / "ccache", "exit 0")
    assert variables(context_of(store, ccache=ccache))["PATH"] == str(tmp_path)


def test_links_are_made_whole_beside_what_a_killed_process_left(store: Store, tmp_path: Path) -> None:
    """In a PID namespace each stage is process 1, so a number tells nothing."""
    ccache = program(tmp_path / "ccache", "exit 0")
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    for name in (".cc.1", f".cc.{os.getpid()}", "ccache"):
        (store.cache / "tools" / "ccache").mkdir(parents=True, exist_ok=True)
        (store.cache / "tools" / "ccache" / name).symlink_to("elsewhere")
    first = variables(context_of(store, ccache=ccache))["PATH"]
    assert variables(context_of(store, ccache=ccache))["PATH"] == first


def test_another_ccache_is_reached_by_the_same_path(store: Store, tmp_path: Path) -> None:
    """Kept build folders hold the compiler's path in each command; with another they would compile everything again."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    paths = [program(tmp_path / name / "ccache", "exit 0") for name in ("one", "other")]
    seen = [variables(context_of(store, ccache=path))["PATH"] for path in paths]
    assert seen[0] == seen[1]
    found = shutil.which("cc", path=seen[1])
    assert found is not None
    assert os.readlink(found) == paths[1]  # noqa: PTH115 (as text)


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return find_interpreter(f"{sys.version_info[0]}.{sys.version_info[1]}", environ=os.environ)


def environment_of(store: Store, interpreter: Interpreter) -> tuple[Context, Digest]:
    """A stage that needs an environment which holds one wheel, and that environment's tree."""
    data = wheel_bytes({"demo/__init__.py": b""}, metadata=demo_metadata("1.0"))
    wheel = LockedWheel(
        name="demo", version="1.0", filename="demo-1.0-py3-none-any.whl", size=len(data), sha256=digest_of(data)
    )
    version = ".".join(interpreter.version.split(".")[:2])
    lock = make_lock((), python=version, platform=interpreter.platform, wheels=[wheel])
    files = {
        LOCK: render_lock(lock).encode(),
        DESCRIPTION: canonical_json({"version": version, "python": identity(interpreter)}),
        wheel.filename: data,
    }
    entries = [Entry(path=path, blob=store.put_bytes(data), size=len(data)) for path, data in files.items()]
    return context_of(store, interpreters={version: interpreter}), store.put_tree(make_tree(entries))


def test_an_environment_is_made_once(store: Store, interpreter: Interpreter) -> None:
    context, tree = environment_of(store, interpreter)
    folder = ensure_venv(context, tree)
    (folder / "mark").touch()
    assert ensure_venv(context, tree) == folder
    assert (folder / "mark").exists()
    assert not (context.work / "wheels").exists()


def test_an_environment_whose_interpreter_is_gone_is_made_anew(store: Store, interpreter: Interpreter) -> None:
    context, tree = environment_of(store, interpreter)
    folder = ensure_venv(context, tree)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/nowhere/python")
    assert ensure_venv(context, tree) == folder
    assert installed(folder) == {"demo": "1.0"}
    subprocess.run([folder / "bin" / "python", "-I", "-c", "import demo"], check=True)
    assert [path.name for path in store.environments.iterdir()] == [folder.name]


def test_requirements_hold_for_the_environments_python(store: Store, interpreter: Interpreter) -> None:
    """Not for the one that Axletree runs with."""
    context, tree = environment_of(store, interpreter)
    folder = ensure_venv(context, tree)
    markers = marker_environment(folder)
    assert markers["python_full_version"] == interpreter.version
    assert markers == {**default_environment()}


def test_what_a_build_requires_is_asked_of_the_environments_python(tmp_path: Path) -> None:
    python = program(tmp_path / "venv" / "bin" / "python", """echo '{"python_version": "3.99", "sys_platform": "x"}'""")
    assert python
    assert lacking_requirements(
        {'demo; python_version >= "3.99"', 'other; python_version < "3.99"', "third"}, tmp_path / "venv"
    ) == [
        'demo; python_version >= "3.99"',
        "third",
    ]
