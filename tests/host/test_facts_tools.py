"""Facts of fake hosts: compilers, Python, package settings, and real build tools with a job server."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.host.facts.access import Answer, find_tool, read_version, run_program, this_host
from axletree.host.facts.build_tools import takes_tokens
from axletree.host.facts.compilers import find_compilers, read_includes
from axletree.host.facts.elf import newest
from axletree.host.facts.gpu_compilers import find_gpu_compilers
from axletree.host.facts.loader import Loader
from axletree.host.facts.packaging import git_facts, packaging_facts
from axletree.host.facts.python import python_facts
from support.fake_host import FakeHost

if TYPE_CHECKING:
    from axletree.host.facts.access import Access

GCC = "gcc (GCC) 14.2.1 20250110\nCopyright (C) 2024 Free Software Foundation, Inc.\n"
CLANG = "Ubuntu clang version 18.1.3 (1ubuntu1)\nTarget: x86_64-pc-linux-gnu\n"
SEARCH = """ignoring duplicate directory "/usr/x"
#include "..." search starts here:
#include <...> search starts here:
 /opt/first/include
 /usr/include/c++/14
 /usr/include
End of search list.
"""


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path / "root")


@pytest.fixture
def here(tmp_path: Path) -> Access:
    return this_host(os.environ, cwd=tmp_path, store=tmp_path / "store")


def gcc(host: FakeHost, path: str, text: str = GCC) -> None:
    answers: dict[str, str | Answer] = {
        "--version": text,
        "-dumpfullversion": "14.2.1\n",
        "-dumpmachine": "x86_64-linux-gnu\n",
        "-print-sysroot": "\n",
        "-E -v": Answer(code=0, err=SEARCH),
        "-print-search-dirs": "libraries: =/usr/lib/gcc/:/usr/lib/gcc/../:/nowhere/\n",
        "-print-prog-name=ld": "ld\n",
    }
    host.program(path, answers)
    (host.root / "usr/lib/gcc").mkdir(parents=True, exist_ok=True)


def test_a_compiler_is_asked(host: FakeHost) -> None:
    gcc(host, "/usr/bin/c++")
    host.link("/usr/bin/g++", "c++")
    host.program("/usr/bin/ld.bfd")
    host.link("/usr/bin/ld", "ld.bfd")
    (found,) = find_compilers(host.access)
    assert (found.name, found.kind, found.language, found.version) == ("c++", "gcc", "c++", "14.2.1")
    assert found.includes == ("/opt/first/include", "/usr/include/c++/14", "/usr/include")
    assert found.libraries == ("/usr/lib/gcc", "/usr/lib")
    assert (found.sysroot, found.target, found.linker) == ("/", "x86_64-linux-gnu", "/usr/bin/ld.bfd")


def test_variables_come_first_and_wrappers_are_seen_through(host: FakeHost) -> None:
    gcc(host, "/usr/bin/g++")
    host.program("/opt/llvm/bin/clang++", {"--version": CLANG})
    host.program("/usr/bin/ccache")
    host.link("/usr/lib/ccache/g++-13", "../../bin/ccache")
    host.programs["/usr/lib/ccache/g++-13 --version"] = Answer(code=0, out=GCC.replace("14.2.1", "13.3.0"))
    host.environ |= {
        "CXX": "ccache /opt/llvm/bin/clang++ --gcc-toolchain=/opt/gcc",
        "PATH": "/usr/lib/ccache:/usr/bin",
    }
    host.programs["/opt/llvm/bin/clang++ --gcc-toolchain=/opt/gcc --version"] = Answer(code=0, out=CLANG)
    found = {compiler.name: compiler for compiler in find_compilers(host.access)}
    first = next(iter(found.values()))
    assert (first.kind, first.version, first.wrapper, first.origin) == ("clang", "18.1.3", "ccache", "CXX")
    assert (found["g++-13"].wrapper, found["g++-13"].version) == ("ccache", "13.3.0")
    assert found["g++"].wrapper is None


def test_why_a_compiler_fails_is_told(host: FakeHost) -> None:
    gcc(host, "/usr/bin/g++")
    host.programs["/usr/bin/g++"] = Answer(code=1, err="x.cpp:1:10: fatal error: string: No such file or directory\n")
    (found,) = find_compilers(host.access)
    assert found.works is False
    assert "string: No such file or directory" in found.sources["works"]


def test_a_compiler_that_hangs_is_not_said_to_be_broken(host: FakeHost) -> None:
    gcc(host, "/usr/bin/g++")
    host.programs["/usr/bin/g++"] = Answer(code=None, why="no response within 30 s")
    (found,) = find_compilers(host.access)
    assert (found.works, found.openmp) == (None, None)
    assert "no response within 30 s" in found.sources["works"]


def test_a_compiler_that_does_not_start(host: FakeHost) -> None:
    host.program("/usr/bin/g++", {"--version": Answer(code=None, why="Exec format error")})
    (found,) = find_compilers(host.access)
    assert (found.version, found.works, found.includes) == (None, None, None)
    assert "Exec format error" in found.sources["version"]


def test_search_lists_of_other_compilers_have_no_list(host: FakeHost) -> None:
    assert read_includes(host.access, "error: unknown option\n") is None


@pytest.mark.parametrize(
    ("dry", "expected"),
    [
        (
            '#$ "/usr/bin"/gcc -D__CUDA_ARCH__=750 -E -x c++ -D__CUDACC__\n#$ cudafe++ --gnu_version=140201 x\n',
            ("gcc", "14.2.1"),
        ),
        ("#$ clang++ -E -D__CUDACC__ x\n#$ cudafe++ --clang --clang_version=180103 x\n", ("clang", "18.1.3")),
    ],
)
def test_nvcc_names_its_host_compiler(host: FakeHost, dry: str, expected: tuple[str, str]) -> None:
    nvcc = "/usr/local/cuda/bin/nvcc"
    host.program(nvcc, {"--version": "release 12.2, V12.2.140\n", "--dryrun": Answer(code=0, err=dry)})
    host.programs[nvcc] = Answer(
        code=1, err="host_config.h(143): error: -- unsupported GNU version! gcc > 12\n1 error\n"
    )
    (found,) = find_gpu_compilers(host.access)
    assert (found.version, found.origin) == ("12.2.140", "/usr/local/cuda")
    assert (found.host_kind, found.host_version) == expected
    assert found.works is False
    assert "unsupported GNU version" in found.sources["works"]


def test_versions_are_found_below_banners() -> None:
    text = "nvcc: NVIDIA (R)\nCopyright (c) 2005-2025\nCuda compilation tools, release 13.0, V13.0.88\n"
    assert read_version(text)[1] == "13.0"
    assert read_version("nothing") == (None, None)
    assert newest(("GLIBCXX_3.4", "GLIBCXX_3.4.9", "GLIBCXX_3.4.30", "GLIBCXX_TUNABLES"), "GLIBCXX_") == "3.4.30"


def test_the_loader_takes_the_variable_first(host: FakeHost) -> None:
    host.environ["LD_LIBRARY_PATH"] = "/opt/a::/opt/b"
    host.write("/opt/b/libx.so.1")
    host.write("/usr/lib/libx.so.1")
    host.program("/usr/bin/ldconfig", {"-p": "\tlibx.so.1 (libc6,x86-64) => /usr/lib/libx.so.1\n"})
    loader = Loader(access=host.access)
    assert loader.variable == ("/opt/a", ".", "/opt/b")
    assert loader.find("libx.so.1") == "/opt/b/libx.so.1"
    assert loader.find("liby.so.1") is None


CONDA = "/home/someone/conda/envs/torch"


def conda_host(host: FakeHost) -> None:
    host.environ |= {
        "CONDA_PREFIX": CONDA,
        "CONDA_SHLVL": "3",
        "CONDA_PREFIX_1": "/home/someone/conda",
        "CONDA_PREFIX_2": CONDA,
        "PATH": f"{CONDA}/bin:{CONDA}/bin:/home/someone/conda/bin:/usr/bin",
    }
    host.write("/home/someone/conda/conda-meta/history")
    for package in ("sysroot_linux-64-2.17-h4a8ded7_18", "libstdcxx-ng-14.2.0-h4852527_1", "zlib-1.3.1-hb9d3cd8_2"):
        host.write(f"{CONDA}/conda-meta/{package}.json", "{}")
    host.write(f"{CONDA}/etc/conda/activate.d/~cuda-nvcc_activate.sh")


def test_conda_activated_twice(host: FakeHost) -> None:
    conda_host(host)
    host.program(f"{CONDA}/bin/conda", {"--version": "conda 24.11.1\n"})
    found = python_facts(host.access).conda
    assert found is not None
    assert (found.prefix, found.level, found.stack) == (CONDA, 3, ("/home/someone/conda", CONDA))
    assert found.on_path == (f"{CONDA}/bin", f"{CONDA}/bin", "/home/someone/conda/bin")
    assert found.packages == {"libstdcxx-ng": "14.2.0 h4852527_1", "sysroot_linux-64": "2.17 h4a8ded7_18"}
    assert found.client is not None
    assert found.client.version == "24.11.1"
    assert found.scripts == ("~cuda-nvcc_activate.sh",)


def test_pyenv_that_selects_what_is_not_installed(host: FakeHost) -> None:
    host.write("/home/someone/.pyenv/versions/3.11.7/bin/python")
    host.write("/project/.python-version", "3.11\n3.12.1\nsystem\n")
    host.program("/home/someone/.pyenv/shims/python3")
    host.environ["PATH"] = "/home/someone/.pyenv/shims:/usr/bin"
    host.programs["/home/someone/.pyenv/shims/python3"] = Answer(
        code=127, err="pyenv: version `3.12.1' is not installed\n"
    )
    found = python_facts(host.access)
    assert found.pyenv is not None
    assert (found.pyenv.selected, found.pyenv.missing) == (("3.11", "3.12.1", "system"), ("3.12.1",))
    assert (found.pyenv.shims_first, found.pyenv.selected_by) == (True, "/project/.python-version")
    (interpreter,) = found.interpreters or ()
    assert interpreter.version is None
    assert "is not installed" in interpreter.sources["version"]


def test_torch_is_read_not_imported(host: FakeHost) -> None:
    site = "/usr/lib/python3/site-packages"
    answer = (
        'noise\naxletree-facts:{"version":"3.12.3","implementation":"cpython","free_threaded":false,"soabi":"x",'
        '"prefix":"/usr","base_prefix":"/usr","include":"/usr/include/python3.12","stdlib":"/usr/lib/python3.12",'
        f'"library":"none","site_packages":"{site}","folders":["{site}"]}}\n'
    )
    host.program("/usr/bin/python3", {"-I": answer})
    host.write("/usr/lib/python3.12/EXTERNALLY-MANAGED")
    host.write(
        f"{site}/torch/version.py",
        "__version__ = '2.8.0+cu128'\ndebug = False\ncuda: Optional[str] = '12.8'\nhip = None\n",
    )
    host.write(f"{site}/torch/share/cmake/Torch/TorchConfig.cmake", 'set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")')
    for entry in ("nvidia_cudnn_cu12-9.10.2.21.dist-info", "PyYAML-6.0.1.egg-info", "leftpad-1.0.dist-info"):
        host.write(f"{site}/{entry}/METADATA")
    host.environ["PYTHONPATH"] = "/elsewhere"
    (found,) = python_facts(host.access).interpreters or ()
    assert found.torch is not None
    assert (found.torch.version, found.torch.cuda, found.torch.hip) == ("2.8.0+cu128", "12.8", "none")
    assert (found.torch.debug, found.torch.cxx11_abi) == (False, True)
    host.write(f"{site}/torch/share/cmake/Torch/TorchConfig.cmake")
    text = 'def compiled_with_cxx11_abi() -> builtins.bool:\n    r"""Returns whether."""\n    return True\n'
    host.write(f"{site}/torch/__init__.py", f"import sys\n{text}")
    (found,) = python_facts(host.access).interpreters or ()
    assert found.torch is not None
    assert found.torch.cxx11_abi is True
    assert found.packages == {"nvidia-cudnn-cu12": "9.10.2.21", "pyyaml": "6.0.1"}
    assert (found.externally_managed, found.headers, found.isolated) == (True, False, False)


def test_package_settings_lose_their_credentials(host: FakeHost) -> None:
    host.environ |= {
        "PIP_INDEX_URL": "https://me:s3cret@index.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://other.example/simple?token=s3cret",
        "UV_LINK_MODE": "copy",
        "HTTPS_PROXY": "http://me:s3cret@proxy.example",
    }
    host.write("/home/someone/.config/pip/pip.conf", "[global]\nfind-links = /wheels\nno-binary = :all:\n")
    found = packaging_facts(host.access)
    assert found.index_url == "https://****@index.example/simple"
    assert found.find_links == ("/wheels",)
    assert found.options == {"pip.conf: global.no-binary": ":all:", "UV_LINK_MODE": "copy"}
    assert found.files == ("/home/someone/.config/pip/pip.conf",)
    assert found.proxy is True
    assert "s3cret" not in str(found)


def test_a_broken_pip_configuration_is_a_reason_not_a_failure(host: FakeHost) -> None:
    host.write("/etc/pip.conf", "no section\n")
    found = packaging_facts(host.access)
    assert found.index_url is None
    assert "not a valid pip configuration file" in found.sources["index_url"]


def test_git_settings_that_change_a_checkout(host: FakeHost) -> None:
    listed = "core.autocrlf\ntrue\0user.email\nme@mine.example\0safe.directory\n/a\0safe.directory\n/b\0"
    listed += (
        "url.https://me:s3cret@mirror.example/.insteadof\nhttps://github.com/\0http.extraheader\nAuthorization: x\0"
    )
    host.program("/usr/bin/git", {"--version": "git version 2.43.0\n", "config": listed})
    found = git_facts(host.access)
    assert (found.version, found.lfs) == ("2.43.0", "none")
    assert found.config == {
        "core.autocrlf": "true",
        "safe.directory": "/a, /b",
        "url.https://****@mirror.example/.insteadof": "https://github.com/",
    }


def tool(name: str) -> tuple[str, str]:
    """Path and version of a program, Python's own environment first."""
    path = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if path is None:
        pytest.skip(f"no {name}")
    return path, run_program([path, "--version"], environ=os.environ).out


@pytest.mark.parametrize("style", ["fifo", "pipe"])
def test_a_ninja_that_is_a_client_takes_a_token(here: Access, style: str) -> None:
    path, version = tool("ninja")
    if "kitware.jobserver" not in version and not version.startswith("1.13"):
        pytest.skip("this ninja is no client")
    assert takes_tokens(here, path, "ninja", style)[0] is True


@pytest.mark.parametrize("style", ["fifo", "pipe"])
def test_a_ninja_that_is_no_client_takes_none(here: Access, style: str) -> None:
    path = "/usr/bin/ninja"
    if not run_program([path, "--version"], environ=os.environ).out.startswith(("1.10", "1.11", "1.12")):
        pytest.skip("no old ninja")
    answer, how = takes_tokens(here, path, "ninja", style)
    assert answer is False
    assert "0 of 3 tokens" in how


def test_make_is_a_client_of_pipes_and_since_4_4_of_fifos(here: Access) -> None:
    path, version = tool("make")
    assert takes_tokens(here, path, "make", "pipe")[0] is True
    number = find_tool(here, path)
    assert number is not None
    new = tuple(int(part) for part in (number.version or "0").split(".")[:2]) >= (4, 4)
    assert takes_tokens(here, path, "make", "fifo")[0] is new, version


def test_programs_are_bounded_with_all_that_they_started(tmp_path: Path) -> None:
    script = tmp_path / "slow"
    script.write_text("#!/bin/sh\nsleep 1000 &\necho begun\nsleep 1000\n")
    script.chmod(0o755)
    answer = run_program([str(script)], environ=os.environ, seconds=0.5)
    assert (answer.code, answer.out) == (None, "begun\n")
    assert answer.trouble == "no response within 0.5 s"


def test_programs_that_do_not_start_say_why(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no program")
    (tmp_path / "data").chmod(0o755)
    assert run_program([str(tmp_path / "absent")], environ={}).trouble == "No such file or directory"
    assert run_program([str(tmp_path / "data")], environ={}).trouble == "Exec format error"
