"""The launcher of nvcc: no call gets from the cache what another one made. Asked of a stand-in, and of nvcc itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.app.build import find_ccache
from axletree.buildsystem.ccache import CacheUse, read_stats_log
from axletree.core.records import Grant, LocalFacts
from axletree.execute.context import Outcome
from axletree.execute.variables import child_environment
from axletree.store.store import Store
from support.requests import MadeUpContext, request_of, run_request
from support.store import write_files

if TYPE_CHECKING:
    from pathlib import Path

CCACHE = find_ccache()
pytestmark = pytest.mark.skipif(CCACHE is None or shutil.which("c++") is None, reason="needs ccache and a C++ compiler")

NVCC = """\
#!/bin/sh
case $1 in --version) echo "nvcc release 13.0, build VERSION"; exit;; esac
echo "$*" >> COUNT
all="$NVCC_PREPEND_FLAGS $* $NVCC_APPEND_FLAGS"
while [ $# -gt 0 ]; do
  case $1 in
  -o) out=$2;; -MF) list=$2;; *.cu) source=$1;;
  --options-file) all="$all $(cat $2)";;
  -ccbin) all="$all $($2 -dumpversion)";;
  -E) cat a.cu; exit;;
  esac
  shift
done
{ echo "$all" | tr ' ' '\\n' | sed '/^\\//d;/[.][od]$/d;/^-M/d;/^-o$/d;/^$/d' | sort; cat $source host.h; } > $out
echo "$out: $source host.h" > $list
"""
"""Writes what it was called with, and what it read, into the object."""


class Calls:
    """nvcc, called through the launcher that stages get."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env
        self.stats = folder / "stats"

    def __call__(self, *words: str, **more: str) -> tuple[bytes, CacheUse]:
        """The object, and what ccache did."""
        self.stats.unlink(missing_ok=True)
        command = [*self.env["PYTORCH_NVCC"].split(), *words, "a.cu", "-o", "a.o"]
        env = {**self.env, **more, "CCACHE_STATSLOG": str(self.stats)}
        subprocess.run(command, cwd=self.folder, env=env, check=True)
        return (self.folder / "a.o").read_bytes(), read_stats_log(self.stats.read_text())


def calls_of(tmp_path: Path, home: Path) -> Calls:
    """The variables of a stage that compiles, where CUDA is in a folder."""
    store = Store.open(tmp_path / "store")
    variables = {"CUDA_HOME": str(home), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    found: dict[str, str] = {}

    def action(context: MadeUpContext) -> Outcome:
        with child_environment(context, venv=None, compiles=True, variables=variables) as env:
            found.update(env)
        return Outcome(tree=context.store.ingest(write_files(context.work / "out", {"a": b""})))

    local = LocalFacts(ccache=CCACHE, tools={"nvcc": str(home / "bin" / "nvcc")})
    done, events = run_request(store, request_of("lib", grant=Grant(jobs=1), local=local), action)
    assert done, events
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "a.cu").write_text("int value;\n")
    (folder / "host.h").write_text("int host;\n")
    return Calls(folder, found)


@pytest.fixture
def calls(tmp_path: Path) -> Calls:
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(NVCC.replace("COUNT", str(tmp_path / "count")))
    nvcc.chmod(0o755)
    return calls_of(tmp_path, tmp_path / "cuda")


VARIANTS: dict[str, tuple[list[str], dict[str, str]]] = {
    "plain": (["-c"], {}),
    "relocatable": (["-dc"], {}),
    "the long form": (["--device-c"], {}),
    "pic": (["-Xcompiler", "-fPIC", "-c"], {}),
    "other host flags": (["-Xcompiler", "-fno-inline", "-c"], {}),
    "many host flags": (["-Xcompiler", "-fPIC", "-Xcompiler", "-fno-inline", "-c"], {}),
    "appended": (["-c"], {"NVCC_APPEND_FLAGS": "-O1"}),
    "prepended": (["-c"], {"NVCC_PREPEND_FLAGS": "-O2"}),
    "archs": (["-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90", "-c"], {}),
    "threads": (["--threads", "2", "-c"], {}),
    "from a file": (["--options-file", "words", "-c"], {}),
}


def test_no_call_gets_what_another_one_made(calls: Calls) -> None:
    (calls.folder / "words").write_text("-Xcompiler -O0 -DX")
    made = {}
    for name, (words, more) in VARIANTS.items():
        made[name], use = calls(*words, **more)
        assert use == CacheUse(misses=1), name
    assert len(set(made.values())) == len(VARIANTS)
    for name, (words, more) in VARIANTS.items():
        again, use = calls(*words, **more)
        assert (again, use) == (made[name], CacheUse(hits=1)), name
    (calls.folder / "words").write_text("-Xcompiler -O3 -DX")
    assert calls("--options-file", "words", "-c")[1] == CacheUse(misses=1)


def test_what_only_the_host_reads_makes_another_object(calls: Calls) -> None:
    """ccache preprocesses as for a GPU, and would not see it."""
    before, _ = calls("-c")
    (calls.folder / "host.h").write_text("int other;\n")
    after, use = calls("-c")
    assert use == CacheUse(misses=1)
    assert b"int other" in after
    assert b"int other" not in before


def test_another_release_behind_the_same_script_is_another_compiler(calls: Calls, tmp_path: Path) -> None:
    assert calls("-c")[1] == CacheUse(misses=1)
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    status = nvcc.stat()
    nvcc.write_text(nvcc.read_text().replace("VERSION", "CHANGED"))
    os.utime(nvcc, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert calls("-c")[1] == CacheUse(misses=1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-arch=native", "-c"], "depends on the gpu"),
        (["-arch", "native", "-c"], "depends on the gpu"),
        (["--keep", "-c"], "unsupported compiler option"),
        (["-MMD", "-MF", "a.d", "-c"], "unsupported compiler option"),
    ],
)
def test_what_is_not_cached_is_counted_with_its_reason(words: list[str], why: str, calls: Calls) -> None:
    listed = () if "-MF" in words else ("-MF", "a.d")
    for _ in range(2):
        assert calls(*words, *listed)[1] == CacheUse(refused={why: ("a.cu",)})


def test_the_links_of_the_compiler_cache_are_not_the_host_compiler(calls: Calls) -> None:
    links = calls.env["PATH"].split(":")[0]
    assert os.path.realpath(f"{links}/c++") == os.path.realpath(str(CCACHE))
    calls("-ccbin", f"{links}/c++", "-c")
    said = (calls.folder.parent / "count").read_text()
    assert links not in said
    assert "-ccbin /" in said


def test_a_recipe_may_name_its_own(calls: Calls) -> None:
    """NVCC is the declared one, whether there is a cache or not."""
    assert calls.env["CMAKE_CUDA_COMPILER_LAUNCHER"] == calls.env["PYTORCH_NVCC"].split()[0]
    done = subprocess.run([calls.env["NVCC"], "--version"], capture_output=True, text=True, check=True, env=calls.env)
    assert "release 13.0" in done.stdout


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_nvcc_itself(tmp_path: Path) -> None:
    home = tmp_path / "cuda"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "nvcc").symlink_to(str(shutil.which("nvcc")))
    calls = calls_of(tmp_path, home)
    code = '#ifndef __CUDA_ARCH__\n#include "host.h"\n#endif\n__global__ void kernel(int *to) { *to = 1; }\n'
    (calls.folder / "a.cu").write_text(code)
    archs = ("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90")
    plain, use = calls(*archs, "-c")
    assert use == CacheUse(misses=1)
    assert calls(*archs, "-c") == (plain, CacheUse(hits=1))
    assert calls(*archs, "-dc")[1] == CacheUse(misses=1)
    (calls.folder / "host.h").write_text("int other = 7;\n")
    after, use = calls(*archs, "-c")
    assert use == CacheUse(misses=1)
    assert b"other" in after
    assert not list(tmp_path.glob("nvcc.*.d"))
