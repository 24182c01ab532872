"""Changes to the tiny project, each with exactly the stages that it costs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.tiny import PATCH, Tiny, need_pythons

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY_AND_BEHIND = "lib bind[*] pack:libtiny audit:libtiny index:.[*] test:smoke:uv[*]"
"""All but the other package: a binding names the library and what it takes from it, not what is inside."""


OF_A_PYTHON = "environment:bind[C] environment:test[C] bind[C] pack:tiny[C] audit:tiny[C] index:.[C] test:smoke:uv[C]"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A change and what it costs."""

    name: str
    change: Callable[[Tiny], Tiny | None]
    """Changes a copy of the project; returns another way to call Axletree where that is the change."""
    planned: str = ""
    """Stages with a reason of their own; one star for A and B."""
    ran: str | None = None
    """Stages that really run; ``None``: not tried, since all that is behind has to."""
    says: str = ""
    """A part of the reason that the first planned stage gives."""


def touch_everything(tiny: Tiny) -> None:
    for path in tiny.folder.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


def other_user(tiny: Tiny) -> Tiny:
    """The same files seen by a user with another number: what is in a key cannot come from there."""
    command = ("unshare", "--user", "--map-user=1234", "--map-group=1234")
    if shutil.which("unshare") is None or subprocess.run([*command, "true"], check=False).returncode != 0:
        pytest.skip("user namespaces are not allowed here")
    return replace(tiny.with_environ(USER="somebody", LOGNAME="somebody"), prefix=command)


def moved(tiny: Tiny) -> Tiny:
    return replace(tiny, folder=Path(shutil.copytree(tiny.folder, tiny.home / "else where" / "copy")))


def relative(tiny: Tiny) -> Tiny:
    return replace(tiny, folder=Path(tiny.folder.name), cwd=tiny.folder.parent)


def reordered(tiny: Tiny) -> None:
    """Tables and keys in the opposite order; the order of axes is that of names only."""
    head, *tables = tiny.recipe.read_text().split("\n[")
    packages = [table for table in tables if table.startswith("packages")]
    rest = [table for table in tables if not table.startswith(("packages", "[patches", "axes"))]
    patches = [table for table in tables if table.startswith("[patches")]
    assert len(packages) == 2
    python, blas = next(table for table in tables if table.startswith("axes")).strip().splitlines()[1:]
    axes = f"axes]\n{blas}\n{python}\n"
    keys = "\n".join(reversed(head.strip().splitlines()))
    tiny.recipe.write_text("\n[".join([f"{keys}\n", *reversed(rest), *reversed(packages), *patches, axes]))


def resources(tiny: Tiny) -> None:
    tiny.change('tools = ["c++"]\npass-env', 'parallel = "jobs"\ntools = ["c++"]\npass-env')
    tiny.add('[stages.lib.resources]\nmemory = "300 MB"\nmemory-per-job = "100 MB"\ndisk = "10 MB"\n')
    tiny.add('[tests.smoke.resources]\nmemory = "300 MB"\n')


def wrapper(tiny: Tiny, text: str) -> Tiny:
    """Another ``c++`` first on PATH."""
    path = tiny.home / "bin" / "c++"
    path.parent.mkdir()
    path.write_text(text.replace("REAL", str(shutil.which("c++"))))
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return tiny.with_environ(PATH=f"{path.parent}:{tiny.variables()['PATH']}")


def other_path(tiny: Tiny) -> Tiny:
    return wrapper(tiny, '#!/bin/sh\nexec "REAL" "$@"\n')


def other_version(tiny: Tiny) -> Tiny:
    return wrapper(tiny, '#!/bin/sh\n[ "$*" = --version ] && exec echo "c++ (Elsewhere) 99.1"\nexec "REAL" "$@"\n')


def another_python(tiny: Tiny) -> None:
    third = need_pythons(3)[2]
    tiny.change(f'"{tiny.versions[1]}"]', f'"{tiny.versions[1]}", "{third}"]')
    tiny.lock(third)


def add_patch(tiny: Tiny, text: str, *, when: str = "") -> None:
    (tiny.folder / "patches" / "more.patch").write_text(text)
    tiny.change(
        '[[patches]]\nfile = "patches/base.patch"\n',
        f'[[patches]]\nfile = "patches/base.patch"\n[[patches]]\nfile = "patches/more.patch"\n{when}\n',
    )


def comment_patch(tiny: Tiny) -> None:
    add_patch(tiny, '--- a/tiny.cpp\n+++ b/tiny.cpp\n@@ -1,1 +1,2 @@\n+// Patched.\n extern "C" int tiny_answer() {\n')


def idle_patch(tiny: Tiny) -> None:
    add_patch(tiny, PATCH, when='when = { blas = "openblas" }')


def lose_result(tiny: Tiny) -> None:
    """Remove the record of one stage, as ``store gc`` does."""
    records = {path: json.loads(path.read_text()) for path in (tiny.store / "results").glob("*/*.json")}
    (path,) = (path for path, record in records.items() if record["stage"].startswith("pack:libtiny"))
    path.unlink()


def newer_code(tiny: Tiny) -> Tiny:
    """Axletree with another revision of one action."""
    code = (
        "import msgspec; from axletree.plan.actions.table import ACTIONS\n"
        "ACTIONS['pack'] = msgspec.structs.replace(ACTIONS['pack'], revision=99)\n"
        "from axletree.cli.main import main; main()"
    )
    return replace(tiny, program=(sys.executable, "-P", "-c", code))


def swapped(tiny: Tiny) -> tuple[str, str]:
    first, second = tiny.versions
    return f'"{first}", "{second}"', f'"{second}", "{first}"'


def add_note(tiny: Tiny) -> None:
    (tiny.source / "notes").mkdir()
    (tiny.source / "notes" / "today.txt").write_text("It rained.\n")


def add_source(tiny: Tiny) -> None:
    (tiny.source / "more.h").write_text("#define MORE 1\n")


def other_words(tiny: Tiny) -> None:
    """A requirement that the same wheel meets, locked anew."""
    tiny.change('["demo>=1"]', '["demo"]')
    for version in tiny.versions:
        tiny.lock(version, requires=["demo"])


def comment_lock(tiny: Tiny) -> None:
    (lock, *_) = sorted((tiny.folder / "tiny").glob("pylock.*.toml"))
    lock.write_text(f"# Checked by hand.\n{lock.read_text()}")


NOTHING = [
    Row(name="touch every file", change=touch_everything),
    Row(name="other working folder", change=lambda tiny: replace(tiny, cwd=tiny.home)),
    Row(name="relative path to the recipe", change=relative),
    Row(name="other home", change=lambda tiny: tiny.with_environ(HOME=str(tiny.folder), USER="other")),
    Row(name="other user", change=other_user),
    Row(name="copy of the folder elsewhere", change=moved),
    Row(
        name="compiler flags in the shell",
        change=lambda tiny: tiny.with_environ(
            CFLAGS="-O3", CXXFLAGS="-O3", CPPFLAGS="-DX", LDFLAGS="-s", CPATH="/x", LIBRARY_PATH="/x", MAKEFLAGS="-j9"
        ),
    ),
    Row(name="locale and time zone", change=lambda tiny: tiny.with_environ(LANG="de_DE.UTF-8", TZ="Asia/Tokyo")),
    Row(name="secret in the shell", change=lambda tiny: tiny.with_environ(UPLOAD_TOKEN="s3cr3t-s3cr3t")),
    Row(name="comment in the recipe", change=lambda tiny: tiny.add("# Nothing to see.\n")),
    Row(name="white space in the recipe", change=lambda tiny: tiny.change("[axes]\n", "\n\n[ axes ]   \n")),
    Row(name="other order in the recipe", change=reordered),
    Row(name="other order of axis values", change=lambda tiny: tiny.change(*swapped(tiny))),
    Row(name="test with another name", change=lambda tiny: tiny.change("[tests.smoke]", "[tests.fume]")),
    Row(name="recipe with another name", change=lambda tiny: tiny.change('name = "tiny"', 'name = "small"')),
    Row(name="resources", change=resources),
    Row(name="kept workspace", change=lambda tiny: tiny.change("pass-env =", "workspace = true\npass-env =")),
    Row(name="file that is excluded from the source", change=add_note),
    Row(name="patch that does not apply here", change=idle_patch),
    Row(name="same tool at another path", change=other_path),
    Row(name="comment in a lock", change=comment_lock),
    Row(name="other words for the same wheels", change=other_words),
    Row(name="axis value removed", change=lambda tiny: tiny.change(f', "{tiny.versions[1]}"]', "]")),
    Row(name="axis that no stage sees", change=lambda tiny: tiny.change("[axes]\n", '[axes]\nmood = ["good"]\n')),
]

CHANGES = [
    Row(
        name="comment in a test file",
        change=lambda tiny: tiny.edit("tests/check.py", "import demo\n", "import demo  # noqa\n"),
        planned="test:smoke:uv[*]",
        ran="test:smoke:uv[*]",
        says="tests/check.py",
    ),
    Row(
        name="test command",
        change=lambda tiny: tiny.change('"python check.py"', '"python -b check.py"'),
        planned="test:smoke:uv[*]",
        says="python -b check.py",
    ),
    Row(
        name="another installer",
        change=lambda tiny: tiny.change('installers = ["uv"]', 'installers = ["uv", "pip"]'),
        planned="test:smoke:pip[*]",
        says="not run yet",
    ),
    Row(
        name="passed variable set, same result",
        change=lambda tiny: tiny.with_environ(TINY_BONUS="0"),
        planned="lib",
        ran="lib",
        says="variable TINY_BONUS: (none) -> 0",
    ),
    Row(
        name="passed variable set, other result",
        change=lambda tiny: tiny.with_environ(TINY_BONUS="1"),
        planned="lib",
        ran=LIBRARY_AND_BEHIND,
        says="variable TINY_BONUS",
    ),
    Row(
        name="comment in a source",
        change=lambda tiny: tiny.edit("src/bind.cpp", "#include <Python.h>\n", "#include <Python.h>  // first\n"),
        planned="fetch",
        ran="fetch patch lib bind[*]",
        says="bind.cpp",
    ),
    Row(
        name="change in the library's source",
        change=lambda tiny: tiny.edit("src/tiny.cpp", "}\n", '}\nextern "C" int tiny_more() { return 1; }\n'),
        planned="fetch",
        ran=f"fetch patch {LIBRARY_AND_BEHIND}",
        says="tiny.cpp",
    ),
    Row(
        name="change in the binding's source",
        change=lambda tiny: tiny.edit("src/bind.cpp", "The answer.", "Another answer."),
        planned="fetch",
        ran="fetch patch lib bind[*] pack:tiny[*] audit:tiny[*] index:.[*] test:smoke:uv[*]",
        says="bind.cpp",
    ),
    Row(
        name="new file in the source",
        change=add_source,
        planned="fetch",
        ran="fetch patch lib bind[*]",
        says="more.h",
    ),
    Row(
        name="lock of one environment",
        change=lambda tiny: tiny.lock(tiny.versions[0], demo="2.0"),
        planned="environment:test[A]",
        ran="environment:test[A] test:smoke:uv[A]",
        says="demo",
    ),
    Row(name="patch added", change=comment_patch, planned="patch", ran="patch lib bind[*]", says="more.patch"),
    Row(
        name="words in a patch",
        change=lambda tiny: tiny.edit("patches/base.patch", "one more", "higher"),
        planned="patch",
        ran="patch",
        says="base.patch",
    ),
    Row(
        name="content of a patch",
        change=lambda tiny: tiny.edit("patches/base.patch", "base = 42", "base = 43"),
        planned="patch",
        ran=f"patch {LIBRARY_AND_BEHIND}",
        says="base.patch",
    ),
    Row(
        name="another version of a tool",
        change=other_version,
        planned="lib bind[*]",
        ran="lib bind[*]",
        says="99.1",
    ),
    Row(
        name="command of a stage",
        change=lambda tiny: tiny.change("mkdir $AXLETREE_OUT/lib", "mkdir -p $AXLETREE_OUT/lib"),
        planned="lib",
        ran="lib",
        says="mkdir -p",
    ),
    Row(
        name="override for one variant",
        change=lambda tiny: tiny.add(
            f'[[override]]\nwhen = {{ python = "{tiny.versions[1]}" }}\nstage = "bind"\nenv = {{ EXTRA = "1" }}\n'
        ),
        planned="bind[B]",
        ran="bind[B]",
        says="env.EXTRA",
    ),
    Row(
        name="axis value added",
        change=another_python,
        planned=OF_A_PYTHON,
        ran=OF_A_PYTHON,
        says="not run yet",
    ),
    Row(
        name="axis declared by one more stage",
        change=lambda tiny: tiny.change('axes = ["blas"]', 'axes = ["python", "blas"]'),
        planned="lib[*] pack:libtiny[*] audit:libtiny[*]",
        ran="lib[*] pack:libtiny[*] audit:libtiny[*]",
        says="not run yet",
    ),
    Row(
        name="summary",
        change=lambda tiny: tiny.change("A tiny project.", "A small project."),
        planned="pack:libtiny pack:tiny[*]",
        says="A small project.",
    ),
    Row(
        name="version",
        change=lambda tiny: tiny.change('version = "1.0"', 'version = "1.1"'),
        planned="pack:libtiny pack:tiny[*] test:smoke:uv[*]",
        says="package.version: 1.0 -> 1.1",
    ),
    Row(
        name="files of a package, the same ones",
        change=lambda tiny: tiny.change('prefix = "libtiny"', 'prefix = "libtiny"\nfiles = ["lib/*.so"]'),
        planned="pack:libtiny",
        ran="pack:libtiny",
        says="lib/*.so",
    ),
    Row(
        name="prefix of a package",
        change=lambda tiny: tiny.change('prefix = "libtiny"', 'prefix = "elsewhere"'),
        planned="pack:libtiny",
        says="package.prefix: libtiny -> elsewhere",
    ),
    Row(
        name="local label of a package",
        change=lambda tiny: tiny.change('prefix = "libtiny"', 'prefix = "libtiny"\nlocal = "{blas}"'),
        planned="pack:libtiny test:smoke:uv[*]",
        says="package.version: 1.0 -> 1.0+mkl",
    ),
    Row(
        name="build tag of a package",
        change=lambda tiny: tiny.change('prefix = "libtiny"', 'prefix = "libtiny"\nbuild-tag = 3'),
        planned="pack:libtiny",
        says="package.build_tag: (none) -> 3",
    ),
    Row(
        name="requirement of a package",
        change=lambda tiny: tiny.change(
            'requires = ["libtiny=={version}"]', 'requires = ["libtiny=={version}", "demo"]'
        ),
        planned="pack:tiny[*]",
        says="package.requires: + demo",
    ),
    Row(
        name="what the audit is told, the same verdict",
        change=lambda tiny: tiny.change('["libtiny.so"]', '["libtiny.so*"]'),
        planned="audit:tiny[*]",
        ran="audit:tiny[*]",
        says="libtiny.so*",
    ),
    Row(
        name="index root called otherwise",
        change=lambda tiny: tiny.change("[packages.tiny]\n", 'index = "cpu"\n[packages.tiny]\nindex = "cpu"\n'),
        planned="index:cpu[*]",
        ran="index:cpu[*]",
    ),
    Row(
        name="date",
        change=lambda tiny: tiny.with_environ(SOURCE_DATE_EPOCH="1000000000"),
        planned="lib bind[*] pack:libtiny pack:tiny[*] index:.[*]",
        says="SOURCE_DATE_EPOCH: 315532800 -> 1000000000",
    ),
    Row(
        name="result lost",
        change=lose_result,
        planned="pack:libtiny",
        ran="pack:libtiny",
        says="no longer in the store",
    ),
    Row(
        name="newer code of an action",
        change=newer_code,
        planned="pack:libtiny pack:tiny[*]",
        ran="pack:libtiny pack:tiny[*]",
        says="the code of action 'pack' is newer: revision",
    ),
]
