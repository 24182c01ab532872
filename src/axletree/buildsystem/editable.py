"""How a source tree becomes an editable install, and what a change of it or of its settings asks for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.buildsystem.ninja import rebuilt
from axletree.buildsystem.variables import names_compiler, starts_afresh
from axletree.recipe.toml import table_of, tables_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.buildsystem.era import Era
    from axletree.buildsystem.ninja import NinjaStep

Way = Literal["setup.py", "setuptools", "scikit-build-core", "cmake", "backend"]
"""``setup.py``: PyTorch's way to 2.13, a setup.py that can configure CMake alone; ``setuptools``: extensions that
setuptools compiles, or what its commands call; ``cmake``: no Python project; ``backend``: only the project's own
backend knows."""

PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
"""Files that say what is installed under which name: after a change of one the install is made again."""
SPLIT_VARIABLES = frozenset(
    {"BUILD_LIBTORCH_WHL", "BUILD_PYTHON_ONLY", "BUILD_LIBTORCHLESS", "LIBTORCH_LIB_PATH", "LIBTORCH_PACKAGE_NAME"}
)
"""By these PyTorch builds a part of itself. An editable tree is the whole."""

_MAKE_NOTHING = ("build.ninja", ".util")


def way_of(era: Era, texts: Mapping[str, str]) -> Way:
    """How a tree is made editable, by how it is built and the texts of its telling files."""
    if era.driver != "pep517":
        return era.driver
    backend = _backend(texts.get("pyproject.toml", ""))
    return "setuptools" if backend is None or backend.partition(".")[0] == "setuptools" else "backend"


def _backend(text: str) -> str | None:
    backend = table_of(tables_of(text), "build-system").get("build-backend")
    return None if backend is None else str(backend)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting that is another one than the folder was built with."""

    name: str
    """As :func:`settings_of` has it."""
    before: str | None
    now: str | None
    afresh: bool
    """What was compiled is of no use; else another configure is enough."""

    def __str__(self) -> str:
        """``USE_MAGMA: OFF -> ON``."""
        shown = ["unset" if value is None else value or "empty" for value in (self.before, self.now)]
        return f"{self.name.lstrip('$')}: {' -> '.join(shown)}"


def settings_of(
    *,
    environ: Mapping[str, str | None],
    config: Mapping[str, str],
    options: Mapping[str, str],
    tools: Mapping[str, Mapping[str, str]],
) -> dict[str, str]:
    """All that a build folder is made with, by name: ``$CFLAGS``, ``config.NAME``, ``-DNAME``, ``tool c++``."""
    found = {f"${name}": value for name, value in environ.items() if value is not None}
    found |= {f"config.{name}": str(value) for name, value in config.items()}
    found |= {f"-D{name.partition(':')[0]}": value for name, value in options.items()}
    found |= {f"tool {name}": " ".join(fingerprint.values()) for name, fingerprint in tools.items()}
    return dict(sorted(found.items()))


def changed_settings(before: Mapping[str, str], now: Mapping[str, str], *, pytorch: bool) -> tuple[Setting, ...]:
    """The settings that differ, by name."""
    names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return tuple(
        Setting(name=name, before=before.get(name), now=now.get(name), afresh=_afresh(name, pytorch=pytorch))
        for name in names
    )


def _afresh(name: str, *, pytorch: bool) -> bool:
    if name.startswith("$"):
        return starts_afresh(name[1:], pytorch=pytorch)
    return name.startswith("tool ") or (name.startswith("-D") and names_compiler(name[2:]))


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two listings of the code in a tree."""

    edited: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    """New or gone."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.edited or self.moved)


def compare_files(before: Mapping[str, Sequence[int]], now: Mapping[str, Sequence[int]]) -> Changes:
    """Compare path -> time and size, as they were noted after a build, with what they are."""
    both = before.keys() & now.keys()
    return Changes(
        edited=tuple(sorted(path for path in both if tuple(before[path]) != tuple(now[path]))),
        moved=tuple(sorted(before.keys() ^ now.keys())),
    )


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a build."""

    ran: int
    total: int
    """Steps of all builds in the folder that still count; 0 where nobody counts them."""


def count_steps(before: Mapping[str, NinjaStep], after: Mapping[str, NinjaStep]) -> Count:
    """What ninja did between two readings of its log. A step that makes several files is one.

    What CMake itself does is none: writing ``build.ninja``, running a target such as ``install``.
    """
    made = {path: step for path, step in after.items() if not path.endswith(_MAKE_NOTHING)}
    fresh = {made[path].command for path in rebuilt(before, made)}
    return Count(ran=len(fresh), total=len({step.command for step in made.values()}))


def redirect_target(text: str) -> str | None:
    """Where the redirect of scikit-build-core's editable install looks for what CMake installs.

    It is the last argument of the call that ends ``_editable_skbc_NAME.py`` (older versions: ``_NAME_editable.py``), or
    of its ``entrypoint`` from Python 3.15 on: a path from the folder of that file, empty for the folder itself.
    ``None`` where the file is none such.
    Source: ``scikit_build_core/resources/_editable_redirect.py``, 0.5 to 1.1.
    """
    try:
        body = ast.parse(text).body
        last = body[-1].body[-1] if body and isinstance(body[-1], ast.FunctionDef) else body[-1] if body else None
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
            call = last.value
            if isinstance(call.func, ast.Name) and call.func.id == "install" and call.args:
                target = ast.literal_eval(call.args[-1])
                return target if isinstance(target, str) else None
    except (SyntaxError, ValueError):
        return None
    return None
