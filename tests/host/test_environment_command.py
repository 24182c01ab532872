"""The commands: made from conda channels, wheels and the system; run in, exported, locked, refused."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.cli.main import cli
from axletree.core.errors import AxletreeError
from axletree.environment.apply import activated
from axletree.environment.delta import Activation
from axletree.environment.layers import deltas_of, order_of
from axletree.host.environment.prefixes import venv_layers
from axletree.host.interpreters import find_interpreter
from axletree.package.conda.interpreter import interpreter_packages
from axletree.package.conda.model import CondaPackage
from support.conda import index, put, text
from support.faults import KILLED, ends_at

if TYPE_CHECKING:
    from click.testing import Result

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
RECIPE = f"""\
name = "demo"
version = "1.0"
source = {{ path = "src" }}

[axes]
python = ["{PYTHON}"]
gpu = ["cpu", "rocm5.2"]

[environments.dev]
axes = ["python", "gpu"]
provider = "conda"
channels = ["./channel"]
requires = ["zlib"]

[environments.bare]
axes = ["python", "gpu"]
provider = "system"

[environments.wheels]
axes = ["python"]
"""
SCRIPT = b"""\
export CC="$CONDA_PREFIX/bin/cc"
export PATH="$CONDA_PREFIX/more:$PATH"
export TRICKY="it's
two lines"
unset -f nothing || true
"""


@pytest.fixture
def recipe(tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe beside a channel that has Python and a library with headers and an activation script."""
    for name in ("CPATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "CONDA_PREFIX", "VIRTUAL_ENV", "ROCM_PATH", "CC"):
        monkeypatch.delenv(name, raising=False)
    channel = tmp_path / "channel"
    interpreter = find_interpreter(PYTHON, environ=os.environ)
    made = interpreter_packages(
        program=interpreter.path, version=interpreter.version, free_threaded=False, subdir="linux-64"
    )
    for package, members in made:
        put(channel, package, list(members))
    zlib = CondaPackage(name="zlib", version="1.3", build="h1_0", subdir="linux-64")
    files = {"include/zlib.h": b"#pragma once\n", "lib/libz.so": b"", "etc/conda/activate.d/zlib.sh": SCRIPT}
    put(channel, zlib, [text(path, data) for path, data in files.items()])
    index(channel)
    (tmp_path / "src").mkdir()
    (tmp_path / "demo.toml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "demo.toml"


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["env", *map(str, arguments)], catch_exceptions=True)


def refused(*arguments: str | Path) -> str:
    result = call(*arguments)
    assert isinstance(result.exception, AxletreeError), result.output
    return str(result.exception)


def test_conda_without_conda(recipe: Path) -> None:
    """Solved, locked, installed, activated, exported; a second time from the lock."""
    made = call("create", recipe, "-v", "*cpu*", "--environment", "dev")
    assert made.exit_code == 0, made.output + str(made.exception)
    folder = Path(".axletree/env/dev-py311-cpu") if PYTHON == "3.11" else next(Path(".axletree/env").glob("dev-*"))
    prefix = folder.absolute() / "prefix"
    assert f"include 1. {prefix}/include  (conda environment)" in made.output
    (lock,) = (recipe.parent / "demo").glob("conda-lock.dev-*.toml")
    locked = tomllib.loads(lock.read_text())
    assert {each["name"] for each in locked["packages"]} == {"python", "python_abi", "zlib"}
    assert all(len(each["sha256"]) == 64 for each in locked["packages"])

    run = [sys.executable, "-m", "axletree", "env", "run", str(folder), "--"]
    ask = "import os, sys; print(sys.prefix, os.environ['CPATH'], repr(os.environ['TRICKY']), os.environ['CC'])"
    done = subprocess.run([*run, "python", "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout == f'{prefix} {prefix}/include "it\'s\\ntwo lines" {prefix}/bin/cc\n'
    path = subprocess.run([*run, "printenv", "PATH"], capture_output=True, text=True, check=True).stdout
    assert path.startswith(f"{prefix}/more:{prefix}/bin:")
    assert subprocess.run([*run, "sh", "-c", "exit 7"], check=False).returncode == 7
    assert subprocess.run([*run, "no-such-program"], check=False, capture_output=True).returncode == 127
    assert subprocess.run([*run, ""], check=False, capture_output=True).returncode == 127
    assert subprocess.run([*run, str(lock)], check=False, capture_output=True).returncode == 126
    assert subprocess.run([*run, "sh", "-c", "kill -TERM $$"], check=False).returncode == -signal.SIGTERM
    bare = subprocess.run([*run[:-1], "true"], check=False, capture_output=True, text=True)
    assert (bare.returncode, "put the command after --" in bare.stderr) == (2, True)

    exported = call("export", folder, "--format", "environment.yml").output
    assert "  - zlib=1.3=h1_0\n" in exported
    assert "TRICKY" not in exported  # the package's own script sets it there too
    pixi = tomllib.loads(call("export", folder, "--format", "pixi.toml").output)
    assert pixi["workspace"]["channels"] == [(recipe.parent / "channel").as_uri()]
    assert pixi["dependencies"]["zlib"] == {"version": "==1.3", "build": "h1_0"}

    before = lock.read_bytes()
    (prefix / "left").touch()
    again = call("create", recipe, "-v", "*cpu*", "--environment", "dev")
    assert again.exit_code == 0, again.output
    assert lock.read_bytes() == before
    assert not (prefix / "left").exists()


def test_what_is_locked_and_gone_from_the_channel_is_refused(recipe: Path) -> None:
    assert call("create", recipe, "-v", "*cpu*", "--environment", "dev").exit_code == 0
    (lock,) = (recipe.parent / "demo").glob("conda-lock.dev-*.toml")
    text_of = lock.read_text()
    digest = next(each["sha256"] for each in tomllib.loads(text_of)["packages"] if each["name"] == "zlib")
    lock.write_text(text_of.replace(digest, "0" * 64))
    assert "zlib-1.3-h1_0.conda is not the locked file" in refused(
        "create", recipe, "-v", "*cpu*", "--environment", "dev"
    )
    assert call("create", recipe, "-v", "*cpu*", "--environment", "dev", "--upgrade").exit_code == 0
    assert lock.read_text() == text_of


def test_a_shell_goes_there_and_back(recipe: Path) -> None:
    assert call("create", recipe, "here", "-v", "*cpu*", "--environment", "dev").exit_code == 0
    axletree = f"{sys.executable} -m axletree"
    script = f"""set -eu
    env -0 | sort -z > before
    eval "$({axletree} env activate here --shell bash)"; env -0 | sort -z > once
    eval "$({axletree} env activate here --shell bash)"; env -0 | sort -z > twice
    {axletree} env export --format pixi.toml > active.toml
    eval "$({axletree} env deactivate --shell bash)"; env -0 | sort -z > after
    """
    subprocess.run(["bash", "-c", script], check=True)
    folder = recipe.parent
    assert (folder / "once").read_bytes() == (folder / "twice").read_bytes()
    assert b"it's\ntwo lines" in (folder / "once").read_bytes()
    assert (folder / "after").read_bytes() == (folder / "before").read_bytes()
    assert "zlib" in (folder / "active.toml").read_text()
    assert "no Axletree environment is active" in refused("deactivate", "--shell", "bash")


def test_wheels_and_the_system(recipe: Path) -> None:
    made = call("create", recipe, "--environment", "wheels", "-v", "*cpu*", "w")
    assert made.exit_code == 0, made.output + str(made.exception)
    run = [sys.executable, "-m", "axletree", "env", "run", "w", "--"]
    ask = [*run, "python", "-c", "import sys; print(sys.prefix)"]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout == f"{Path.cwd()}/w/prefix\n"
    made = call("create", recipe, "--environment", "bare", "-v", "*cpu*", "s")
    assert "bare for" in made.output


def test_a_compiler_that_is_shadowed_makes_verify_fail(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler here")
    assert call("create", recipe, "here", "-v", "*cpu*", "--environment", "bare").exit_code == 0
    well = call("verify", "here", "--compiler", "c++")
    assert well.exit_code == 0, well.output
    assert "c++ uses the expected files" in well.output
    (tmp_path / "cpath").mkdir()
    (tmp_path / "cpath" / "stdio.h").write_text("#pragma once\n")
    monkeypatch.setenv("CPATH", str(tmp_path / "cpath"))
    command = [sys.executable, "-m", "axletree", "env", "verify", "here", "--compiler", "c++", "--json"]
    ill = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ill.returncode == 1
    assert json.loads(ill.stdout)["result"]["findings"][0]["rule"] == "environment/header-shadowed"
    shown = call("verify", "--system", "--compiler", "c++")
    assert f"{tmp_path}/cpath (CPATH), which shadows " in shown.output
    message = refused("verify", "here", "--compiler", "c++", "--compiler", "icpx")
    assert f"compilers not found on the PATH of {Path.cwd()}/here: icpx" in message
    twice = call("verify", "--system", "--compiler", "c++", "--compiler", "g++")  # one program under two names
    assert "(CPATH), which shadows " in twice.output


def test_what_can_not_be_made_is_told(recipe: Path, tmp_path: Path) -> None:
    assert "the recipe has several environments: dev, bare, wheels" in refused("create", recipe, "-v", "*cpu*")
    assert "did you mean 'bare'" in refused("create", recipe, "-v", "*cpu*", "--environment", "bar")
    assert "matches 2 variants" in refused("create", recipe, "-v", "*", "--environment", "bare")
    assert "stage 'x' does not exist" in refused("create", recipe, "-v", "*cpu*", "--stage", "x")
    message = refused("create", recipe, "-v", "*rocm*", "--environment", "bare", "--toolkit", str(tmp_path / "none"))
    assert "none/bin does not contain hipcc" in message
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    message = refused("create", recipe, "mine", "-v", "*cpu*", "--environment", "bare")
    assert "the folder was not created by `axletree env create`" in message
    assert (tmp_path / "mine" / "thesis.tex").exists()
    assert "is not an environment" in refused("run", "mine", "--", "true")
    assert "no environment exists in this folder" in refused("verify")
    assert "the path is neither an environment folder nor a recipe" in refused("run", "not/there", "--", "true")
    assert "contains a colon" in refused("create", recipe, "a:b", "-v", "*cpu*", "--environment", "bare")
    message = refused("create", recipe, "x", "-v", "*cpu*", "--environment", "bare", "--toolkit", "/opt/rocm")
    assert "is not for a GPU" in message
    assert not Path("x").exists()
    Path("file").touch()
    message = refused("create", recipe, "file/x", "-v", "*cpu*", "--environment", "bare")
    assert "cannot be created: Not a directory" in message
    assert "the environment for this variant does not exist yet" in refused(
        "run", recipe, "-v", "*cpu*", "--environment", "bare", "--", "true"
    )


def test_an_environment_that_was_moved_or_damaged_is_told(recipe: Path) -> None:
    assert call("create", recipe, "here", "-v", "*cpu*", "--environment", "bare").exit_code == 0
    Path("here").rename("there")
    assert "was created at" in refused("run", "there", "--", "true")
    Path("there/axletree-env.json").write_text("{")
    assert "does not describe an environment" in refused("run", "there", "--", "true")


def test_an_environment_that_can_not_be_written_is_left_as_it_is(recipe: Path) -> None:
    """The link stands for a folder without permission, which the superuser would not mind."""
    make = ("create", recipe, "here", "-v", "*cpu*", "--environment", "bare")
    assert call(*make).exit_code == 0
    before = Path("here/axletree-env.json").read_bytes()
    Path("here/.axletree-making").symlink_to("/no/such/folder/file")
    assert "cannot be created: No such file" in refused(*make)
    assert Path("here/axletree-env.json").read_bytes() == before


def test_what_was_there_is_back_where_the_new_one_can_not_be_made(recipe: Path, tmp_path: Path) -> None:
    """After an error, and after a kill at any moment: the next call finds what there was."""
    make = ("create", recipe, "here", "-v", "*cpu*", "--environment", "bare")
    wrong = ("create", recipe, "here", "-v", "*rocm*", "--environment", "bare", "--toolkit", str(tmp_path / "none"))
    assert call(*make).exit_code == 0
    Path("here/prefix/bin").mkdir(parents=True)
    Path("here/prefix/bin/tool").touch()
    before = Path("here/axletree-env.json").read_bytes()

    def as_before() -> bool:
        there = sorted(path.name for path in Path("here").iterdir())
        same = Path("here/axletree-env.json").read_bytes() == before
        return same and there == ["axletree-env.json", "prefix"] and Path("here/prefix/bin/tool").exists()

    assert "none/bin does not contain hipcc" in refused(*wrong)
    assert as_before()
    for at in itertools.count(1):
        code = ends_at(Path.cwd() / "here", at, lambda: call(*wrong))
        assert "none/bin does not contain hipcc" in refused(*wrong)
        assert as_before(), at
        if code != KILLED:
            break
    assert at > 8
    assert call(*make).exit_code == 0  # and a good one is another one
    assert not Path("here/prefix").exists()


def test_a_library_under_its_soname_alone_is_linked_by_its_name(recipe: Path, tmp_path: Path) -> None:
    """As in the wheels of MKL: headers and libraries in the environment's own folders."""
    if shutil.which("gcc") is None:
        pytest.skip("no C compiler here")
    assert call("create", recipe, "--environment", "wheels", "-v", "*cpu*", "w").exit_code == 0
    prefix = tmp_path / "w" / "prefix"
    (prefix / "include").mkdir(exist_ok=True)
    (prefix / "include" / "three.h").write_text("int three(void);\n")
    Path("three.c").write_text("int three(void) { return 3; }\n")
    Path("use.c").write_text("#include <three.h>\nint main(void) { return three(); }\n")
    shared = [
        "gcc",
        "-shared",
        "-fPIC",
        "three.c",
        "-Wl,-soname,libthree.so.2",
        "-o",
        str(prefix / "lib/libthree.so.2"),
    ]
    subprocess.run(shared, check=True)
    (prefix / "lib" / "libthree.so.2.debug").touch()
    layers = venv_layers(prefix, tmp_path / "w" / "links")
    activation = Activation(folder=str(tmp_path / "w"), deltas=deltas_of(layers, order_of(layers)))
    environ = activated(os.environ, activation)
    assert (prefix / "lib" / "libthree.so").readlink() == Path("libthree.so.2")
    subprocess.run(["gcc", "use.c", "-lthree", "-o", "use"], env=environ, check=True)
    assert subprocess.run(["./use"], env=environ, check=False).returncode == 3
    assert not (tmp_path / "w" / "links").exists()


MKL_WHEELS = f"""\
name = "mkl"
version = "1.0"
source = {{ path = "src" }}

[axes]
python = ["{PYTHON}"]
blas = ["mkl"]

[environments.shared]
axes = ["python", "blas"]
requires = ["cmake<4", "mkl", "mkl-devel", "ninja"]

[environments.static]
axes = ["python", "blas"]
requires = ["mkl-include", "mkl-static"]
"""


@pytest.mark.proof
@pytest.mark.network
def test_mkl_is_linked_with_nothing_but_wheels(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKLROOT", "/nowhere/else")  # one of the system does not count
    Path("mkl.toml").write_text(MKL_WHEELS)
    Path("gemm.c").write_text(
        "#include <mkl_cblas.h>\n#include <stdio.h>\nint main(void) {\n"
        "  double a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, c[4] = {0};\n"
        "  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 2, 1, a, 2, b, 2, 0, c, 2);\n"
        '  printf("%g %g %g %g\\n", c[0], c[1], c[2], c[3]);\n}\n'
    )
    Path("code").mkdir()
    Path("code/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(g C)\nfind_package(BLAS REQUIRED)\n"
        "find_package(MKL CONFIG REQUIRED)\nadd_executable(found ../gemm.c)\n"
        "target_link_libraries(found BLAS::BLAS)\nadd_executable(told ../gemm.c)\n"
        "target_link_libraries(told MKL::MKL)\n"
    )
    axletree = [sys.executable, "-m", "axletree"]
    subprocess.run([*axletree, "lock", "mkl.toml"], check=True)
    for name in ("shared", "static"):
        subprocess.run([*axletree, "env", "create", "mkl.toml", name, "--environment", name], check=True)
    shared, static = ([*axletree, "env", "run", name, "--"] for name in ("shared", "static"))
    subprocess.run([*shared, "gcc", "gemm.c", "-o", "single", "-lmkl_rt"], check=True)
    several = ["-Wl,--start-group", "-lmkl_intel_lp64", "-lmkl_sequential", "-lmkl_core", "-Wl,--end-group", "-lm"]
    subprocess.run([*static, "gcc", "gemm.c", "-o", "alone", *several], check=True)
    configure = ["cmake", "-G", "Ninja", "-S", "code", "-B", "b", "-DBLA_VENDOR=Intel10_64_dyn"]
    subprocess.run([*shared, *configure], check=True)
    subprocess.run([*shared, "cmake", "--build", "b"], check=True)
    for program in ("./single", "b/found", "b/told"):
        done = subprocess.run([*shared, program], check=True, capture_output=True, text=True)
        assert done.stdout == "19 22 43 50\n"
    assert subprocess.run(["./alone"], check=True, capture_output=True, text=True).stdout == "19 22 43 50\n"
    subprocess.run([*axletree, "env", "verify", "shared", "--compiler", "c++"], check=True)


CUDA_WHEELS = """\
name = "cuda"
version = "1.0"
source = { path = "src" }

[axes]
python = ["PYTHON"]
gpu = ["cu130"]

[environments.tools]
axes = ["python", "gpu"]
requires = ["cmake<4", "ninja", "nvidia-cuda-nvcc==13.0.*", "nvidia-cuda-runtime==13.0.*", "nvidia-cuda-crt==13.0.*",
  "nvidia-nvvm==13.0.*", "nvidia-cuda-cccl==13.0.*"]
""".replace("PYTHON", PYTHON)


@pytest.mark.proof
@pytest.mark.network
def test_cmake_compiles_cuda_with_nothing_but_wheels(recipe: Path) -> None:
    Path("cuda.toml").write_text(CUDA_WHEELS)
    Path("code").mkdir()
    Path("code/CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(k LANGUAGES CXX CUDA)\nfind_package(CUDAToolkit REQUIRED)\n"
        "add_executable(k k.cu)\ntarget_link_libraries(k CUDA::cudart)\n"
    )
    Path("code/k.cu").write_text(
        "#include <thrust/version.h>\n#include <cstdio>\n__global__ void f() {}\n"
        'int main() { f<<<1, 1>>>(); int n = 0; std::printf("%d\\n", cudaGetDeviceCount(&n) == 0 || n == 0); }\n'
    )
    axletree = [sys.executable, "-m", "axletree"]
    subprocess.run([*axletree, "lock", "cuda.toml"], check=True)
    subprocess.run([*axletree, "env", "create", "cuda.toml", "t"], check=True)
    run = [*axletree, "env", "run", "t", "--"]
    subprocess.run([*run, "cmake", "-G", "Ninja", "-S", "code", "-B", "b", "-DCMAKE_CUDA_ARCHITECTURES=75"], check=True)
    subprocess.run([*run, "cmake", "--build", "b"], check=True)
    assert subprocess.run([*run, "b/k"], check=True, capture_output=True, text=True).stdout == "1\n"
    subprocess.run([*axletree, "env", "verify", "t", "--compiler", "nvcc"], check=True)
