"""What a build costs that has nothing to do: CPU and wall time of a second ``axletree build``.

``python benchmarks/bench_noop.py [RECIPE] [--runs N]``. Without an argument: a tiny recipe that is written here, of a
library and a Python file in two packages with a test. A recipe is built first, in a store and output folder of this
run's own unless ``AXLETREE_STORE`` is set; then each command runs a number of times, one after the other. Prints a
Markdown table; the target is under 0.5 s. ``ninja`` that finds nothing to do stands beside it, where there is one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure import best, machine_line, measure

if TYPE_CHECKING:
    from measure import Usage

AXLETREE = str(Path(sys.executable).with_name("axletree"))
RECIPE = """\
name = "tiny"
version = "1.0"
source = {{ path = "src" }}

[axes]
python = ["{python}"]

[environments.test]
requires = []

[stages.lib]
action = "run"
tools = ["c++"]
commands = ["mkdir -p $AXLETREE_OUT/lib", "c++ -shared -fPIC -o $AXLETREE_OUT/lib/libtiny.so tiny.cpp"]

[stages.code]
action = "run"
axes = ["python"]
commands = ["mkdir -p $AXLETREE_OUT/tiny", "cp __init__.py $AXLETREE_OUT/tiny/"]

[packages.tiny-lib]
from = "lib"
prefix = "tiny_lib"

[packages.tiny]
from = "code"
requires = ["tiny-lib=={{version}}"]

[tests.smoke]
packages = ["tiny", "tiny-lib"]
imports = ["tiny"]
"""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("recipe", nargs="?", type=Path)
    arguments.add_argument("--runs", type=int, default=9)
    options = arguments.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # as it is installed: with bytecode
    with tempfile.TemporaryDirectory(prefix="axletree-bench-") as folder:
        base = Path(folder)
        os.environ.setdefault("AXLETREE_STORE", str(base / "store"))
        recipe = str(options.recipe or _tiny(base))
        build = [AXLETREE, "build", recipe, "--out", str(base / "dist")]
        subprocess.run(build, check=True)
        last = subprocess.run(build, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
        if "nothing to do" not in last:
            raise SystemExit(f"the second build of {recipe} did something: {last}")
        commands = {
            "`python -c pass`": [sys.executable, "-c", "pass"],
            "`axletree --version`": [AXLETREE, "--version"],
            "`axletree plan`, all in the store": [AXLETREE, "plan", recipe],
            "**`axletree build`, nothing to do**": build,
            **_ninja(base / "ninja"),
        }
        print(machine_line())
        print(
            f"\n{Path(recipe).name}: {last.partition(',')[0]}; least CPU of {options.runs} interleaved runs\n",
            flush=True,
        )
        _print_table(_measured(commands, options.runs))


def _measured(commands: dict[str, list[str]], runs: int) -> dict[str, Usage]:
    usages: dict[str, list[Usage]] = {name: [] for name in commands}
    quiet = os.open(os.devnull, os.O_WRONLY)
    terminal = os.dup(1)
    for _ in range(runs):
        for name, command in commands.items():
            os.dup2(quiet, 1)
            try:
                usages[name].append(measure(command))
            finally:
                os.dup2(terminal, 1)
    return {name: best(several) for name, several in usages.items()}


def _print_table(rows: dict[str, Usage]) -> None:
    print("| | CPU s | wall s | peak memory |\n| --- | ---: | ---: | ---: |")
    for name, usage in rows.items():
        print(f"| {name} | {usage.cpu:.3f} | {usage.wall:.3f} | {usage.memory} |")


def _tiny(base: Path) -> Path:
    source = base / "src"
    source.mkdir()
    (source / "tiny.cpp").write_text('extern "C" int answer() { return 42; }\n')
    (source / "__init__.py").write_text("ANSWER = 42\n")
    recipe = base / "tiny.toml"
    recipe.write_text(RECIPE.format(python=f"{sys.version_info.major}.{sys.version_info.minor}"))
    return recipe


def _ninja(folder: Path) -> dict[str, list[str]]:
    """A ninja build of 1,000 files that is up to date."""
    ninja = shutil.which("ninja")
    if ninja is None:
        return {}
    folder.mkdir()
    steps = [f"build out{number}: touch" for number in range(1000)]
    (folder / "build.ninja").write_text("\n".join(["rule touch", "  command = touch $out", *steps]) + "\n")
    subprocess.run([ninja, "-C", str(folder)], check=True, stdout=subprocess.DEVNULL)
    return {"`ninja`, 1,000 files up to date": [ninja, "-C", str(folder)]}


if __name__ == "__main__":
    main()
