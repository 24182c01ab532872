"""Small projects for tests of what goes wrong: built by the real command, in folders that a test can look into."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from axletree.recipe.locks import LockedWheel, make_lock, render_lock
from axletree.store import Store, verify
from support.envelopes import events_of, result_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

LIBRARY = """\
name = "small"
version = "1.0"
summary = "A library."

[source]
path = "src"

[stages.lib]
action = "run"
tools = ["c++"]
commands = [
  "mkdir -p $AXLETREE_OUT/lib",
  "c++ $CXXFLAGS -shared -fPIC -o $AXLETREE_OUT/lib/libsmall.so -Wl,-soname,libsmall.so small.cpp",
]

[packages.libsmall]
from = "lib"
prefix = "libsmall"
"""
"""One library in one package: five stages, no Python."""

BOUND = (
    LIBRARY.replace("[stages.lib]", f'[axes]\npython = ["{PYTHON}"]\n\n[environments.plain]\n\n[stages.lib]')
    + """
[stages.bind]
action = "run"
axes = ["python"]
environment = "plain"
inputs = ["lib"]
tools = ["c++"]
commands = [
  "mkdir $AXLETREE_OUT/small; cp __init__.py $AXLETREE_OUT/small/",
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "c++ $CXXFLAGS -shared -fPIC -I$include -o $AXLETREE_OUT/small/_small$suffix bind.cpp \
-L$AXLETREE_IN_LIB/lib -lsmall '-Wl,-rpath,$ORIGIN/../libsmall/lib'",
]

[packages.small]
from = "bind"
requires = ["libsmall=={version}"]
provided-by = { libsmall = ["libsmall.so"] }

[tests.smoke]
packages = ["libsmall", "small"]
environment = "plain"
installers = ["uv"]
imports = ["small"]
commands = ["python -c 'import small; assert small.answer() == 42'"]
"""
)
"""A library, a binding to it, a package of each, and a test that uses both: eleven stages."""

SOURCES = {
    "small.cpp": 'extern "C" int small_answer() { return 42; }\n',
    "bind.cpp": """\
#include <Python.h>
extern "C" int small_answer();
static PyObject* answer(PyObject*, PyObject*) { return PyLong_FromLong(small_answer()); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_small", nullptr, -1, methods};
PyMODINIT_FUNC PyInit__small() { return PyModule_Create(&module); }
""",
    "__init__.py": "from small._small import answer\n",
}


@dataclass(frozen=True)
class Ended:
    """A command that is over."""

    code: int
    out: str
    err: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """What ``--json`` printed."""
        return events_of(self.out)

    @property
    def result(self) -> dict[str, Any]:
        """The report of ``--json``."""
        report: dict[str, Any] = result_of(self.out)
        return report

    def statuses(self) -> dict[str, str]:
        """Stage -> how it ended, from ``--json``."""
        return {event["stage"]: event["status"] for event in self.events if event["event"] == "stage-finished"}

    def finished(self, stage: str) -> dict[str, Any]:
        """The last event about a stage's end, from ``--json``."""
        return [e for e in self.events if e["event"] == "stage-finished" and e["stage"] == stage][-1]


@dataclass(frozen=True)
class Running:
    """A command that was started. What it says goes to files, so that nobody must read along."""

    process: subprocess.Popen[bytes]
    said: Path
    complained: Path

    def end(self, seconds: float) -> Ended:
        """Wait until it is over."""
        code = self.process.wait(seconds)
        return Ended(code, self.said.read_text(encoding="utf-8"), self.complained.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Project:
    """A recipe with its sources, and the store and output folder that its builds use."""

    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables beyond the few that every command gets."""

    @property
    def recipe(self) -> Path:
        return self.folder / "small.toml"

    @property
    def source(self) -> Path:
        return self.folder / "src"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def out(self) -> Path:
        return self.folder / "dist"

    def having(self, **environ: str) -> Project:
        """The same project with other variables in the shell."""
        return replace(self, environ={**self.environ, **environ})

    def online(self) -> Project:
        """The same project with the package index, and the Rust, of whoever runs the tests."""
        pip = os.environ.get("PIP_CONFIG_FILE", str(Path.home() / ".config/pip/pip.conf"))
        return self.having(**{**os.environ, "AXLETREE_NO_INDEX": "0", "PIP_CONFIG_FILE": pip})

    def edit(self, old: str, new: str, *, file: str = "small.toml") -> None:
        """Replace a text that must be there."""
        path = self.folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def variables(self) -> dict[str, str]:
        """The environment of a command: a home of its own, no index, nothing of the shell that runs the tests."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        base = Path(getattr(sys, "_base_executable", sys.executable)).parent
        return {
            "PATH": f"{base}:{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "AXLETREE_STORE": str(self.store),
            "AXLETREE_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
            **self.environ,
        }

    def start(self, *arguments: str | Path, prefix: Sequence[str] = ()) -> Running:
        """Start a command; its folder is the project's, so that what it starts can be recognised."""
        number = len(list(self.folder.glob("said-*")))
        said, complained = self.folder / f"said-{number}", self.folder / f"complained-{number}"
        with said.open("wb") as out, complained.open("wb") as err:
            process = subprocess.Popen(
                [*prefix, sys.executable, "-P", "-m", "axletree", *map(str, arguments)],
                cwd=self.folder,
                env=self.variables(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        return Running(process, said, complained)

    def run(self, *arguments: str | Path, prefix: Sequence[str] = ()) -> Ended:
        """Run a command to its end."""
        return self.start(*arguments, prefix=prefix).end(300)

    def build(self, *arguments: str | Path, prefix: Sequence[str] = ()) -> Ended:
        """Build the recipe."""
        return self.run("build", "small.toml", "--out", "dist", *arguments, prefix=prefix)

    def wheels(self) -> dict[str, str]:
        """Wheels in the output folder: name -> SHA-256."""
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(self.out.rglob("*.whl"))}

    def published(self) -> list[str]:
        """Every file in the output folder that says of itself that it is a result, or is a half of one."""
        own = {"report.html", "ledger.json", ".axletree.lock", "logs"}
        files = (path.relative_to(self.out) for path in self.out.rglob("*"))
        return sorted(str(path) for path in files if own.isdisjoint(path.parts))

    def sound(self) -> bool:
        """Whether the store is in order, and nothing was left in it by somebody who is gone."""
        report = verify(Store.open(self.store))
        return report.sound and not report.leftovers

    def records(self) -> dict[str, Path]:
        """Stage -> its record in the store."""
        paths = (self.store / "results").rglob("*.json")
        return {json.loads(path.read_bytes())["stage"]: path for path in paths}

    def tree_of(self, stage: str) -> str:
        """Digest of the tree that a stage made."""
        tree: str = json.loads(self.records()[stage].read_bytes())["tree"]
        return tree

    def blob(self, digest: str) -> Path:
        """Where the store has a content."""
        return self.store / "blobs" / digest[:2] / digest[2:]

    def contents_of(self, stage: str) -> dict[str, Path]:
        """Files of a stage's tree: path -> its content in the store."""
        entries = json.loads(self.blob(self.tree_of(stage)).read_bytes())["entries"]
        return {entry["path"]: self.blob(entry["blob"]) for entry in entries if entry.get("blob")}

    def processes(self) -> list[str]:
        """Living processes that have to do with this project: by folder, command line, environment or mounts.

        A stage in a room of its own sees neither name nor folder of the project, but its mounts come from there.
        """
        mark, device = str(self.folder), mounted_at(self.folder)
        source = f" /{self.folder.relative_to(device)}/"
        found = []
        for process in psutil.process_iter():
            try:
                with process.oneshot():
                    if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                        continue
                    words = [process.cwd(), *process.cmdline(), *process.environ().values()]
                    if any(mark in word for word in words) or source in mounts_of(process.pid):
                        found.append(f"{process.pid} {' '.join(process.cmdline())}")
            except psutil.Error:
                continue
        return found

    def plain(self, text: str) -> str:
        """A text without what differs from run to run: folders, times, sizes, digests."""
        text = text.replace(str(self.folder), "<project>")
        text = re.sub(r"\b[0-9a-f]{24,64}\b", "<digest>", text)
        text = re.sub(r"\b[0-9a-f]{12,16}\.\.\.", "<digest>", text)
        text = re.sub(r"manylinux_\d+_\d+_\w+", "manylinux", text).replace(platform.machine(), "<machine>")
        text = re.sub(rf"(?<![\d.]){re.escape(PYTHON)}(?!\d)", "3.N", text)
        text = re.sub(rf"(py|cp|cpython-){PYTHON.replace('.', '')}", r"\g<1>3N", text)
        text = re.sub(r"^ +\d+:\d\d  ", "   0:00  ", text, flags=re.MULTILINE)
        text = re.sub(r"(in|after|took) \d+(\.\d+)? (s|min|ms)\b", r"\1 0 s", text)
        text = re.sub(r", peak memory [\d.]+ \w+", "", text)
        text = re.sub(r"\(\d+ jobs\)", "(n jobs)", text)
        return re.sub(r"\d+(\.\d+)? (bytes|kB|MB|GB)\b", "<size>", text)

    def account(self, ended: Ended) -> str:
        """How a command ended, for a golden file: exit code, what it said at the end, where."""
        summary = ended.out[match.start() :] if (match := _SUMMARY.search(ended.out)) else ended.out
        return self.plain(f"exit code {ended.code}\n{summary}{ended.err}")


def mounted_at(folder: Path) -> Path:
    """The mount point of the file system that a folder is on."""
    return next(each for each in (folder, *folder.parents) if each.is_mount())


def mounts_of(pid: int) -> str:
    """What a process has mounted, as proc(5) lists it; nothing for one that has ended."""
    try:
        return Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


_SUMMARY = re.compile(r"^(done|failed|cancelled) (in|after) ", re.MULTILINE)


def powerless() -> list[str]:
    """The start of a command line that runs the rest without root's rights over files and namespaces.

    The user stays the same: Python may lie where nobody else can read it.
    """
    if os.geteuid() != 0:
        return []
    prefix = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    if shutil.which("setpriv") is None or subprocess.run([*prefix, "true"], check=False).returncode != 0:
        pytest.skip("root's rights can't be given up here: no setpriv")
    return prefix


def without_namespaces() -> list[str]:
    """The start of a command line that runs the rest where the system grants no namespaces, as many containers do."""
    limits = "".join(f"echo 0 > /proc/sys/user/max_{kind}_namespaces; " for kind in ("user", "pid", "net", "mnt"))
    drop = "exec setpriv --bounding-set=-all --inh-caps=-all"
    prefix = ["unshare", "--user", "--map-root-user", "sh", "-ec", f'{limits} {drop} "$@"', "sh"]
    works = [*prefix, "sh", "-c", "! unshare --pid true && ! unshare --user true"]
    if shutil.which("unshare") is None or subprocess.run(works, check=False, capture_output=True).returncode != 0:
        pytest.skip("namespaces can't be forbidden here: no unshare, or it may do nothing")
    return prefix


def pylock(wheels: Mapping[str, bytes], *, requires: Sequence[str]) -> str:
    """A lock of an environment of this Python that holds wheels: file name -> content."""
    locked = [
        LockedWheel(
            name=name.partition("-")[0].replace("_", "-"),
            version=name.split("-")[1],
            filename=name,
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )
        for name, data in wheels.items()
    ]
    return render_lock(make_lock(requires, python=PYTHON, platform=sysconfig.get_platform(), wheels=locked))


def make_project(
    folder: Path, recipe: str = LIBRARY, *, files: Mapping[str, str] | None = None, **environ: str
) -> Project:
    """Lay a project out; ``files`` are more files beside the recipe."""
    folder.mkdir(parents=True, exist_ok=True)
    project = Project(folder, environ)
    project.source.mkdir()
    for name, text in SOURCES.items():
        (project.source / name).write_text(text, encoding="utf-8")
    project.recipe.write_text(recipe, encoding="utf-8")
    for name, text in (files or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return project
