"""Tests of shared libraries: each can be loaded, alone and with all that it needs, and takes nothing from elsewhere."""

from __future__ import annotations

import re
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._elf import read_elf
from ._test_closure import find_gaps, known_libraries
from ._testing import PASSED, Case, failed, skipped, some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._sdk import Library, SdkPackage
    from ._testing import Bench, Outcome, Ran

_LACKS = re.compile(r"(?<!\S)(\S+?)(?: cannot be loaded)?: cannot open shared object file|does not find (\S+)")
_LOAD = """
def run(words):
    import ctypes
    ctypes.CDLL(words[0])
"""
_PRELOAD = """
def run(words):
    from importlib import import_module
    import_module(words[0]).preload_libraries(*words[1:])
"""
_INITIALIZE = """
def run(words):
    from importlib import import_module
    import_module(words[0]).initialize_process()
"""
_VERSION = """
def run(words):
    import re
    from importlib import import_module
    kind, wanted, fail = words[1:]
    wanted = re.compile(wanted) if kind == "pattern" else wanted
    import_module(words[0]).initialize_process(check_version=wanted, fail_on_version_mismatch=fail == "fail")
"""


def load_cases(bench: Bench) -> Iterator[Case]:
    """Each library in a process of its own, with nothing loaded before."""
    for package in bench.present:
        for library in bench.sdk.shipped(package).libraries:
            if library.standalone:
                yield Case("load", package.dist, library.shortname, partial(_load, bench, package, library))


def preload_cases(bench: Bench) -> Iterator[Case]:
    """Libraries by their short names, through the SDK's Python package; several through the environment."""
    dist = bench.sdk.file.dist
    names: dict[str, Path] = {}
    for package, folder in bench.installed.items():
        for library in bench.sdk.shipped(package).libraries:
            if library.standalone and not (library.optional and not (folder / library.path).is_file()):
                names.setdefault(library.shortname, folder / library.path)
    for name, path in names.items():
        yield Case("preload", dist, name, partial(_preload, bench, name, path))
    pair = [name for name, path in names.items() if not any(find_gaps(bench, path))][:2]
    if pair:
        for subject, text in (
            ("environment: one", pair[0]),
            ("environment: commas", ",".join(pair)),
            ("environment: semicolons and blanks", f" {' ; '.join(pair)} ;"),
        ):
            yield Case("preload", dist, subject, partial(_from_environment, bench, pair, text))


def version_cases(bench: Bench) -> Iterator[Case]:
    """The check of the version that programs ask for."""
    dist, version = bench.sdk.file.dist, bench.sdk.file.version
    begins, other = f"{version[:1]}*", f"{version}.other"
    for subject, kind, wanted, fail, right in (
        ("exact", "text", version, "fail", True),
        ("any", "text", "*", "fail", True),
        ("beginning", "text", begins, "fail", True),
        ("pattern", "pattern", re.escape(version[:1]), "fail", True),
        ("mismatch raises", "text", other, "fail", False),
        ("pattern mismatch raises", "pattern", re.escape(other), "fail", False),
        ("mismatch warns", "text", other, "warn", False),
    ):
        yield Case("version", dist, subject, partial(_check_version, bench, kind, wanted, fail, right=right))


def _load(bench: Bench, package: SdkPackage, library: Library) -> Outcome:
    path = (bench.installed.get(package) or bench.tree()) / library.path
    if not path.is_file():
        if library.optional:
            return skipped(f"{library.path} is missing, but optional")
        return failed(f"{path} is missing", bench.again(package.dist))
    try:
        elf = read_elf(path)
    except ValueError as error:
        return failed(str(error), bench.again(package.dist))
    if elf is not None and (elf.bits == 64) != (sys.maxsize > 1 << 32):
        return skipped(f"the library is for {elf.bits}-bit programs, but this Python is not a {elf.bits}-bit program")
    said, ran = bench.python(_LOAD, str(path))
    if said and not said["error"] and not ran.end:
        return _from_elsewhere(bench, said["loaded"])
    return _explained(bench, path, said.get("error", ""), ran)


def _preload(bench: Bench, name: str, path: Path) -> Outcome:
    said, ran = bench.python(_PRELOAD, bench.sdk.file.module, name)
    if said and not said["error"] and not ran.end:
        return _from_elsewhere(bench, said["loaded"])
    return _explained(bench, path, said.get("error", ""), ran)


def _from_environment(bench: Bench, names: list[str], text: str) -> Outcome:
    variable = bench.sdk.variable("PRELOAD_LIBRARIES")
    said, ran = bench.python(_INITIALIZE, bench.sdk.file.module, env={variable: text})
    if not said or said["error"] or ran.end:
        return failed(f"{variable}={text!r}: {said.get('error') or ran.end}")
    loaded = {Path(each).name for each in said["loaded"]}
    asked = names if re.search("[,;]", text) else names[:1]
    sonames = {each.library.shortname: each.library.soname for each in known_libraries(bench)}
    absent = [name for name in asked if loaded and sonames[name] not in loaded]
    return some([f"{variable}={text!r} did not load {name}" for name in absent])


def _check_version(bench: Bench, kind: str, wanted: str, fail: str, *, right: bool) -> Outcome:
    said, ran = bench.python(_VERSION, bench.sdk.file.module, kind, wanted, fail)
    if not said or ran.end:
        return failed(f"the process {ran.end}: {ran.tail}")
    asked = f"check_version={wanted!r} ({kind})"
    error, warned = said["error"], said.get("warnings", [])
    if right:
        return failed(f"{asked}: {error or warned[0]}") if error or warned else PASSED
    if fail == "fail":
        return (
            PASSED
            if said["kind"] == "RuntimeError"
            else failed(f"{asked} does not raise a RuntimeError: {error or 'nothing'}")
        )
    if error:
        return failed(f"{asked} raises {said['kind']}, but should only warn: {error}")
    return PASSED if any(wanted in text for text in warned) else failed(f"{asked} does not warn")


def _explained(bench: Bench, path: Path, text: str, ran: Ran) -> Outcome:
    """Why a library was not loaded: a fault of the SDK, a package that is not there, or one of the system's."""
    if not text:
        return failed(f"the process {ran.end or 'printed nothing'} while it loaded {path.name}: {ran.tail}")
    found = _LACKS.search(text)
    lacking = Path(found[1] or found[2]).name if found else ""
    known = next((each for each in known_libraries(bench) if each.library.soname == lacking), None)
    if known is not None:
        why = "its search path does not include that folder" if known.path.is_file() else f"{known.path} is missing"
        hint = bench.again(known.dist)
        return failed(f"{path.name} cannot find {lacking}, which {known.dist} provides: {why}", hint)
    ours, system = find_gaps(bench, path)
    if ours:
        names, packages = ", ".join(ours), [owners[0] for owners in ours.values()]
        return skipped(f"{path.name} needs {names}, which is not installed", bench.sdk.install_hint(packages))
    if system:
        return bench.lacks(system)
    if lacking:
        nobody = "no package in the SDK provides it, and the manifest does not list it as a system library"
        return failed(f"{path.name} needs {lacking}, which is missing: {nobody}")
    return failed(f"{path.name}: {text}")


def _from_elsewhere(bench: Bench, loaded: list[str]) -> Outcome:
    """Whether what was loaded is the SDK's own: another copy of a runtime would be taken by programs as well."""
    places: dict[str, list[Path]] = {}
    for each in known_libraries(bench):
        places.setdefault(each.library.soname, []).append(each.path)
    foreign = [
        place
        for place in map(Path, loaded)
        if (ours := [path for path in places.get(place.name, []) if path.is_file()])
        and place.is_file()
        and not any(place.samefile(path) for path in ours)
    ]
    hint = "unset LD_LIBRARY_PATH and LD_PRELOAD, or remove that folder from them"
    return some([f"{place} was loaded instead of the SDK's own {place.name}" for place in foreign], hint)
