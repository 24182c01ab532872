"""Interpreters that a build would start, and what is installed in them; virtual environments, conda, pyenv."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import msgspec
from packaging.utils import canonicalize_name

from axletree.check.host.python import Conda, Interpreter, Pyenv, Pythons, Torch
from axletree.host.facts.access import Seen, find_tool
from axletree.host.facts.names import host_names
from axletree.host.facts.packaging import packaging_facts

if TYPE_CHECKING:
    from axletree.host.facts.access import Access

_MARK = "axletree-facts:"
_QUESTION = """
import os, sys, sysconfig
def libraries():
    get = sysconfig.get_config_var
    for folder in (get("LIBDIR"), get("LIBPL")):
        for name in (get("LDLIBRARY"), get("INSTSONAME"), get("LIBRARY")):
            if folder and name:
                yield os.path.join(folder, name)
import json
paths = sysconfig.get_paths()
folders = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
print("axletree-facts:" + json.dumps({
    "version": "%d.%d.%d" % sys.version_info[:3],
    "implementation": sys.implementation.name,
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "soabi": sysconfig.get_config_var("SOABI") or "",
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "include": paths["include"],
    "stdlib": paths["stdlib"],
    "library": next((path for path in libraries() if os.path.exists(path)), "none"),
    "site_packages": paths["purelib"],
    "folders": folders,
}))
"""
_CLIENTS = ("conda", "mamba", "micromamba", "pixi")


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What an interpreter says of itself."""

    version: str
    implementation: str
    free_threaded: bool
    soabi: str
    prefix: str
    base_prefix: str
    include: str
    stdlib: str
    library: str
    site_packages: str
    folders: list[str]


def python_facts(access: Access) -> Pythons:
    """Interpreters, environments, and where packages come from."""
    seen = Seen()
    with ThreadPoolExecutor(max_workers=4) as pool:
        settings = pool.submit(packaging_facts, access)
        programs = _programs(access)
        answers = [pool.submit(_interpreter, access, path, names) for path, names in programs.items()]
        conda = pool.submit(_conda, access)
        seen.put(
            "interpreters",
            "python3 and python on PATH, and Axletree's own Python",
            tuple(each.result() for each in answers),
        )
        seen.put("packaging", "see its own sources", settings.result())
        seen.put("conda", "see its own sources", conda.result())
    seen.put("pyenv", "see its own sources", _pyenv(access))
    venv = access.environ.get("VIRTUAL_ENV")
    seen.put("venv", "VIRTUAL_ENV", venv or "none")
    if venv:
        first = access.which("python")
        on_path = first is not None and first.rpartition("/")[0] == f"{venv.rstrip('/')}/bin"
        seen.put("venv_on_path", "VIRTUAL_ENV and the first python on PATH", on_path)
    else:
        seen.put("venv_on_path", "VIRTUAL_ENV is not set", None)
    return Pythons(**seen.values, sources=seen.sources)


def _programs(access: Access) -> dict[str, tuple[str, ...]]:
    """Path -> names that lead to it; a link counts as itself, since a virtual environment is one."""
    found: dict[str, list[str]] = {}
    for name in ("python3", "python"):
        path = access.which(name)
        if path is not None:
            folder = path.rpartition("/")[0]
            same = next(
                (each for each in found if each.rpartition("/")[0] == folder and _one(access, each, path)), path
            )
            found.setdefault(same, []).append(name)
    if access.root == Path("/"):
        folder = str(Path(sys.executable).parent)
        beside = (each for each in found if each.rpartition("/")[0] == folder and _one(access, each, sys.executable))
        found.setdefault(next(beside, sys.executable), []).append("axletree")
    return {path: tuple(names) for path, names in found.items()}


def _one(access: Access, first: str, second: str) -> bool:
    """Whether two names in one folder start the same: links to one file, or shims of one text."""
    if access.real(first) == access.real(second):
        return True
    texts = [access.peek(path) for path in (first, second)]
    return texts[0] == texts[1] and (texts[0] or "").startswith("#!")


def _interpreter(access: Access, path: str, names: tuple[str, ...]) -> Interpreter:
    seen = Seen()
    seen.put("names", "PATH" if names != ("axletree",) else "the Python that runs Axletree", names)
    seen.put("path", "PATH" if names != ("axletree",) else "the Python that runs Axletree", path)
    said = access.ask(path, "-I", "-c", _QUESTION, seconds=20, cwd=_folder(access))
    line = next((line for line in said.out.splitlines() if line.startswith(_MARK)), None)
    try:
        answer = msgspec.json.decode(line.removeprefix(_MARK), type=_Answer) if line else None
    except msgspec.MsgspecError:
        answer = None
    if answer is None:
        seen.put("version", f"{path.rpartition('/')[2]} -I -c ...: {said.trouble}", None)
        seen.rest(Interpreter, "it cannot be run")
        return Interpreter(**seen.values, sources=seen.sources)
    for field in ("version", "implementation", "free_threaded", "soabi", "prefix", "base_prefix", "include", "library"):
        seen.put(field, "its sys and sysconfig modules", getattr(answer, field))
    seen.put("site_packages", "its sysconfig module", answer.site_packages)
    seen.put("virtual", "whether its prefix differs from its base prefix", answer.prefix != answer.base_prefix)
    seen.put("conda", "conda-meta in its base prefix", access.exists(f"{answer.base_prefix}/conda-meta"))
    marker = f"{answer.stdlib}/EXTERNALLY-MANAGED"
    managed = answer.prefix == answer.base_prefix and access.exists(marker)
    seen.put("externally_managed", f"EXTERNALLY-MANAGED in {answer.stdlib}, outside virtual environments", managed)
    seen.put("headers", f"{answer.include}/Python.h", access.is_file(f"{answer.include}/Python.h"))
    shadowing = [name for name in ("PYTHONPATH", "PYTHONHOME") if access.environ.get(name)]
    seen.put("isolated", "PYTHONPATH and PYTHONHOME", not shadowing)
    packages = installed_packages(access, answer.folders)
    seen.put("packages", "the names of *.dist-info and *.egg-info in its folders", packages)
    torch = next((torch for folder in answer.folders if (torch := _torch(access, folder)) is not None), None)
    seen.put("torch", "torch/version.py in its folders" + ("" if torch else ": not found"), torch)
    return Interpreter(**seen.values, sources=seen.sources)


def _folder(access: Access) -> Path | None:
    """Where an interpreter is asked: pyenv's shims choose by the working folder."""
    folder = access.path(access.cwd)
    return folder if access.root == Path("/") and folder.is_dir() else None


def installed_packages(access: Access, folders: list[str]) -> dict[str, str]:
    """Version of each distribution in some folders that builds or GPU libraries depend on; the first folder wins."""
    found: dict[str, str] = {}
    table = host_names()
    telling = re.compile(rf"(?:{'|'.join(table.python_families)})(?:-.*|\w*)?|{'|'.join(table.python_packages)}")
    for folder in folders:
        for entry in access.names(folder):
            match = re.fullmatch(r"([A-Za-z0-9._]+)-([^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info", entry)
            if match:
                name = canonicalize_name(match[1])
                if telling.fullmatch(name):
                    found.setdefault(name, match[2])
    return dict(sorted(found.items()))


def _torch(access: Access, folder: str) -> Torch | None:
    text = access.peek(f"{folder}/torch/version.py")
    if text is None:
        return None
    seen = Seen()
    seen.put("path", "torch/version.py", f"{folder}/torch")

    def stated(name: str) -> str | None:
        found = re.search(rf"^{name}(?:\s*:[^=]*)?\s*=\s*(.+)$", text, re.MULTILINE)
        return None if found is None else found[1].strip().strip("'\"")

    for field, name in (("version", "__version__"), ("cuda", "cuda"), ("hip", "hip")):
        value = stated(name)
        seen.put(field, "torch/version.py", "none" if value == "None" else value)
    debug = stated("debug")
    seen.put("debug", "torch/version.py", None if debug is None else debug == "True")
    seen.put("cxx11_abi", *_abi(access, f"{folder}/torch"))
    return Torch(**seen.values, sources=seen.sources)


def _abi(access: Access, folder: str) -> tuple[str, bool | None]:
    """Where a torch says which ABI of libstdc++ it has, and whether it is the new one; later ones know no other."""
    abi = re.search(
        r"_GLIBCXX_USE_CXX11_ABI=([01])", access.peek(f"{folder}/share/cmake/Torch/TorchConfig.cmake") or ""
    )
    if abi is not None:
        return "share/cmake/Torch/TorchConfig.cmake", abi[1] == "1"
    text = access.peek(f"{folder}/__init__.py") or ""
    always = re.search(
        r"^def compiled_with_cxx11_abi\(\)[^\n]*:\n(?:\s+r?\"\"\"[^\"]*\"\"\"\n)?\s+return True$", text, re.MULTILINE
    )
    if always:
        return "compiled_with_cxx11_abi in torch/__init__.py", True
    return "neither TorchConfig.cmake nor torch/__init__.py specifies it", None


def _conda(access: Access) -> Conda:
    seen = Seen()
    environ = access.environ
    prefix = environ.get("CONDA_PREFIX") or "none"
    seen.put("prefix", "CONDA_PREFIX", prefix)
    level = environ.get("CONDA_SHLVL", "")
    seen.put("level", "CONDA_SHLVL", int(level) if level.isdigit() else None)
    below = [environ[name] for number in range(1, 20) if (name := f"CONDA_PREFIX_{number}") in environ]
    seen.put("stack", "CONDA_PREFIX_1 and so on", tuple(below))
    folders = [part.rstrip("/") for part in environ.get("PATH", "").split(":") if part.rstrip("/").endswith("/bin")]
    on_path = tuple(part for part in folders if access.exists(str(PurePosixPath(part).parent / "conda-meta")))
    seen.put("on_path", "folders on PATH that are next to a conda-meta folder", on_path)
    client = next((tool for name in _CLIENTS if (tool := find_tool(access, name)) is not None), None)
    seen.put("client", "conda, mamba, micromamba, pixi on PATH" + ("" if client else ": not found"), client)
    if prefix == "none":
        seen.put("packages", "no environment is active", None)
        seen.put("scripts", "no environment is active", None)
    else:
        packages: dict[str, str] = {}
        telling = re.compile(rf"(?:{'|'.join(host_names().conda_packages)})(?:[-_.\d].*)?")
        for entry in access.names(f"{prefix}/conda-meta"):
            parts = entry.removesuffix(".json").rsplit("-", 2)
            if entry.endswith(".json") and len(parts) == 3 and telling.fullmatch(parts[0]):
                packages[parts[0]] = f"{parts[1]} {parts[2]}"
        seen.put("packages", "the names of files in conda-meta", packages)
        scripts = access.names(f"{prefix}/etc/conda/activate.d")
        seen.put("scripts", "etc/conda/activate.d", tuple(name for name in scripts if name.endswith(".sh")))
    return Conda(**seen.values, sources=seen.sources)


def _pyenv(access: Access) -> Pyenv:
    seen = Seen()
    root = access.environ.get("PYENV_ROOT") or f"{access.home}/.pyenv"
    if not access.exists(f"{root}/versions"):
        seen.put("root", "PYENV_ROOT and ~/.pyenv", "none")
        seen.rest(Pyenv, "pyenv is not installed")
        return Pyenv(**seen.values, sources=seen.sources)
    seen.put("root", "PYENV_ROOT or ~/.pyenv", root)
    first = access.which("python3")
    seen.put("shims_first", "the first python3 on PATH", first is not None and first.startswith(f"{root}/shims/"))
    text, source = access.environ.get("PYENV_VERSION", "").replace(":", " "), "PYENV_VERSION"
    if not text.strip():
        cwd = PurePosixPath(access.cwd)
        local = next(
            (f"{each}/.python-version" for each in (cwd, *cwd.parents) if access.is_file(f"{each}/.python-version")), ""
        )
        source = local or f"{root}/version"
        text = access.peek(source) or "system"
    selected = tuple(text.split())
    installed = access.names(f"{root}/versions")
    seen.put("selected", source, selected)
    seen.put("selected_by", "the first place that sets a version", source)
    missing = [each for each in selected if each != "system" and not _installed(each, installed)]
    seen.put("missing", f"folders in {root}/versions", tuple(missing))
    return Pyenv(**seen.values, sources=seen.sources)


def _installed(wanted: str, installed: tuple[str, ...]) -> bool:
    """Pyenv takes ``3.11`` for the newest 3.11 that is installed."""
    return any(name == wanted or name.startswith(f"{wanted}.") for name in installed)
