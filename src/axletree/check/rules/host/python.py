"""Rules about Python and what is installed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.backends.bounds import numbers
from axletree.check.engine import Found, Rule, fires, silent
from axletree.check.host.examined import Wish
from axletree.check.host.python import Packaging, Pyenv, Torch
from axletree.check.rules.host.sample import HEALTHY, PYTHON, on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.host.examined import Examined
    from axletree.check.host.python import Interpreter

_NUMPY_2 = (2, 3)
"""First torch release whose wheels are built for numpy 2."""


def _first(facts: Examined) -> Interpreter | None:
    return next(iter(facts.host.python.interpreters or ()), None)


def _headers(facts: Examined) -> Iterator[Found]:
    python = _first(facts)
    if python is not None and python.headers is False:
        release = ".".join((python.version or "3").split(".")[:2])
        message = f"Python {python.version} has no Python.h in {python.include or 'its include folder'}"
        fix = (
            f"$ apt-get install python{release}-dev\nor use a Python that includes its headers, from conda or "
            f"`uv python install {release}`"
        )
        yield Found(python.path, message, fix=fix)


def _broken(facts: Examined) -> Iterator[Found]:
    for python in facts.host.python.interpreters or ():
        if python.version is None and "python3" in python.names:
            why = python.sources.get("version", "")
            yield Found(python.path, "python3 does not start", evidence=(why,) if why else ())


def _missing(facts: Examined) -> Iterator[Found]:
    for version in facts.wish.pythons:
        message = f"an environment needs Python {version}, which is not installed on this machine"
        yield Found("Python", message, fix=f"$ uv python install {version}")


def _other_pip(facts: Examined) -> Iterator[Found]:
    python, packaging = _first(facts), facts.host.python.packaging
    if python is None or packaging is None or not packaging.pip_python or not python.version:
        return
    if numbers(packaging.pip_python)[:2] != numbers(python.version)[:2]:
        message = f"pip installs packages for Python {packaging.pip_python}, but python3 is Python {python.version}"
        yield Found(packaging.pip.path if packaging.pip else "pip", message)


def _managed(facts: Examined) -> Iterator[Found]:
    python = _first(facts)
    if python is not None and python.externally_managed:
        yield Found(
            python.path,
            f"Python {python.version} belongs to the distribution, so pip refuses to install packages into it",
        )


def _venv(facts: Examined) -> Iterator[Found]:
    pythons = facts.host.python
    if pythons.venv not in (None, "none") and pythons.venv_on_path is False:
        message = f"VIRTUAL_ENV is {pythons.venv}, but a different Python comes first on PATH"
        yield Found("PATH", message, fix=f"$ . {pythons.venv}/bin/activate")


def _pyenv(facts: Examined) -> Iterator[Found]:
    pyenv = facts.host.python.pyenv
    if pyenv is not None and pyenv.missing and pyenv.shims_first:
        message = (
            f"pyenv is set to use {', '.join(pyenv.missing)} ({pyenv.selected_by or 'selected'}), which is not "
            "installed"
        )
        yield Found(pyenv.selected_by or "pyenv", message, fix=f"$ pyenv install {pyenv.missing[0]}")


def _numpy(facts: Examined) -> Iterator[Found]:
    for python in (facts.host.python.interpreters or ())[:1]:
        numpy, torch = (python.packages or {}).get("numpy"), python.torch
        if (
            numpy
            and torch is not None
            and torch.version
            and numbers(numpy)[:1] >= (2,)
            and numbers(torch.version)[:2] < _NUMPY_2
        ):
            message = f"torch {torch.version} was built for NumPy 1, but NumPy {numpy} is installed"
            yield Found(python.path, message)


def _python(**fields: object) -> dict[str, object]:
    return {"interpreters": (msgspec.structs.replace(PYTHON, **fields),)}


PYTHON_RULES: tuple[Rule[Examined], ...] = (
    Rule(
        id="python/headers-missing",
        severity="warning",
        title="Python's headers are missing",
        references=("Python, sysconfig", "Debian, python3-dev"),
        why="Extension modules do not compile: `Python.h: No such file or directory`. Environments with their own "
        "Python, such as Axletree's, are not affected.",
        fix="install the headers",
        check=_headers,
        cases=lambda: (
            fires("Debian without python3-dev", on(python=_python(headers=False))),
            silent("there", on()),
        ),
    ),
    Rule(
        id="python/broken",
        severity="error",
        title="python3 does not start",
        references=("PEP 394",),
        why="Nearly every build runs python3.",
        fix="reinstall this Python, or remove its folder from PATH",
        check=_broken,
        cases=lambda: (
            fires("a dangling link", on(python=_python(version=None))),
            silent("3.12", on()),
        ),
    ),
    Rule(
        id="python/missing",
        severity="error",
        title="A Python version that the build needs is not installed",
        references=("recipe key `environments.NAME.python`",),
        why="Environments with this Python version cannot be created.",
        fix="install it with uv, pyenv or the distribution's package manager",
        check=_missing,
        cases=lambda: (
            fires("3.14t", on(wish=Wish(pythons=("3.14t",)))),
            silent("all versions installed", on()),
        ),
    ),
    Rule(
        id="python/pip-of-another",
        severity="warning",
        title="pip belongs to a different Python than python3",
        references=('pip, user guide, "Running pip"',),
        why="Python cannot import the packages that pip installs, and wheels are tagged for the wrong version.",
        fix="run pip with the Python that you want to use:\n$ python3 -m pip install ...",
        check=_other_pip,
        cases=lambda: (
            fires("pip for Python 3.9", on(python={"packaging": Packaging(pip_python="3.9")})),
            silent("pip for Python 3.12", on()),
        ),
    ),
    Rule(
        id="python/externally-managed",
        severity="info",
        title="The distribution manages this Python",
        references=("PEP 668",),
        why="pip stops with `externally-managed-environment` (PEP 668), and overriding this can break the system's "
        "own programs.",
        fix="$ python3 -m venv .venv && . .venv/bin/activate",
        check=_managed,
        cases=lambda: (
            fires("Debian 12", on(python=_python(externally_managed=True))),
            silent("a virtual environment", on()),
        ),
    ),
    Rule(
        id="python/venv-not-first",
        severity="warning",
        title="The active virtual environment's Python is not first on PATH",
        references=("Python, venv",),
        why="`python` does not use the packages that were installed in the environment.",
        fix="activate the environment again",
        check=_venv,
        cases=lambda: (
            fires("PATH changed after activation", on(python={"venv_on_path": False})),
            silent("first", on()),
        ),
    ),
    Rule(
        id="python/pyenv-missing",
        severity="error",
        title="pyenv is set to a Python version that is not installed",
        references=('pyenv, README, "Understanding Python version selection"',),
        why="Each `python` command fails with a pyenv message.",
        fix="install that version, or choose a different one: pyenv global ...",
        check=_pyenv,
        cases=lambda: (
            fires(
                "3.8.1 from a .python-version file",
                on(
                    python={
                        "pyenv": Pyenv(
                            root="~/.pyenv",
                            shims_first=True,
                            selected=("3.8.1",),
                            selected_by=".python-version",
                            missing=("3.8.1",),
                        )
                    }
                ),
            ),
            silent("no pyenv", on(python={"pyenv": Pyenv(root="none")})),
        ),
    ),
    Rule(
        id="python/numpy-2",
        severity="error",
        title="The installed torch was built for NumPy 1",
        references=("NumPy 2.0 migration guide", "pytorch/pytorch, 2.3 release notes"),
        why="torch prints a warning when it is imported, and every conversion from or to NumPy fails with `Numpy is "
        "not available`.",
        fix="$ pip install 'numpy<2'\nor install torch 2.3 or later",
        check=_numpy,
        cases=lambda: (
            fires("torch 2.2 with NumPy 2", on(python=_python(torch=Torch(path="~/torch", version="2.2.2")))),
            silent("torch 2.6 with NumPy 2", on(python=_python(torch=Torch(path="~/torch", version="2.6.0")))),
            silent("torch not installed", on(HEALTHY)),
        ),
    ),
)
"""Rules about :class:`~axletree.check.host.examined.Examined`: Python."""
