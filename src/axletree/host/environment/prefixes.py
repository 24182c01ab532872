"""What an installed prefix brings: a virtual environment with its wheels of compilers and libraries, a conda prefix."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from axletree.core.errors import StageError
from axletree.environment.delta import Delta
from axletree.environment.layers import Layer, cuda_layer, setting
from axletree.host.run import finish
from axletree.host.tools import SYSTEM_PATH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SCRIPTS = "etc/conda/activate.d"
_ASK = """
for __script in "$@"; do . "$__script" >&2 || exit 1; done
unset __script
exec env -0
"""
_SHELL_OWN = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})


def venv_layers(prefix: Path, links: Path) -> tuple[Layer, ...]:
    """A virtual environment, and NVIDIA's wheels in it as the toolkit that they are.

    Wheels have libraries under their SONAMEs only (``libcudart.so.13``, ``libmkl_rt.so.3``); what links by ``-lcudart``
    wants the name without a number. The environment's own ``lib``, where ``mkl`` is, gets links of such names itself:
    ``MKLConfig.cmake`` and MKL's pkg-config files look nowhere else. For NVIDIA's wheels, each in a folder of its own,
    ``links`` gets them in its ``lib``, where CMake finds them too.
    """
    origin = "virtual environment"
    name_plainly([prefix / "lib"], prefix / "lib")
    shared = _there(prefix / "lib", "lib*.so*")
    own = Layer(
        origin=origin,
        bin=(str(prefix / "bin"),),
        include=_there(prefix / "include", "**/*.h*"),
        link=shared or _there(prefix / "lib", "lib*.a"),
        run=shared,
        cmake=(str(prefix),),
        settings=(
            setting("VIRTUAL_ENV", str(prefix), origin),
            Delta(variable="PYTHONHOME", operation="unset", origin=origin),
            *_mkl(prefix, origin),
        ),
    )
    return (own, *_nvidia(prefix, links))


def name_plainly(folders: Iterable[Path], place: Path) -> None:
    """Have a link ``libx.so`` in a place for each ``libx.so.N`` that has none beside it."""
    for folder in folders:
        for library in sorted(folder.glob("lib*.so.*")):
            if re.fullmatch(r"[\d.]+", library.name.partition(".so.")[2]) is None:
                continue
            name = place / f"{library.name.partition('.so.')[0]}.so"
            if not (folder / name.name).exists() and not name.is_symlink():
                name.symlink_to(library.name if place == folder else library)


def _mkl(prefix: Path, origin: str) -> Iterator[Delta]:
    """Where MKL is, for who looks by the variable that Intel's own script sets: not the one of the system."""
    if (prefix / "include" / "mkl.h").exists():
        yield setting("MKLROOT", str(prefix), origin)


def _nvidia(prefix: Path, links: Path) -> Iterator[Layer]:
    roots = sorted(prefix.glob("lib/python*/site-packages/nvidia/*"))
    compiler = next((root for root in roots if (root / "bin" / "nvcc").exists()), None)
    if compiler is None:
        return
    libraries = [folder for root in roots for folder in (root / "lib", root / "lib64") if folder.is_dir()]
    (links / "lib").mkdir(parents=True, exist_ok=True)
    name_plainly(libraries, links / "lib")
    names = tuple(map(str, libraries))
    include = tuple(str(root / "include") for root in roots if (root / "include").is_dir())
    origin = "CUDA wheels"
    layer = cuda_layer(str(compiler), include=include, link=(*names, str(links / "lib")), run=names, origin=origin)
    yield replace(layer, cmake=(*layer.cmake, str(links)))


def conda_layers(prefix: Path, *, scripts: bool = True) -> tuple[Layer, ...]:
    """A conda prefix, with what the scripts of its packages set.

    Args:
        prefix: where it is.
        scripts: whether to run these.

    Raises:
        StageError: a script fails.
    """
    origin = "conda environment"
    targets = sorted(prefix.glob("targets/*-linux"))
    include = [str(prefix / "include"), *(str(target / "include") for target in targets)]
    lib = [str(prefix / "lib"), *(str(target / "lib") for target in targets)]
    return (
        Layer(
            origin=origin,
            bin=(str(prefix / "bin"),),
            include=tuple(folder for folder in include if Path(folder).is_dir()),
            link=tuple(folder for folder in lib if Path(folder).is_dir()),
            run=tuple(folder for folder in lib if Path(folder).is_dir()),
            cmake=(str(prefix),),
            settings=(
                setting("CONDA_PREFIX", str(prefix), origin),
                setting("CONDA_DEFAULT_ENV", str(prefix), origin),
                Delta(variable="PYTHONHOME", operation="unset", origin=origin),
                *_compiler(prefix, origin),
                *_mkl(prefix, origin),
                *(_scripted(prefix) if scripts else ()),
            ),
        ),
    )


def gcc_folder(prefix: Path) -> str | None:
    """Where the parts of a conda prefix's GCC are, if it has one."""
    found = sorted(prefix.glob("lib/gcc/*-conda-linux-gnu/*/crtbegin.o"))
    return str(found[-1].parent) if found else None


def _compiler(prefix: Path, origin: str) -> Iterator[Delta]:
    """Where CUDA is, for who looks by variables, if it is in the prefix."""
    if (prefix / "bin" / "nvcc").exists():
        yield setting("CUDA_HOME", str(prefix), origin)
        yield setting("CUDA_PATH", str(prefix), origin)


def _scripted(prefix: Path) -> Iterator[Delta]:
    """What activation scripts and variables of packages set, found by running them once in a clean shell.

    The scripts are those of conda ("Managing environments: saving environment variables" and activate.d); so their
    effect is a table like everything else, and can be undone in any shell.
    """
    for file, variables in _stated(prefix):
        for name, value in variables.items():
            yield setting(name, value, f"env_vars.d/{file.name}")
    before = {
        "PATH": ":".join([str(prefix / "bin"), *SYSTEM_PATH]),
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C.UTF-8",
        "CONDA_PREFIX": str(prefix),
        "CONDA_DEFAULT_ENV": str(prefix),
        "CONDA_SHLVL": "1",
    }
    for script in sorted((prefix / _SCRIPTS).glob("*.sh")):
        after = _after(script, before)
        for name in sorted(after.keys() | before.keys()):
            if name in _SHELL_OWN or after.get(name) == before.get(name):
                continue
            yield _change(name, before.get(name), after.get(name), f"{_SCRIPTS}/{script.name}")
        before = {name: value for name, value in after.items() if name not in _SHELL_OWN}


def activated_by_scripts(prefix: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Variables once the scripts of a prefix's packages ran, as in the shell of somebody who activates it.

    Raises:
        StageError: a script fails.
    """
    result = dict(variables)
    for _, stated in _stated(prefix):
        result |= stated
    for script in sorted((prefix / _SCRIPTS).glob("*.sh")):
        result = {name: value for name, value in _after(script, result).items() if name not in _SHELL_OWN}
    return result


def _stated(prefix: Path) -> Iterator[tuple[Path, dict[str, str]]]:
    """Files of packages that state variables, and these."""
    for file in sorted((prefix / "etc/conda/env_vars.d").glob("*.json")):
        found = json.loads(file.read_text(encoding="utf-8"))
        yield file, {name: str(value) for name, value in found.items()}


def _after(script: Path, before: Mapping[str, str]) -> dict[str, str]:
    command = ["bash", "--norc", "--noprofile", "-c", _ASK, "bash", str(script)]
    done = finish(command, environ=before)
    if done.code:
        raise StageError(f"{script} failed with {done.ending(1)}")
    pairs = (entry.partition("=") for entry in done.text.split("\0") if entry)
    return {name: value for name, _, value in pairs}


def _change(name: str, before: str | None, after: str | None, origin: str) -> Delta:
    if after is None:
        return Delta(variable=name, operation="unset", origin=origin)
    if before and after.endswith(f":{before}"):
        return Delta(variable=name, operation="prepend", value=after.removesuffix(f":{before}"), origin=origin)
    if before and after.startswith(f"{before}:"):
        return Delta(variable=name, operation="append", value=after.removeprefix(f"{before}:"), origin=origin)
    return setting(name, after, origin)


def _there(folder: Path, pattern: str) -> tuple[str, ...]:
    """A folder, where it holds something of the kind."""
    return (str(folder),) if next(folder.glob(pattern), None) is not None else ()
