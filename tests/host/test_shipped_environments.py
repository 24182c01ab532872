"""The environments that ship, solved and installed by py-rattler from small packages of the same names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.env_names import load_environments
from axletree.app.shipped import shipped_environments
from axletree.cli.main import cli
from axletree.core.errors import AxletreeError
from axletree.recipe.axes import expand
from axletree.recipe.match_spec import parse_match_spec
from axletree.recipe.target import resolve
from support.conda import demo, index, put, put_python, text

if TYPE_CHECKING:
    from click.testing import Result

    from axletree.package.conda.model import CondaFile

COMPILER = b'#!/bin/sh\nexec /usr/bin/g++ "$@"\n'
HIPCC = """\
#!/bin/sh
root=$(dirname "$(dirname "$0")")
for word; do
  shift
  case $word in --cuda-host-only) ;; hip) set -- "$@" c++ ;; *) set -- "$@" "$word" ;; esac
done
exec /usr/bin/g++ "$@" FLAGS
"""
"""Takes hipcc's options, and searches as g++ does."""
ACTIVATE = b'export CXX="$CONDA_PREFIX/bin/x86_64-conda-linux-gnu-g++"\n'
GCC = ("9.2.0", "9.5.0", "11.4.0", "12.4.0", "13.3.0", "14.2.0", "15.1.0")
OTHERS = {
    "cmake": ("3.26.4", "3.29.6", "3.31.0", "4.0.1"),
    "setuptools": ("80.9.0", "82.0.0"),
    "sysroot_linux-64": ("2.17", "2.28", "2.39"),
    "typing_extensions": ("4.12.0",),
    "packaging": ("25.0",),
    **dict.fromkeys(("mkl-devel", "ninja", "numpy", "pip", "pyyaml", "requests", "six", "zlib"), ("1.0",)),
    **dict.fromkeys(("libmagma_devel", "magma-cuda118", "magma-cuda121", "magma-cuda124"), ("2.6.1",)),
}
CUDA = ("bin/nvcc", "include/cuda_runtime.h", "lib/libcudart.so")


def put_compilers(channel: Path, version: str) -> None:
    files: dict[str, list[CondaFile]] = {
        "gcc": [text(f"lib/gcc/x86_64-conda-linux-gnu/{version}/crtbegin.o")],
        "gxx": [text("bin/g++", COMPILER, executable=True)],
        "gcc_linux-64": [],
        "gxx_linux-64": [
            text("bin/x86_64-conda-linux-gnu-g++", COMPILER, executable=True),
            text("etc/conda/activate.d/activate-gxx_linux-64.sh", ACTIVATE),
        ],
    }
    for name, members in files.items():
        needs = ("libstdcxx",) if name == "gxx" else ()
        put(channel, demo(name=name, version=version, build="h1_0", depends=needs), members)


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A channel with all that both environments ask for, and with versions that they must not take."""
    made = tmp_path_factory.mktemp("made") / "channel"
    put_python(made, "3.12")
    for version in GCC:
        put_compilers(made, version)
    for name, versions in OTHERS.items():
        for version in versions:
            put(made, demo(name=name, version=version, build="h1_0"), [])
    put(made, demo(name="mkl-include", version="2024.2", build="h1_0"), [text("include/mkl.h")])
    put(made, demo(name="cuda-toolkit", version="12.4.1", build="0"), [text(path, executable=True) for path in CUDA])
    put(made, demo(name="libstdcxx", version="15.1.0", build="h1_0"), [text("lib/libstdc++.so.6", _libstdcxx())])
    index(made)
    return made


def _libstdcxx() -> bytes:
    found = sorted(Path("/usr/lib").glob("*-linux-gnu/libstdc++.so.6"))
    return found[0].read_bytes() if found else b""


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "CPATH",
        "LIBRARY_PATH",
        "LD_LIBRARY_PATH",
        "CONDA_PREFIX",
        "CUDA_HOME",
        "ROCM_PATH",
        "CXX",
        "MKLROOT",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["env", *map(str, arguments)], catch_exceptions=True)


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=True)
    assert isinstance(result.exception, AxletreeError), result.output
    return str(result.exception)


def create(name: str, variant: str, channel: Path, *more: str | Path) -> dict[str, str]:
    """Create one from the channel, and what is installed in it: name -> version."""
    made = call("create", name, "-v", variant, "--set", f"environments.{name}.channels={channel.as_uri()}", *more)
    assert made.exit_code == 0, made.output + str(made.exception)
    (lock,) = Path.home().rglob(f"conda-lock.{name}-{variant}.toml")
    return {each["name"]: each["version"] for each in tomllib.loads(lock.read_text())["packages"]}


def order(folder: Path) -> dict[str, list[str]]:
    lists = json.loads((folder / "axletree-env.json").read_text())["order"]
    return {way: [entry["path"] for entry in entries] for way, entries in lists.items()}


def variables(folder: Path, *names: str) -> list[str]:
    command = [sys.executable, "-m", "axletree", "env", "run", str(folder), "--", "printenv", *names]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


@pytest.mark.parametrize(
    ("variant", "gcc", "magma"),
    [("cu118", "11.4.0", "magma-cuda118"), ("cu128", "14.2.0", "libmagma_devel")],
)
def test_cuda_is_in_the_environment_with_a_compiler_that_it_takes(
    channel: Path, variant: str, gcc: str, magma: str
) -> None:
    found = create("pytorch-cuda", variant, channel)
    assert [found[name] for name in ("gcc", "gxx", "gcc_linux-64", "gxx_linux-64")] == [gcc] * 4
    assert [name for name in found if "magma" in name] == [magma]
    assert (found["cmake"], found["setuptools"], found["sysroot_linux-64"]) == ("3.29.6", "80.9.0", "2.28")
    folder = Path(f".axletree/env/pytorch-cuda-{variant}").absolute()
    prefix = str(folder / "prefix")
    assert order(folder) == {"include": [f"{prefix}/include"], "link": [f"{prefix}/lib"], "run": [f"{prefix}/lib"]}
    names = ("CUDA_HOME", "CMAKE_PREFIX_PATH", "MKLROOT", "CXX")
    assert variables(folder, *names) == [prefix, prefix, prefix, f"{prefix}/bin/x86_64-conda-linux-gnu-g++"]
    assert json.loads((folder / "axletree-env.json").read_text())["toolkit"] == prefix


@pytest.mark.parametrize(
    ("gpu", "flags", "faulty"), [("rocm6.4", "", False), ("rocm5.7", "-isystem $root/include", True)]
)
def test_rocm_of_the_system_comes_before_the_environment(
    channel: Path, tmp_path: Path, gpu: str, flags: str, *, faulty: bool
) -> None:
    """Also if hipcc makes its own headers a system folder, which compilers search last.

    Its clang is told of the environment's GCC, from the release on that understands that.
    """
    if not Path("/usr/bin/g++").exists():
        pytest.skip("needs g++")
    root = tmp_path / "rocm"
    for path in ("bin/hipcc", "include/hip/hip_version.h", "lib/libamdhip64.so", "llvm/bin/clang++"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch(mode=0o755)
    (root / "bin/hipcc").write_text(HIPCC.replace("FLAGS", flags))
    found = create("pytorch-rocm", gpu, channel, "here", "--toolkit", root, "--set", f"axes.gpu={gpu}")
    assert (found["gxx"], found["cmake"], "cuda-toolkit" in found) == ("13.3.0", "3.29.6", False)
    prefix = f"{tmp_path}/here/prefix"
    first = f"{tmp_path}/here/headers/rocm" if faulty else f"{root}/include"
    assert order(tmp_path / "here") == {
        "include": [first, f"{prefix}/include"],
        "link": [f"{root}/lib", f"{prefix}/lib"],
        "run": [f"{root}/lib", f"{prefix}/lib"],
    }
    names = ("CMAKE_PREFIX_PATH", "HIP_PLATFORM", "HIP_CLANG_PATH")
    assert variables(tmp_path / "here", *names) == [f"{root}:{prefix}", "amd", f"{root}/llvm/bin"]
    gcc = f"--gcc-install-dir={prefix}/lib/gcc/x86_64-conda-linux-gnu/13.3.0"
    flags_of = ("HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND")
    assert variables(tmp_path / "here", *flags_of) == ([] if faulty else [gcc, gcc])


def test_a_cuda_of_the_system_comes_after_the_environment(channel: Path, tmp_path: Path) -> None:
    """And programs load the environment's libstdc++, also if the shell has another one first."""
    if not Path("/usr/bin/g++").exists() or not _libstdcxx():
        pytest.skip("needs g++")
    root = tmp_path / "cuda"
    for path in ("bin/nvcc", "include/cuda_runtime.h", "lib64/libcudart.so"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch(mode=0o755)
    create("pytorch-cuda", "cu121", channel, "here", "--toolkit", root)
    prefix = f"{tmp_path}/here/prefix"
    assert order(tmp_path / "here") == {
        "include": [f"{prefix}/include", f"{root}/include"],
        "link": [f"{prefix}/lib", f"{root}/lib64"],
        "run": [f"{prefix}/lib", f"{root}/lib64"],
    }
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "libstdc++.so.6").write_bytes(_libstdcxx())
    old = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "old")}
    verify = [sys.executable, "-m", "axletree", "env", "verify", "--compiler", "g++", "--json"]
    well = subprocess.run([*verify, "here"], capture_output=True, text=True, check=False, env=old)
    assert well.returncode == 0, well.stdout
    (proof,) = json.loads(well.stdout)["result"]["compilers"]
    loaded = {each["name"]: each["actual"] for each in proof["loaded"]}
    assert loaded["libstdc++.so.6"] == f"{prefix}/lib/libstdc++.so.6"
    ill = subprocess.run([*verify, "--system"], capture_output=True, text=True, check=False, env=old)
    found = [each["rule"] for each in json.loads(ill.stdout)["result"]["findings"]]
    assert found == ["environment/library-shadowed-run"]


@pytest.mark.parametrize("name", ["pytorch-cuda", "pytorch-rocm"])
def test_each_variant_has_what_pytorch_needs(name: str) -> None:
    loaded = load_environments(name)
    for variant in expand(loaded.recipe):
        (environment,) = resolve(loaded.recipe, variant).environments
        specs = {spec.name: spec for text in environment.requires if (spec := parse_match_spec(text)) is not None}
        assert len(specs) == len(environment.requires)
        assert {"gcc", "gxx", "gcc_linux-64", "gxx_linux-64", "ninja", "mkl-devel"} <= specs.keys()
        assert specs["cmake"].version.endswith("<3.30")
        assert specs["gxx"].version == specs["gxx_linux-64"].version
        assert ("cuda-toolkit" in specs) == variant.id.startswith("cu")


def test_the_names_are_for_env_alone(channel: Path) -> None:
    assert list(shipped_environments()) == ["pytorch-cuda", "pytorch-rocm"]
    listed = CliRunner().invoke(cli, ["recipes"]).stdout
    assert "pytorch-debian" in listed
    assert "pytorch-cuda" not in listed
    message = refused("build", "pytorch-cuda")
    assert "'pytorch-cuda' is an environment, not a recipe, so there is nothing to build" in message
    assert "axletree env create pytorch-cuda" in message
    file = str(shipped_environments()["pytorch-rocm"])
    assert "the file has only environments, so there is nothing to build" in refused("build", file)
    assert "the environment 'pytorch-cuda' ships with Axletree" in refused("env", "create", "pytorch-cud")
    assert "hint: variants: cu118, cu121, cu124, cu126, cu128, cu130" in refused(
        "env", "create", "pytorch-cuda", "-v", "12.4"
    )
    assert "create it: axletree env create pytorch-cuda -v cu124" in refused(
        "env", "activate", "pytorch-cuda", "-v", "cu124"
    )


def test_a_channel_that_can_not_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing listens on port 1, so this asks nobody."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    message = refused("env", "create", "pytorch-rocm", "-v", "rocm6.4")
    assert "channel conda-forge cannot be reached: " in message
    assert "hint: check the network and HTTPS_PROXY, or set `channels` to a mirror or a folder" in message
    assert not Path(".axletree/env/pytorch-rocm-rocm6.4/prefix").exists()
