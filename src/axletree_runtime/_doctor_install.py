"""Checks of the installation: one version, one site directory, what the system must bring, what takes its place."""

from __future__ import annotations

import os
import re
import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ._doctor import Finding, some_of
from ._environment import tool_variables
from ._installed import find_dists
from ._libraries import same_version
from ._sdk import SdkError, find_root
from ._sources import pip_command
from ._system import missing_system_libraries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ._host import Host
    from ._sdk import PackageFile, Sdk, SdkPackage, SystemNeed

_WINDOWS_PATH = 174
"""Longest path of a file that all of ROCm's libraries can open on Windows."""
_WHERE = re.compile(r"([^\s,;(]+) \(([^)]*)\)")
"""Of what to install: ``libnuma1 (Debian, Ubuntu), numactl-libs (Fedora, RHEL)``."""
_INSTALLERS = (("debian", "apt install"), ("ubuntu", "apt install"), ("fedora", "dnf install"), ("rhel", "dnf install"))


def install_findings(sdk: Sdk, host: Host) -> Iterator[Callable[[], Iterable[Finding]]]:
    """The checks."""
    yield partial(_packages, sdk)
    yield partial(_versions, sdk)
    yield partial(_siblings, sdk)
    yield partial(_system, sdk, host)
    yield partial(_search_path, sdk, host)
    yield partial(_variables, sdk, host)
    yield partial(_programs, sdk, host)
    yield partial(_long_paths, sdk, host)


def read_shipped(sdk: Sdk) -> Iterator[tuple[SdkPackage, PackageFile]]:
    """What installed packages ship, as far as it can be read."""
    for package in sdk.installed():
        about, _ = _read(sdk, package)
        if about is not None:
            yield package, about


def _read(sdk: Sdk, package: SdkPackage) -> tuple[PackageFile | None, str]:
    """What a package ships, or why that can't be read."""
    try:
        return sdk.shipped(package), ""
    except SdkError as error:
        return None, str(error)


def _packages(sdk: Sdk) -> Iterator[Finding]:
    """Packages that are there and readable, and those without which nothing works."""
    installed = sdk.installed()
    for package in installed:
        about, trouble = _read(sdk, package)
        if about is None:
            again = pip_command(sdk, f"--force-reinstall --no-deps '{package.dist}=={sdk.file.version}'")
            yield Finding("error", "damaged-package", trouble, again)
    wanted = [each for each in sdk.file.packages if not each.extra and not each.targets and each not in installed]
    wanted = [each for each in wanted if each.kind != "devel"]
    if wanted:
        names = ", ".join(each.dist for each in wanted)
        yield Finding("error", "missing-package", f"{names} is not installed", sdk.install_hint(wanted))


def _versions(sdk: Sdk) -> Iterator[Finding]:
    """One version of all, and no remains of another."""
    dists = find_dists(sdk)
    shipped = {package.dist: about.version for package, about in read_shipped(sdk)}
    wrong: list[str] = []
    for name in sorted({*dists, *shipped}):
        versions = {each.version for each in dists.get(name, ())} | {shipped.get(name, "")} - {""}
        if len(dists.get(name, ())) > 1:
            folders = ", ".join(sorted(each.info.name for each in dists[name]))
            text = f"{name} is installed more than once ({folders}), probably because an update was interrupted"
            yield Finding("error", "installed-twice", text, f"pip uninstall --yes {name} {name}")
        other = sorted(version for version in versions if not same_version(version, sdk.file.version))
        if other:
            wrong.append(f"{name} {', '.join(other)}")
    if wrong:
        extras = [each.extra for each in sdk.file.packages if each.dist in dists]
        text = (
            f"{sdk.file.dist} has version {sdk.file.version}, but {'; '.join(wrong)} "
            f"{'is' if len(wrong) == 1 else 'are'} installed"
        )
        yield Finding("error", "mixed-versions", text, pip_command(sdk, f"'{sdk.requirement(extras)}'"))


def _siblings(sdk: Sdk) -> Iterator[Finding]:
    """All in one site directory: links and search paths lead from one package into another."""
    site = sdk.site.resolve()
    apart = {each.dist: folder for each, folder in sdk.installed().items() if folder.resolve().parent != site}
    if apart:
        places = ", ".join(f"{dist} in {folder.resolve().parent}" for dist, folder in apart.items())
        pins = " ".join(f"'{dist}=={sdk.file.version}'" for dist in sorted(apart))
        again = pip_command(sdk, f"--force-reinstall --no-deps --target {shlex.quote(str(site))} {pins}")
        text = (
            f"packages are installed in different folders: {places}, and the selector in {site}; their libraries "
            "cannot find each other"
        )
        yield Finding("error", "apart", text, again)


def _system(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Libraries that the host must bring and does not, each with who needs it."""
    needs: dict[str, SystemNeed] = {}
    users: dict[str, list[str]] = {}
    for package, about in read_shipped(sdk):
        for need in about.system:
            needs.setdefault(need.soname, need)
            users.setdefault(need.soname, []).extend(
                f"{Path(file).name} of {package.dist}" for file in need.files or ("something",)
            )
    for soname in sorted(missing_system_libraries(list(needs), host)):
        who = users[soname]
        verb = "needs" if len(who) == 1 else "need"
        text = f"{soname} is missing from this system, and {some_of(who)} {verb} it"
        yield Finding("warning", "system-library", text, _to_install(needs[soname].package, host))


def _to_install(package: str, host: Host) -> str:
    """A command of this system's package manager, if it is told for it; else the words."""
    release = host.read("/etc/os-release").lower()
    ids = re.findall(r"^id(?:_like)?=\"?([^\"\n]*)", release, re.MULTILINE)
    words = " ".join(ids).split()
    for name, systems in _WHERE.findall(package):
        known = [each.strip().lower() for each in systems.split(",")]
        for system, installer in _INSTALLERS:
            if system in known and system in words:
                return f"sudo {installer} {name}"
    return f"install {package}" if package else ""


def _search_path(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Folders that the loader is told to look into first, with libraries of the SDK's names."""
    ours: dict[str, list[Path]] = {}
    for package, about in read_shipped(sdk):
        folder = sdk.folder(package)
        for library in about.libraries if folder else ():
            ours.setdefault(library.soname, []).append(Path(folder or "", library.path))
    for variable in ("LD_LIBRARY_PATH", "LD_PRELOAD"):
        for text in re.split(r"[:;\s]" if variable == "LD_PRELOAD" else "[:;]", host.environ.get(variable, "")):
            if not text:
                continue
            given = Path(text)
            places = [given] if variable == "LD_PRELOAD" else [given / soname for soname in ours]
            foreign = [place.name for place in places if _is_foreign(place, ours)]
            if foreign:
                kind = "differs from" if len(foreign) == 1 else "differ from"
                what = f"{variable} contains {given}, whose {some_of(sorted(foreign))} {kind} the SDK's"
                yield Finding("warning", "shadowed", f"{what}: programs may load both", f"unset {variable}")


def _is_foreign(place: Path, ours: dict[str, list[Path]]) -> bool:
    if place.name not in ours or not place.is_file():
        return False
    return not any(path.is_file() and place.samefile(path) for path in ours[place.name])


def _variables(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Variables of builds that name another SDK: console scripts leave what is set as it is."""
    try:
        root, _ = find_root(sdk)
    except (SdkError, ImportError):
        return
    elsewhere = {
        name: text
        for name, wanted in tool_variables(sdk, root).items()
        if (text := host.environ.get(name))
        and (os.path.isabs(text) and os.path.isabs(wanted) and not _is_same(text, wanted))  # noqa: PTH117
    }
    if elsewhere:  # one finding: they are set together, by the environment of one other SDK
        name, text = min(elsewhere.items())
        rest = len(elsewhere) - 1
        more = f" and {rest} more variable{'s' * (rest > 1)} point" if rest else " points"
        what = f"{name}={text}{more} outside this SDK, and the SDK's compiler and tools search that location"
        yield Finding("warning", "other-sdk", what, f"unset {' '.join(sorted(elsewhere))}")


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _programs(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Programs of another SDK that are found before the SDK's own."""
    names = [command.name for _, about in read_shipped(sdk) for command in about.commands]
    own = {sdk.site.resolve(), *(each.resolve() for each in _script_folders(sdk))}
    shadowing: dict[Path, list[str]] = {}
    for name in names:
        found = _on_path(host, name)
        if found is None or any(place in (found.parent.resolve(), *found.resolve().parents) for place in own):
            continue
        if not _is_console_script(sdk, found):
            shadowing.setdefault(found.parent, []).append(name)
    for folder, programs in shadowing.items():
        text = f"{', '.join(programs)} on PATH {'comes' if len(programs) == 1 else 'come'} from {folder}"
        script = next(iter(_script_folders(sdk)), None)
        cure = f'export PATH="{script}:$PATH"' if script else f'eval "$({sdk.file.command} env)"'
        yield Finding("warning", "other-programs", f"{text} instead of this SDK", cure)


def _on_path(host: Host, name: str) -> Path | None:
    for folder in host.environ.get("PATH", "").split(os.pathsep):
        path = Path(folder, name)
        if folder and path.is_file() and os.access(path, os.X_OK):
            return path
    return None


def _is_console_script(sdk: Sdk, path: Path) -> bool:
    """Whether a file is a console script of the SDK, wherever it was put."""
    with path.open("rb") as file:
        text = file.read(4096)
    modules = [sdk.file.module, *(each.module for each in sdk.file.packages)]
    return text[:2] == b"#!" and any(f"{module}.".encode() in text for module in modules)


def _script_folders(sdk: Sdk) -> list[Path]:
    """Where installers put the console scripts, as RECORD tells."""
    folders: dict[Path, None] = {}
    for found in find_dists(sdk).values():
        for each in found:
            names = {name for name, _ in each.scripts}
            for row in each.record:
                path = Path(row.path)
                if path.parts[:1] == ("..",) and path.stem in names | {path.name} & names:
                    folders[Path(os.path.normpath(each.site / path)).parent] = None
    return list(folders)


def _long_paths(sdk: Sdk, host: Host) -> Iterator[Finding]:
    """Windows: libraries that look for their data fail where its path is long."""
    if not host.windows:
        return
    longest = ""
    for dists in find_dists(sdk).values():
        for row in dists[0].record:
            path = str(dists[0].site / row.path)
            longest = path if len(path) > len(longest) else longest
    if len(longest) > _WINDOWS_PATH:
        text = (
            f"{longest} is {len(longest)} characters long, but libraries cannot open paths longer than "
            f"{_WINDOWS_PATH} characters"
        )
        yield Finding("warning", "long-path", text, "python -m venv C:\\sdk")
