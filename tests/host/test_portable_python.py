"""A portable CPython, made of this machine's, works in an older system: Debian 11, with glibc 2.31 and GCC 10."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.core.errors import HostError
from axletree.disk import PART
from axletree.host.indexes import uv_program
from axletree.host.interpreters import probe
from axletree.host.portable_python import RECORD, PortablePython, make_portable
from axletree.host.portable_survey import survey
from support.debian_root import NOBODY, debian_root, run_in_root

if TYPE_CHECKING:
    from axletree.core.records import Interpreter
    from axletree.package.python.portable import Portable

HOME = "/axletree/cache/pythons/0123"
EXTENSION = """
#include <Python.h>
#include <cmath>
#include <pthread.h>
#include <stdexcept>
#include <string>
static void *work(void *argument) { return argument; }
static PyObject *sine(PyObject *, PyObject *number)
{
    pthread_t thread;
    pthread_create(&thread, nullptr, work, nullptr);
    pthread_join(thread, nullptr);
    try {
        if (PyFloat_AsDouble(number) < 0)
            throw std::out_of_range(std::string("negative"));
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_ValueError, error.what());
        return nullptr;
    }
    return PyFloat_FromDouble(std::sin(PyFloat_AsDouble(number)));
}
static PyMethodDef methods[] = {{"sine", sine, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "extension", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_extension() { return PyModule_Create(&definition); }
"""
USE = """
import extension
try:
    extension.sine(-1.0)
except ValueError as error:
    print(round(extension.sine(1.0), 6), error)
"""
# Its search path leads to the system's own parts of glibc, which do not fit the newer C library.
COMPILE = r"""
set -e
cd /tmp && cp /ask/* .
set -- $(PYTHON -c "import sysconfig as s; print(s.get_path('include'), s.get_config_var('EXT_SUFFIX'))")
g++ -O2 -shared -fPIC -I"$1" extension.cpp -o "extension$2" -Wl,--no-as-needed \
  -lm -lpthread -ldl -lrt -lutil -lresolv -Wl,-rpath,/usr/lib/x86_64-linux-gnu:/lib/x86_64-linux-gnu
cp "extension$2" /out
PYTHON -c "$(cat use.py)
mapped = {line.split()[5] for line in open('/proc/self/maps') if '.so' in line}
print(*sorted(path for path in mapped if not path.startswith(('/axletree/', '/tmp/'))))"
"""
ASK = """
import ctypes, hashlib, json, os, pwd, socket, sqlite3, ssl, subprocess, sys, sysconfig
shell = "env | grep -c LD_LIBRARY_PATH; sed -n 's/.*libc.so/libc.so/p' /proc/self/maps | head -1; gcc -dumpversion"
variables = " ".join(map(str, sysconfig.get_config_vars().values()))
assert ctypes.CDLL(None).getpid() == os.getpid()
assert ssl.create_default_context() and sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)
print(json.dumps({
    "prefix": sys.prefix,
    "include": sysconfig.get_paths()["include"],
    "headers": os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"),
    "ldshared": sysconfig.get_config_var("LDSHARED"),
    "old": sys.argv[1] in variables,
    "hash": hashlib.sha3_256(b"").hexdigest()[:8],
    "user": pwd.getpwuid(os.getuid()).pw_name,
    "address": socket.getaddrinfo("localhost", 80, socket.AF_INET)[0][4][0],
    "shell": subprocess.run(["sh", "-c", shell], capture_output=True, text=True).stdout.split(),
    "glibc": os.confstr("CS_GNU_LIBC_VERSION"),
}))
"""


def interpreters() -> dict[str, Path]:
    """Pythons of this machine of which a copy can be made, each of another kind: built here, and the distribution's."""
    found = {"own": Path(sys.executable), "system": Path("/usr/bin/python3")}
    return {name: path for name, path in found.items() if path.exists()}


def looked_at(path: Path) -> tuple[Interpreter, Portable]:
    interpreter = probe(path, environ=os.environ)
    assert interpreter is not None
    try:
        return interpreter, survey(interpreter, environ=os.environ)
    except HostError as error:
        if "has no headers" in str(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="module", params=interpreters())
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Portable]:
    _, portable = looked_at(interpreters()[request.param])
    folder = tmp_path_factory.mktemp("pythons") / portable.id
    make_portable(portable, folder, home=HOME)
    return folder, portable


def content(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.xdist_group("portable-python")
@pytest.mark.parametrize("user", [0, NOBODY])
def test_it_works_in_an_older_system(made: tuple[Path, Portable], user: int) -> None:
    folder, portable = made
    root = debian_root("bullseye", ["g++"])
    command = [f"{HOME}/{portable.program}", "-c", ASK, portable.install.prefix]
    done = run_in_root(root, *command, shown={folder: HOME}, user=user, network=False)
    assert done.returncode == 0, done.stdout
    found = msgspec.json.decode(done.stdout)
    assert "-rpath" not in found.pop("ldshared")
    # Of the distribution's Python, /usr is also where the tools of the image lie.
    assert found.pop("old") == (portable.install.prefix == "/usr")
    shell = found.pop("shell")
    assert shell[0] == "0"
    assert shell[-1] == "10"
    assert found == {
        "prefix": HOME,
        "include": f"{HOME}/include/{portable.install.name}",
        "headers": True,
        "hash": "a7ffc6f8",
        "user": "nobody" if user else "root",
        "address": "127.0.0.1",
        "glibc": "glibc 2.31",
    }


@pytest.mark.xdist_group("portable-python")
def test_extension_modules_of_the_old_compiler(made: tuple[Path, Portable], tmp_path: Path) -> None:
    folder, portable = made
    for name in ("ask", "out"):
        (tmp_path / name).mkdir()
    (tmp_path / "ask/extension.cpp").write_text(EXTENSION)
    (tmp_path / "ask/use.py").write_text(USE)
    script = COMPILE.replace("PYTHON", f"{HOME}/{portable.program}")
    shown = {folder: HOME, tmp_path / "ask": "/ask", tmp_path / "out": "/out"}
    done = run_in_root(debian_root("bullseye", ["g++"]), "sh", "-c", script, shown=shown, network=False)
    answer, mapped = done.stdout.splitlines()
    assert answer == "0.841471 negative"
    # The system's C++ runtime, and no part of its glibc.
    assert re.fullmatch(r"/\S+/libgcc_s\.so\.1 /\S+/libstdc\+\+\.so\.6\.0\.28", mapped)
    # The same file serves the Python that the copy was made of.
    host = [portable.install.executable, "-c", USE]
    again = subprocess.run(host, cwd=tmp_path / "out", capture_output=True, text=True, check=False)
    assert (again.stdout, again.stderr) == ("0.841471 negative\n", "")


@pytest.mark.xdist_group("portable-python")
def test_environments_and_installers(made: tuple[Path, Portable], tmp_path: Path) -> None:
    """Environments work, and pip and uv take the wheels that fit the system, not those that fit the copied glibc."""
    folder, portable = made
    for name, policy in (("fits", "2_31"), ("toonew", "2_34")):
        wheel(tmp_path, name, f"manylinux_{policy}_x86_64")
    script = r"""
PYTHON -m venv /tmp/venv || PYTHON -m venv --without-pip /tmp/venv
PYTHON -m venv --copies --without-pip /tmp/copied
uv venv -q --python PYTHON /tmp/uv
for name in venv copied uv; do /tmp/$name/bin/python -c 'import ssl, sys; print(sys.prefix, sys.base_prefix)'; done
for name in fits toonew; do
  options="-q --no-index --find-links /wheels --target /tmp/target $name"
  uv pip install --offline --no-cache --python /tmp/uv/bin/python $options 2> /dev/null && echo "uv $name"
  [ ! -e /tmp/venv/bin/pip ] || /tmp/venv/bin/pip install $options 2> /dev/null && echo "pip $name"
done
true
""".replace("PYTHON", f"{HOME}/{portable.program}")
    shown = {folder: HOME, tmp_path: "/wheels", Path(uv_program()).resolve(): "/usr/local/bin/uv"}
    done = run_in_root(debian_root("bullseye", ["g++"]), "sh", "-c", script, shown=shown, network=False)
    assert done.returncode == 0, done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith(("/tmp/", "uv ", "pip "))]
    assert lines[:3] == [f"/tmp/{name} {HOME}" for name in ("venv", "copied", "uv")]
    assert "uv fits" in lines
    assert not [line for line in lines if line.endswith("toonew") and line.startswith("uv")]
    if any(piece.place.endswith("ensurepip/__init__.py") for piece in portable.pieces):
        assert lines[3:] == ["uv fits", "pip fits"]


def wheel(folder: Path, name: str, platform: str) -> None:
    import zipfile

    with zipfile.ZipFile(folder / f"{name}-1-py3-none-{platform}.whl", "w") as archive:
        archive.writestr(f"{name}-1.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        text = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
        archive.writestr(f"{name}-1.dist-info/WHEEL", text)
        archive.writestr(f"{name}-1.dist-info/RECORD", "")


@pytest.mark.xdist_group("portable-python")
def test_made_twice_it_is_the_same(made: tuple[Path, Portable], tmp_path: Path) -> None:
    folder, portable = made
    _, again = looked_at(Path(portable.install.executable))
    assert again.id == portable.id
    record = make_portable(again, tmp_path / "again", home=HOME)
    assert content(tmp_path / "again") == content(folder)
    assert set(record.left_out) <= {"_tkinter", "nis"}
    assert record == msgspec.json.decode((folder / RECORD).read_bytes(), type=PortablePython)
    texts = b"".join(path.read_bytes() for path in folder.rglob("*.pyc"))
    assert str(folder.parent).encode() not in texts
    assert f"{HOME}/lib".encode() in texts


@pytest.mark.xdist_group("portable-python")
def test_it_is_there_complete_or_not_at_all(made: tuple[Path, Portable], tmp_path: Path) -> None:
    folder, portable = made
    left = tmp_path / f".x.{'0' * 16}{PART}"
    left.touch()
    Path(f"{left}.d").mkdir()
    one, *rest = portable.pieces
    lost = msgspec.structs.replace(portable, pieces=(msgspec.structs.replace(one, source="/nowhere"), *rest))
    with pytest.raises(HostError, match="/nowhere: the file cannot be written: No such file"):
        make_portable(lost, tmp_path / "new", home=HOME)
    assert list(tmp_path.iterdir()) == []
    shutil.copytree(folder, tmp_path / "there", symlinks=True)
    before = (tmp_path / "there").stat().st_ino
    assert make_portable(portable, tmp_path / "there", home=HOME).id == portable.id
    assert (tmp_path / "there").stat().st_ino == before
    with pytest.raises(HostError, match=rf"there: the folder is a different Python, for {HOME}\n.*remove the folder"):
        make_portable(portable, tmp_path / "there", home="/elsewhere")
    (tmp_path / "there" / RECORD).unlink()
    with pytest.raises(HostError, match="there: the folder is not a portable Python"):
        make_portable(portable, tmp_path / "there", home=HOME)


@pytest.mark.xdist_group("portable-python")
def test_a_copy_that_lacks_a_library_is_refused(made: tuple[Path, Portable], tmp_path: Path) -> None:
    _, portable = made
    name = portable.renamed["libsqlite3.so.0"]
    fewer = tuple(piece for piece in portable.pieces if not piece.place.endswith(name))
    with pytest.raises(
        HostError, match=rf"a copy of this Python cannot import _sqlite3: {re.escape(name)}: cannot open"
    ):
        make_portable(msgspec.structs.replace(portable, pieces=fewer), tmp_path / "new")
    # Under its own name the library would be found on this machine, and in the image perhaps not.
    names = {soname: name for soname, name in portable.renamed.items() if soname != "libsqlite3.so.0"}
    with pytest.raises(HostError, match=r"a copy of this Python still loads /\S+libsqlite3\.so"):
        make_portable(msgspec.structs.replace(portable, pieces=fewer, renamed=names), tmp_path / "new")


def test_what_is_no_python(tmp_path: Path) -> None:
    interpreter = probe(Path(sys.executable), environ=os.environ)
    assert interpreter is not None
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no\n")
    program.chmod(0o755)
    with pytest.raises(HostError, match=rf"{program}: the file is not a working Python"):
        survey(msgspec.structs.replace(interpreter, path=str(program)), environ=os.environ)
