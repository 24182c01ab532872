"""A tiny C++ project with its recipe: one shared library, bindings for two Pythons, two packages.

The recipe has all that can make a stage run again: a patch, a locked environment, a test file, a variable of the shell,
an axis with one value that counts. :class:`Tiny` calls Axletree as a user does, in an environment of the test's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock

from axletree.core.errors import HostError
from axletree.core.values import digest_of
from axletree.host.interpreters import find_interpreter
from axletree.recipe.locks import LockedWheel, make_lock, render_lock
from support.envelopes import events_of, result_of
from support.wheels import demo_metadata, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.core.records import Interpreter

VERSIONS = ("3.11", "3.12", "3.13", "3.10", "3.14")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

LIBRARY = """\
extern "C" int tiny_answer() {
  const int base = 41;
  return base + TINY_BONUS;
}
"""
BINDING = """\
#include <Python.h>
extern "C" int tiny_answer();
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(tiny_answer()); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, "The answer."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_tiny", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__tiny() { return PyModule_Create(&module); }
"""
PATCH = """\
The base is one more.
--- a/tiny.cpp
+++ b/tiny.cpp
@@ -1,4 +1,4 @@
 extern "C" int tiny_answer() {
-  const int base = 41;
+  const int base = 42;
   return base + TINY_BONUS;
 }
"""
TEST = """\
import demo
import tiny

assert tiny.answer() >= 42
assert demo.__name__ == "demo"
"""
RECIPE = """\
name = "tiny"
version = "1.0"
summary = "A tiny project."
[source]
path = "src"
exclude = ["notes"]

[axes]
python = [PYTHONS]
blas = ["mkl", "openblas"]
[matrix]
exclude = [{ blas = "openblas" }]

[[patches]]
file = "patches/base.patch"

[environments.bind]
[environments.test]
requires = ["demo>=1"]

[stages.lib]
action = "run"
axes = ["blas"]
tools = ["c++"]
pass-env = ["TINY_BONUS"]
commands = [
  "mkdir $AXLETREE_OUT/lib",
  "c++ $CXXFLAGS -O1 -DTINY_BONUS=${TINY_BONUS:-0} -fPIC -c tiny.cpp -o $TMPDIR/tiny.o",
  "c++ -shared -o $AXLETREE_OUT/lib/libtiny.so -Wl,-soname,libtiny.so $TMPDIR/tiny.o",
]

[stages.bind]
action = "run"
axes = ["python", "blas"]
environment = "bind"
inputs = ["lib"]
tools = ["c++"]
commands = [
  "mkdir $AXLETREE_OUT/tiny",
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "c++ $CXXFLAGS -O1 -fPIC -I$include -c bind.cpp -o $TMPDIR/bind.o",
  'links="-L$AXLETREE_IN_LIB/lib -ltiny -Wl,-rpath,\\$ORIGIN/../libtiny/lib"',
  "c++ -shared -o $AXLETREE_OUT/tiny/_tiny$suffix $TMPDIR/bind.o $links",
  "cp __init__.py $AXLETREE_OUT/tiny/",
]

[packages.libtiny]
from = "lib"
prefix = "libtiny"
[packages.tiny]
from = "bind"
requires = ["libtiny=={version}"]
provided-by = { libtiny = ["libtiny.so"] }

[tests.smoke]
packages = ["libtiny", "tiny"]
installers = ["uv"]
imports = ["tiny"]
files = ["tests/check.py"]
commands = ["python check.py"]
"""


@cache
def pythons() -> dict[str, Interpreter]:
    """The Pythons of this machine that are known to do, by version."""
    found: dict[str, Interpreter] = {}
    for version in VERSIONS:
        try:
            found[version] = find_interpreter(version, environ=os.environ)
        except HostError:
            continue
    return found


def another_python() -> Interpreter:
    """A Python of this machine beside the one that runs the tests; skips the test where there is none."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version, interpreter in pythons().items():
        if version != own:
            return interpreter
    pytest.skip(f"needs a Python beside {own}")


def need_pythons(count: int = 2) -> tuple[str, ...]:
    """The first versions; skips the test where this machine has fewer, or no C++ compiler."""
    if len(pythons()) < count:
        pytest.skip(f"needs {count} Pythons, this machine has {', '.join(pythons()) or 'none'}")
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    return tuple(pythons())[:count]


@dataclass(frozen=True, kw_only=True)
class Run:
    """What a build came to."""

    code: int
    events: list[dict[str, Any]]
    stderr: str

    def stages(self, *states: str) -> set[str]:
        """Stages that ended in one of these states, by their short names."""
        ended = (event for event in self.events if event["event"] == "stage-finished")
        return {short(event["stage"]) for event in ended if event["status"] in states}

    @property
    def trees(self) -> dict[str, str]:
        """Stage -> digest of its result."""
        return {short(event["stage"]): event["tree"] for event in self.events if event["event"] == "stage-finished"}

    @property
    def counts(self) -> Counter[str]:
        """Numbers of the run's closing event."""
        (last,) = (event for event in self.events if event["event"] == "run-finished")
        return Counter({name: last[name] for name in ("ran", "cached", "failed", "blocked")})

    def why(self) -> str:
        """What to show when a run was expected to go well."""
        failures = [
            f"{event['stage']}: {event.get('message')} {event.get('cause')}"
            for event in self.events
            if event["event"] == "stage-finished" and event["status"] == "failed"
        ]
        return "\n".join([*failures, self.stderr])


@dataclass(frozen=True, kw_only=True)
class Tiny:
    """A project, a store and a way to call Axletree on them."""

    folder: Path
    """Holds ``tiny.toml``, ``src``, ``patches``, ``tests`` and the locks."""
    store: Path
    home: Path
    versions: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those that every call has."""
    program: tuple[str, ...] = (sys.executable, "-P", "-m", "axletree")
    prefix: tuple[str, ...] = ()
    """A command that starts the program."""
    cwd: Path = Path("/")

    @property
    def recipe(self) -> Path:
        return self.folder / "tiny.toml"

    @property
    def source(self) -> Path:
        return self.folder / "src"

    @property
    def out(self) -> Path:
        return self.home / "dist"

    def variables(self) -> dict[str, str]:
        """The whole environment of a call."""
        interpreters = [str(Path(interpreter.path).parent) for interpreter in pythons().values()]
        return {
            "PATH": ":".join([*interpreters, SYSTEM_PATH]),
            "HOME": str(self.home),
            "AXLETREE_STORE": str(self.store),
            "AXLETREE_FIND_LINKS": str(self.home / "links"),
            "AXLETREE_OFFLINE": "1",
            "NO_COLOR": "1",
            **self.environ,
        }

    def call(self, *args: str) -> subprocess.CompletedProcess[str]:
        """Run ``axletree ARGS``."""
        return subprocess.run(
            [*self.prefix, *self.program, *args],
            cwd=self.cwd,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )

    def plan(self, *args: str) -> dict[str, dict[str, Any]]:
        """Rows of ``axletree plan --json`` by the short names of their stages."""
        done = self.call("plan", str(self.recipe), "--json", *args)
        assert done.returncode == 0, done.stderr
        return {short(row["stage"]): row for row in result_of(done.stdout)["stages"]}

    def build(self, *args: str) -> Run:
        """``axletree build --json``, whatever comes of it."""
        done = self.call("build", str(self.recipe), "--json", "--out", str(self.out), *args)
        events = events_of(done.stdout)
        return Run(code=done.returncode, events=events, stderr=done.stderr)

    def built(self, *args: str) -> Run:
        """A build that must go well."""
        run = self.build(*args)
        assert run.code == 0, run.why()
        return run

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace a text that is there exactly once in a file of the project."""
        file = self.folder / path
        text = file.read_text()
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {path}"
        file.write_text(text.replace(old, new))

    def change(self, old: str, new: str) -> None:
        """Replace a text of the recipe."""
        self.edit("tiny.toml", old, new)

    def add(self, text: str) -> None:
        """Append to the recipe."""
        with self.recipe.open("a") as file:
            file.write(text)

    def lock(self, version: str, *, demo: str = "1.0", requires: Sequence[str] = ("demo>=1",)) -> None:
        """Write the lock of the test environment for a Python: it holds one version of a small wheel."""
        wheel = self.home / "links" / f"demo-{demo}-py3-none-any.whl"
        if not wheel.exists():
            wheel.parent.mkdir(parents=True, exist_ok=True)
            wheel.write_bytes(wheel_bytes({"demo/__init__.py": b""}, metadata=demo_metadata(demo)))
        data = wheel.read_bytes()
        locked = LockedWheel(name="demo", version=demo, filename=wheel.name, size=len(data), sha256=digest_of(data))
        lock = make_lock(requires, python=version, platform=pythons()[version].platform, wheels=[locked])
        path = self.folder / "tiny" / f"pylock.test-py{version.replace('.', '')}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(render_lock(lock))

    def with_environ(self, **environ: str) -> Tiny:
        """The same with more variables in the shell."""
        return replace(self, environ={**self.environ, **environ})


def make_tiny(root: Path, versions: Sequence[str], *, recipe: str = RECIPE) -> Tiny:
    """Write the project into a new folder; nothing is built yet."""
    tiny = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=tuple(versions))
    quoted = ", ".join(f'"{version}"' for version in versions)
    files = {
        "tiny.toml": recipe.replace("PYTHONS", quoted),
        "src/tiny.cpp": LIBRARY,
        "src/bind.cpp": BINDING,
        "src/__init__.py": "from tiny._tiny import answer\n",
        "patches/base.patch": PATCH,
        "tests/check.py": TEST,
    }
    tiny.home.mkdir(parents=True)
    for name, text in files.items():
        path = tiny.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for version in versions:
        tiny.lock(version)
    return tiny


def copied(tiny: Tiny, root: Path) -> Tiny:
    """A copy of the project, its store and the home, with nothing published yet."""
    for source, name in ((tiny.folder, "project"), (tiny.store, "store"), (tiny.home, "home")):
        if source.exists():
            shutil.copytree(source, root / name, symlinks=True, ignore=shutil.ignore_patterns("dist"))
    return replace(tiny, folder=root / "project", store=root / "store", home=root / "home")


def prepared_tiny(factory: pytest.TempPathFactory) -> Tiny:
    """The project, built once for all tests and all processes of a test run; not to be changed, only copied."""
    versions = need_pythons()
    shared = factory.getbasetemp()
    shared = shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared
    root = shared / "tiny"
    with FileLock(shared / "tiny.lock"):
        if (root / "ready").exists():
            return Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=versions)
        shutil.rmtree(root, ignore_errors=True)
        tiny = make_tiny(root, versions)
        tiny.built()
        (root / "ready").touch()
    return tiny


def short(stage: str) -> str:
    """A stage's name with Python A, B, C for the first, second and third, and nothing of the axis with one value."""
    name, _, label = stage.rstrip("]").partition("[")
    letters = [
        "ABC"[number]
        for number, version in enumerate(list(pythons())[:3])
        if f"py{version.replace('.', '')}" in label.split("-")
    ]
    return f"{name}[{letters[0]}]" if letters else name


def expand(stages: str) -> set[str]:
    """Short names from a text: ``lib bind[*]``; a star stands for A and B."""
    return {name.replace("*", letter) for name in stages.split() for letter in "AB"}


def behind(stages: Iterable[str], plan: Mapping[str, dict[str, Any]]) -> set[str]:
    """All stages that need some of these, directly or not; without themselves."""
    start, found = set(stages), set(stages)
    for name, row in plan.items():  # each comes after what it needs
        if any(short(needed) in found for needed in row["needs"]):
            found.add(name)
    return found - start


def wheel_digests(out: Path) -> dict[str, str]:
    """File name -> digest of the wheels of an output folder."""
    return {path.name: digest_of(path.read_bytes()) for path in sorted(out.glob("*.whl"))}
