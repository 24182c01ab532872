"""What goes into a portable CPython, how its files change, and which Pythons cannot be copied."""

from __future__ import annotations

import ast
import json
from typing import Any

import msgspec
import pytest

from axletree.binary.elf.edit import ElfChange
from axletree.binary.elf.facts import ElfFacts, read_elf
from axletree.core.errors import IntegrityError
from axletree.core.values import Digest
from axletree.package.python.build_variables import (
    moved_folders,
    moved_json,
    moved_makefile,
    moved_module,
    moved_variables,
)
from axletree.package.python.portable import (
    Install,
    Piece,
    Portable,
    change_of,
    is_wanted,
    library_folder,
    obstacles,
    why_left_out,
)
from support.wheels import make_elf

HOME = "/axletree/cache/pythons/0123"
PYENV = "/home/ann/.pyenv/versions/3.11.7"
FOLDERS = moved_folders(
    HOME, library="lib/python3.11", include="include/python3.11", config="lib/python3.11/config-3.11-x86_64-linux-gnu"
)
INSTALL = Install(
    executable=f"{PYENV}/bin/python3.11",
    implementation="cpython",
    version="3.11.7",
    prefix=PYENV,
    stdlib=f"{PYENV}/lib/python3.11",
    include=f"{PYENV}/include/python3.11",
    config=f"{PYENV}/lib/python3.11/config-3.11-x86_64-linux-gnu",
    multiarch="x86_64-linux-gnu",
    wheels="",
)
LOADER = "/lib64/ld-linux-x86-64.so.2"


def program(**more: Any) -> ElfFacts:
    return read_elf(make_elf(**{"needed": ("libc.so.6",), "interpreter": LOADER, **more}))


def moved(old: str, /, **variables: object) -> dict[str, Any]:
    return moved_variables(variables, FOLDERS, prefix=old)


def test_build_variables_of_pyenv() -> None:
    search = f"-L{PYENV}/lib -Wl,-rpath,{PYENV}/lib"
    found = moved(
        PYENV,
        CC="gcc -pthread",
        LDSHARED=f"gcc -shared {search} {search}",
        PY_LDFLAGS=f"{search} -Wl,-O1 -Wl,-rpath={PYENV}/lib64",
        CPPFLAGS=f"-I. -I{PYENV}/include -I{PYENV}-other/include",
        CONFIG_ARGS=f"'--prefix={PYENV}' 'LDFLAGS={search}'",
        INCLUDEPY=f"{PYENV}/include/python3.11",
        prefix=PYENV,
        WHEEL_PKG_DIR="",
        HAVE_FORK=1,
        WASM_STDLIB=f".{PYENV}/lib/python3.11/os.py",
    )
    assert found == {
        "CC": "gcc -pthread",
        "LDSHARED": "gcc -shared ",
        "PY_LDFLAGS": "-Wl,-O1 ",
        "CPPFLAGS": f"-I. -I{HOME}/include -I{PYENV}-other/include",
        "CONFIG_ARGS": f"'--prefix={HOME}' 'LDFLAGS='",
        "INCLUDEPY": f"{HOME}/include/python3.11",
        "prefix": HOME,
        "WHEEL_PKG_DIR": "",
        "HAVE_FORK": 1,
        "WASM_STDLIB": f".{HOME}/lib/python3.11/os.py",
    }


def test_build_variables_of_a_distribution() -> None:
    found = moved(
        "/usr",
        AR="x86_64-linux-gnu-gcc-ar",
        CC="x86_64-linux-gnu-gcc -pthread",
        CXX="/usr/bin/g++-12 -pthread",
        LDSHARED="x86_64-linux-gnu-gcc -shared -Wl,-O1",
        CFLAGS="-g -ffile-prefix-map=/build/python=. -I/usr/include/tirpc",
        INSTALL="/usr/bin/install -c",
        LIBDIR="/usr/lib/x86_64-linux-gnu",
        WHEEL_PKG_DIR="/usr/share/python-wheels/",
    )
    assert found == {
        "AR": "gcc-ar",
        "CC": "gcc -pthread",
        "CXX": "g++ -pthread",
        "LDSHARED": "gcc -shared -Wl,-O1",
        "CFLAGS": "-g -ffile-prefix-map=/build/python=. -I/usr/include/tirpc",  # the image's own
        "INSTALL": "/usr/bin/install -c",
        "LIBDIR": f"{HOME}/lib",
        "WHEEL_PKG_DIR": f"{HOME}/share/python-wheels",
    }


def test_files_with_build_variables() -> None:
    values = {"prefix": PYENV, "CC": "gcc", "B": 1, "A": f"-L{PYENV}/lib x"}
    wanted = {"prefix": HOME, "CC": "gcc", "B": 1, "A": "x"}
    text = f"# comment\nbuild_time_vars = {values!r}\n"
    module = moved_module(text, FOLDERS, prefix=PYENV, name="_sysconfigdata.py")
    assert ast.literal_eval(module.partition("= ")[2]) == wanted
    turned = f"# comment\nbuild_time_vars = {dict(reversed(values.items()))!r}\n"
    assert moved_module(turned, FOLDERS, prefix=PYENV, name="x") == module
    assert json.loads(moved_json(json.dumps(values), FOLDERS, prefix=PYENV, name="x.json")) == wanted
    makefile = f"prefix=\t{PYENV}\nCC=\t\tx86_64-linux-gnu-gcc\nA= -L{PYENV}/lib x\nall: $(CC)\n\tcc {PYENV}\n"
    assert moved_makefile(makefile, FOLDERS, prefix=PYENV) == (
        f"prefix=\t{HOME}\nCC=\t\tgcc\nA= x\nall: $(CC)\n\tcc {PYENV}\n"
    )


@pytest.mark.parametrize("text", ["", "build_time_vars = open('/etc/passwd')", "build_time_vars = [1]", "[]"])
def test_files_without_build_variables(text: str) -> None:
    for change in (moved_module, moved_json):
        with pytest.raises(IntegrityError, match=r"x\.py: the file does not define the build variables of Python"):
            change(text, FOLDERS, prefix=PYENV, name="x.py")


@pytest.mark.parametrize(
    ("changes", "facts", "message"),
    [
        ({"implementation": "pypy"}, program(), "is pypy, but only CPython can be copied"),
        ({}, program(needed=("libc.musl-x86_64.so.1",), interpreter="/lib/ld-musl-x86_64.so.1"), "is linked to musl"),
        ({}, program(needed=(), interpreter=None), "is statically linked"),
        ({"stdlib": "/src/cpython/Lib"}, program(), "is outside its prefix"),
        ({"stdlib": f"{PYENV}-2/lib/python3.11"}, program(), "is outside its prefix"),
    ],
)
def test_pythons_that_cannot_be_copied(changes: dict[str, str], facts: ElfFacts, message: str) -> None:
    assert not list(obstacles(INSTALL, program(), headers=True))
    problem, *more = obstacles(msgspec.structs.replace(INSTALL, **changes), facts, headers=True)
    assert (more, problem.file, message in problem.message) == ([], INSTALL.executable, True)
    assert problem.hint is not None
    assert "use a CPython" in problem.hint


def test_missing_headers_name_their_package() -> None:
    (problem,) = obstacles(INSTALL, program(), headers=False)
    assert "has no headers" in problem.message
    assert "apt-get install python3.11-dev" in (problem.hint or "")


def test_wanted_files() -> None:
    wanted = (
        "os.py",
        "asyncio/",
        "unittest/mock.py",
        "lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so",
        "lib-dynload/_sqlite3.so",
        "lib-dynload/nisolation.so",
        "ensurepip/_bundled/pip-23.2.1-py3-none-any.whl",
        "config-3.11-x86_64-linux-gnu/",
        "config-3.11-x86_64-linux-gnu/Makefile",
        "_sysconfigdata__linux_x86_64-linux-gnu.py",
        "EXTERNALLY-MANAGED",
        "lib2to3/pgen2/tokenize.py",
        "config.py",
    )
    unwanted = (
        "site-packages/",
        "site-packages/numpy/__init__.py",
        "dist-packages/",
        "__pycache__/os.cpython-311.pyc",
        "test/support/__init__.py",
        "unittest/test/",
        "tkinter/__init__.py",
        "idlelib/",
        "sitecustomize.py",
        "lib-dynload/_testcapi.so",
        "lib-dynload/xxlimited_35.so",
        "lib-dynload/_tkinter.cpython-311-x86_64-linux-gnu.so",
        "lib-dynload/nis.so",
        "config-3.11-x86_64-linux-gnu/libpython3.11.a",
        "config-3.11-x86_64-linux-gnu/libpython3.11.so",
        "distutils.pth",
    )
    assert [path for path in wanted if not is_wanted(path)] == []
    assert [path for path in unwanted if is_wanted(path)] == []


def test_modules_that_are_left_out() -> None:
    assert why_left_out(["libc.so.6", "libssl.so.3"], {}) is None
    assert (
        why_left_out(["libc.so.6", "libstdc++.so.6"], {}) == "needs libstdc++.so.6, which every system provides itself"
    )
    assert why_left_out(["libgcc_s.so.1"], {}) is not None
    assert why_left_out(["libx.so.1"], {"libx.so.1": "/y.so"}) == "needs libx.so.1, which this machine lacks"


def portable() -> Portable:
    def piece(place: str, **more: Any) -> Piece:
        return Piece(place=place, source=f"/host/{place}", digest=Digest("0" * 64), **more)

    return Portable(
        install=INSTALL,
        pieces=(
            piece("bin/python3.11", kind="program", needed=("libpython3.11.so.1.0", "libc.so.6", "libz.so.1")),
            piece("lib/python3.11/os.py"),
            piece("libc/ld-linux-x86-64.so.2", kind="loader"),
            piece("libc/libc.so.6", kind="glibc"),
            piece("libc/libm.so.6", kind="glibc"),
            piece("libc/libnss_files.so.2", kind="glibc"),
            piece("libs/libz-00000000.so.1", kind="elf", needed=("libc.so.6",), soname="libz.so.1"),
            piece("libs/libempty.so", kind="elf"),
        ),
        renamed={"libz.so.1": "libz-00000000.so.1"},
        left_out={},
        glibc="2.36",
    )


def test_changes_of_elf_files() -> None:
    made = portable()
    changes = {piece.place: change for piece in made.pieces if (change := change_of(made, piece, HOME)) is not None}
    path = (f"{HOME}/libc", f"{HOME}/libs")
    assert changes == {
        "bin/python3.11": ElfChange(
            rpath=path,
            replace_needed={"libz.so.1": "libz-00000000.so.1"},
            add_needed=("libc.so.6", "libm.so.6"),  # before an extension module can find other ones
            interpreter=f"{HOME}/libc/ld-linux-x86-64.so.2",
        ),
        "libs/libz-00000000.so.1": ElfChange(rpath=path, soname="libz-00000000.so.1"),
        "libs/libempty.so": ElfChange(rpath=()),
    }


def test_identity_is_that_of_the_content() -> None:
    made = portable()
    one, *rest = made.pieces
    elsewhere = msgspec.structs.replace(one, source="/another/place")
    other = msgspec.structs.replace(one, digest=Digest("1" * 64))
    moved_piece = msgspec.structs.replace(one, place="bin/python3.12")
    with_first = {
        name: msgspec.structs.replace(made, pieces=(piece, *rest)).id
        for name, piece in {"same": elsewhere, "other": other, "moved": moved_piece}.items()
    }
    newer = msgspec.structs.replace(made, install=msgspec.structs.replace(INSTALL, version="3.11.8"))
    assert with_first["same"] == made.id
    assert len({made.id, newer.id, with_first["other"], with_first["moved"]}) == 4


def test_folders_of_other_layouts() -> None:
    fedora = msgspec.structs.replace(INSTALL, prefix="/usr", stdlib="/usr/lib64/python3.13t")
    assert (library_folder(fedora), fedora.name) == ("lib64/python3.13t", "python3.13t")
