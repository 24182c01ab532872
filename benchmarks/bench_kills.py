"""What a kill costs: objects compiled again, where a kept build of 150 C++ files is killed.

In the laying out of a changed source, at each of its first operations on files; and in the middle of compiling. With
``--src`` another version of Axletree is measured, by its folder ``src``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from axletree.buildsystem.ninja import NinjaStep, read_ninja_log, rebuilt
from support.faults import faults_in_stages

FILES = 150
RECIPE = """\
name = "many"
version = "1.0"
source = { path = "src" }
[stages.core]
action = "compile"
tools = ["c++", "cmake", "ninja"]
"""
LISTS = """\
cmake_minimum_required(VERSION 3.18)
project(many CXX)
file(GLOB parts *.cpp)
add_library(many SHARED ${parts})
install(TARGETS many LIBRARY DESTINATION lib)
"""


class Many:
    """The project, its store, and what ninja says."""

    def __init__(self, root: Path, src: str | None) -> None:
        self.root = root
        (root / "src").mkdir()
        (root / "many.toml").write_text(RECIPE)
        (root / "src" / "CMakeLists.txt").write_text(LISTS)
        for number in range(FILES):
            text = f'#include <string>\nstd::string part{number}() {{ return "{number}"; }}\n'
            (root / "src" / f"part{number:03}.cpp").write_text(text)
        self.environ = {**os.environ, "AXLETREE_STORE": str(root / "store"), "PYTHONPATH": src or ""}
        self.before = self.steps()

    def start(self, **more: str) -> subprocess.Popen[bytes]:
        if "PYTHONPATH" in more:
            more["PYTHONPATH"] += f":{self.environ['PYTHONPATH']}"
        words = [sys.executable, "-P", "-m", "axletree", "build", "many.toml", "--out", "dist"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(words, cwd=self.root, env={**self.environ, **more}, stdout=quiet, stderr=quiet)

    def build(self) -> None:
        if self.start().wait() != 0:
            sys.exit("the build failed")

    def steps(self) -> dict[str, NinjaStep]:
        found: dict[str, NinjaStep] = {}
        for path in (self.root / "store").glob("workspaces/*/build/.ninja_log"):
            found |= read_ninja_log(path.read_text())
        return found

    def compiled(self) -> int:
        """Objects that were compiled since the last call."""
        before, self.before = self.before, self.steps()
        return sum(path.endswith(".o") for path in rebuilt(before, self.before))

    def edit(self, number: int) -> None:
        path = self.root / "src" / f"part{number:03}.cpp"
        path.write_text(f"{path.read_text()}// again\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", help="folder src of another version of Axletree")
    parser.add_argument("--kills", type=int, default=6, help="kills in the laying out")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-kills-") as name:
        root = Path(name)
        many = Many(root, options.src)
        many.build()
        print(f"first build: {many.compiled()} objects")
        for at in range(1, options.kills + 1):
            many.edit(at)
            below = "/store/workspaces"
            many.start(**faults_in_stages(root / "faults", below, at)).wait()
            many.build()
            print(f"killed before operation {at} of the laying out: {many.compiled()} compiled, 1 changed")
        for number in range(FILES):
            many.edit(number)
        process = many.start()
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline and len(rebuilt(many.before, many.steps())) < FILES // 2:
            time.sleep(0.05)
        process.kill()
        process.wait()
        time.sleep(2)  # the processes of the stage end
        done = many.compiled()
        many.build()
        print(f"killed after {done} of {FILES} objects: {many.compiled()} compiled")


if __name__ == "__main__":
    main()
