"""A wheel that runs on older systems than the one that built it: compiled by Zig, checked with readelf."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest

from support.inputs import CACHE, wheel
from support.projects import write_tree

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
GIZMO = {
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=77"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "gizmo"\nversion = "1.0"\n',
    "setup.py": "from setuptools import Extension, setup\n"
    'setup(ext_modules=[Extension("gizmo", ["gizmo.c"], libraries=["m"])])\n',
    # fcntl is a symbol of glibc 2.28, and pow of 2.29, where the linker takes the newest.
    "gizmo.c": """\
#include <fcntl.h>
#include <math.h>
#include <Python.h>
static PyObject* power(PyObject* self, PyObject* number) {
  if (fcntl(0, F_GETFD) < -1) return NULL;
  return PyFloat_FromDouble(pow(PyFloat_AsDouble(number), 1.5));
}
static PyMethodDef methods[] = {{"power", power, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "gizmo", NULL, -1, methods};
PyMODINIT_FUNC PyInit_gizmo(void) { return PyModule_Create(&module); }
""",
}


def built(folder: Path, *options: str, store: Path) -> tuple[Path, int]:
    """The wheel, and what its module needs."""
    out = folder / f"dist{len(options)}"
    argv = [sys.executable, "-m", "axletree", "wheel", ".", "--python", PYTHON, "--out", str(out), *options]
    environ = {**os.environ, "AXLETREE_STORE": str(store), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (found,) = out.glob("*.whl")
    with zipfile.ZipFile(found) as archive:
        (module,) = (name for name in archive.namelist() if name.endswith(".so"))
        path = archive.extract(module, folder / f"unpacked{len(options)}")
    return found, needed(path)


def needed(module: str) -> int:
    """Minor number of the newest glibc 2 that a module needs, by readelf."""
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", module], capture_output=True, text=True, check=True).stdout
    return max(int(minor) for minor in re.findall(r"@GLIBC_2\.([0-9]+)", symbols))


@pytest.mark.slow
@pytest.mark.xdist_group("workspace")
def test_a_portable_wheel_needs_no_newer_glibc(tmp_path: Path) -> None:
    if platform.machine() != "x86_64" or shutil.which("readelf") is None or shutil.which("cc") is None:
        pytest.skip("needs readelf and a C compiler, on x86_64")
    links = tmp_path / "links"
    links.mkdir()
    for requirement in ("ziglang==0.17.1", "setuptools==80.9.0"):
        (links / (file := wheel(requirement)).name).symlink_to(file)
    folder = write_tree(tmp_path / "gizmo", GIZMO)
    include = sysconfig.get_path("include")
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", "gizmo.c", "-lm", "-o", "own"], cwd=folder, check=True)
    if needed(str(folder / "own")) <= 17:
        pytest.skip("the glibc of this host is as old as the wheel's")
    (folder / "own").unlink()
    store = tmp_path / "store"
    (store / "cache").mkdir(parents=True)
    (store / "cache" / "zig").symlink_to(_kept_libraries())
    found, minor = built(folder, "--portable", "--find-links", str(links), "--offline", store=store)
    assert minor <= 17
    (level,) = re.findall(r"manylinux_2_(\d+)_x86_64", found.name)
    assert int(level) <= 17


def _kept_libraries() -> Path:
    """Where Zig's own libraries are kept between runs: the first compiles them."""
    folder = CACHE / "zig"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
