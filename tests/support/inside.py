"""An extension module that is compiled and tested in Debian 11, whose root is made once."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from filelock import FileLock

from support.debian_root import debian_root
from support.inputs import CACHE
from support.tiny import Tiny, need_pythons

if TYPE_CHECKING:
    from pathlib import Path

SUITE = "bullseye"
PYTHON_LIBRARIES = ("libffi8", "libexpat1", "libncursesw6", "libreadline8", "libsqlite3-0", "libssl3", "libuuid1")
"""What a Python of this machine needs in a minimal Debian 12."""
PACKAGES = {"bullseye": ["g++"], "bookworm": ["g++", *PYTHON_LIBRARIES]}
"""Suite -> what its root has; one root for all tests."""
EXTENSION = """\
#include <Python.h>
#include <dlfcn.h>
static PyObject* made(PyObject*, PyObject*) {
  return Py_BuildValue("(iiO)", __GNUC__, __GLIBC_MINOR__, dlsym(RTLD_DEFAULT, "malloc") ? Py_True : Py_False);
}
static PyMethodDef methods[] = {{"made", made, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "inside", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_inside() { return PyModule_Create(&module); }
"""
RECIPE = """\
name = "inside"
version = "1.0"
summary = "An extension module."
[source]
path = "src"
[axes]
python = ["PYTHON"]
image = ["bullseye", "host"]
[images.bullseye]
from = "tar:ROOT"
[environments.build]
requires = []
[environments.test]
requires = []
[stages.ext]
action = "run"
axes = ["python", "image"]
environment = "build"
image = "{image}"
tools = ["c++"]
commands = [
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "c++ -g -O1 $CXXFLAGS -shared -fPIC -I$include inside.cpp -o $AXLETREE_OUT/inside$suffix -ldl",
]
[packages.inside]
from = "ext"
index = "{image}"
[tests.there]
packages = ["inside"]
image = "{image}"
installers = ["uv"]
commands = ["python -c 'import inside; print(inside.made(), open(\\"/etc/debian_version\\").read())'"]
[tests.here]
packages = ["inside"]
installers = ["uv"]
imports = ["inside"]
"""


def root_archive(suite: str = SUITE) -> Path:
    """A Debian with a compiler, as an archive that is made once."""
    root = debian_root(suite, PACKAGES[suite])
    path = CACHE / f"inside-{root.parent.name}.tar"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            part = path.with_suffix(".part")
            subprocess.run(["tar", "-C", root, "--exclude=./dev/*", "-cf", part, "."], check=True)
            part.replace(path)
    return path


def project(root: Path, archive: Path, *, suite: str = SUITE) -> Tiny:
    """A new project; ``archive`` is the root of its image, which is called as its suite."""
    tiny = Tiny(folder=root / "project", store=root / "store", home=root / "home", versions=need_pythons(1))
    tiny.source.mkdir(parents=True)
    tiny.home.mkdir()
    (tiny.source / "inside.cpp").write_text(EXTENSION)
    recipe = RECIPE.replace(SUITE, suite).replace("PYTHON", tiny.versions[0]).replace("ROOT", str(archive))
    tiny.recipe.write_text(recipe)
    return tiny


def logs(tiny: Tiny, words: str) -> list[str]:
    """Logs of stages in which these words are."""
    texts = [path.read_text() for path in (tiny.store / "logs").glob("*.log")]
    return [text for text in texts if words in text]
