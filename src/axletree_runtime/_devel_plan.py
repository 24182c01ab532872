"""What belongs into the devel tree, of the payload and of the packages that are installed now.

A file that a package for run time has is taken from there. Files of packages for single GPUs are mirrored, too: of
several with the same file the first counts, in the order in which the runtime would choose where it knows no GPU: the
default family's package, then those for most targets. The host's GPUs are not asked, so that the tree is the same on
every host. Packages of another version are left out.
"""

from __future__ import annotations

import os
import posixpath
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ._devel_payload import Links, Member, find_payload
from ._libraries import same_version
from ._sdk import FILE, SdkError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from ._sdk import Sdk, SdkPackage

_SHOWN = 3
_SIGN = re.compile(r"\[!?.[^\]]*\]|.", re.DOTALL)
_RANGE = re.compile(r".-.|.", re.DOTALL)
_LIBRARY = re.compile(r"\.(so(\.\d+)*|dylib|dll)$")


class Wanted(NamedTuple):
    """What is to be at a path of the tree."""

    kind: str
    """``folder``; ``file``: content of the payload; ``mirror``: a file of another package; ``alias``: another name of
    a file of the tree; ``link``: a symbolic link."""
    source: str = ""
    """Of a mirror the file it stands for; of an alias the path in the tree."""
    text: str = ""
    """What a symbolic link says."""
    member: Member | None = None
    folder: str = ""
    """Of a mirror the platform folder."""


@dataclass(frozen=True)
class Plan:
    """A tree that fits what is installed."""

    wanted: dict[str, Wanted]
    """Folders before what is in them, files before their other names."""
    notes: tuple[str, ...]
    """What is left out, and why."""


def stamps(sdk: Sdk) -> dict[str, list[int]]:
    """What tells whether packages are still those that a tree was made of: platform folder -> facts of one file."""
    found: dict[str, list[int]] = {}
    for package, folder in sdk.installed().items():
        try:
            facts = (folder / FILE).stat()
        except OSError:
            continue
        found[package.folder] = [facts.st_ino, facts.st_mtime_ns, facts.st_size]  # not st_dev: it changes with mounts
    return found


def plan_tree(sdk: Sdk, members: Iterable[Member], folders: Mapping[str, Path], *, symlinks: bool = True) -> Plan:
    """What the tree of a payload is to hold.

    Args:
        sdk: the SDK.
        members: the payload's listing.
        folders: platform folder of each installed package -> where the tree finds it.
        symlinks: whether symbolic links can be made. Without them a link to a folder becomes one with the same files.

    Raises:
        SdkError: an installed package lacks files that the tree is to have, or is of another version.
    """
    return _Planner(sdk, tuple(members), folders, symlinks=symlinks).plan()


def gpu_packages(sdk: Sdk, packages: Iterable[SdkPackage]) -> list[SdkPackage]:
    """Packages for single GPUs in the order in which they count; see above."""
    default = set(sdk.file.families.get(sdk.file.default_family, ()))
    gpus = [each for each in packages if each.targets]
    return sorted(gpus, key=lambda each: (set(each.targets) != default, -len(each.targets), each.dist))


class _Planner:
    def __init__(self, sdk: Sdk, members: tuple[Member, ...], folders: Mapping[str, Path], *, symlinks: bool) -> None:
        self.sdk = sdk
        self.members = members
        self.folders = folders
        self.installed = {package: folders[package.folder] for package in sdk.installed()}
        self.named = {package.folder: package for package in sdk.file.packages}
        devel = sdk.devel_package()
        if devel is None:
            raise SdkError(f"{sdk.file.sdk} does not include a devel package")
        self.devel = devel
        about = sdk.shipped(devel)
        self.version = about.version
        self.globs = about.links
        self.links = Links(devel.folder, members)
        self.wanted: dict[str, Wanted] = {}
        self.notes: list[str] = []
        self.symlinks = symlinks
        self.used: dict[str, SdkPackage] = {}
        self.absent: dict[str, int] = {}
        self.damaged: list[str] = []

    def plan(self) -> Plan:
        for member in self.members:
            if member.kind == "folder":
                self.wanted[member.path] = Wanted("folder")
            elif member.kind == "file":
                self.add(member.path, Wanted("file", member=member))
        names = [member for member in self.members if member.kind == "link" and not self.mirrors(member)]
        self.add_gpu_files()
        self.check()
        links = Links(self.devel.folder, names)
        for member in names if self.symlinks else sorted(names, key=lambda each: self.is_folder(each, links)):
            self.add_name(member, links)
        if "__init__.py" not in self.wanted:  # who imports it learns where it lies
            self.wanted["__init__.py"] = Wanted("file", member=Member("__init__.py", "file"))
        return Plan(self.wanted, tuple(self.notes))

    def add(self, path: str, wanted: Wanted) -> None:
        """Put something into the tree, below its folders."""
        folder = posixpath.dirname(path)
        if folder and folder not in self.wanted:
            self.add(folder, Wanted("folder"))
        self.wanted[path] = wanted

    def mirrors(self, member: Member) -> bool:
        """Whether a link stands for a file of another package; if so, that is added."""
        place = _beside(self.devel.folder, member)
        top, _, path = place.partition("/")
        if top == self.devel.folder:
            return False
        folder = self.folders.get(top)
        if folder is not None:
            self.used[top] = self.named[top]
        if folder is None:
            self.absent[top] = self.absent.get(top, 0) + 1
        elif (folder / path).is_file():
            self.add(member.path, Wanted("mirror", os.path.join(folder, *path.split("/")), member=member, folder=top))
        else:
            self.damaged.append(f"{folder / path}")
        return True

    def add_gpu_files(self) -> None:
        for package in gpu_packages(self.sdk, self.installed):
            version = self.sdk.shipped(package).version
            if not same_version(version, self.version):
                self.notes.append(
                    f"{package.dist} {version} is left out because {self.devel.dist} has version {self.version}"
                )
                continue
            for path, source in _files(self.installed[package]):
                if path not in self.wanted:
                    self.add(path, Wanted("mirror", source, folder=package.folder))

    def check(self) -> None:
        """Refuse what can't become a whole tree, and say what is left out."""
        others = [(each.dist, self.sdk.shipped(each).version) for each in self.used.values()]
        for dist, version in others:
            if not same_version(version, self.version):
                cure = self.sdk.install_hint([*self.used.values(), self.devel])
                raise SdkError(
                    f"{dist} has version {version}, but {self.devel.dist} has version {self.version}: {cure}"
                )
        if self.damaged:
            shown = ", ".join(self.damaged[:_SHOWN])
            more = f" and {len(self.damaged) - _SHOWN} more" if len(self.damaged) > _SHOWN else ""
            dists = ", ".join(dist for dist, _ in others)
            raise SdkError(
                f"files are missing from the devel tree: {shown}{more}; reinstall the package that provides them "
                f"(one of {dists})"
            )
        for folder, count in self.absent.items():
            hint = self.sdk.install_hint([self.named[folder]])
            self.notes.append(f"{self.named[folder].dist} is missing, so {count} of its files are left out: {hint}")

    def add_name(self, member: Member, links: Links) -> None:
        """Another name of what is in the tree; what leads to nothing now is left out."""
        top, _, path = links.follow(member.path).partition("/")
        target = self.wanted.get(path) if path else Wanted("folder")
        if top != self.devel.folder or target is None:
            return
        if self.symlinks and (target.kind == "folder" or any(glob_matches(each, member.path) for each in self.globs)):
            self.add(member.path, Wanted("link", path, member.link))
        elif target.kind == "folder":
            self.add_folder(member.path, f"{path}/")
        else:
            self.add(member.path, Wanted("alias", path, member.link))

    def is_folder(self, member: Member, links: Links) -> bool:
        """Whether a link leads to a folder."""
        target = self.wanted.get(links.follow(member.path).partition("/")[2])
        return target is not None and target.kind == "folder"

    def add_folder(self, path: str, source: str) -> None:
        """What stands for a link to a folder: one with the same files, unless it is one of its own folders."""
        if f"{path}/".startswith(source):
            return
        for inside, wanted in list(self.wanted.items()):
            if inside.startswith(source) and wanted.kind != "folder":
                real = wanted.source if wanted.kind == "alias" else inside
                self.add(f"{path}/{inside[len(source) :]}", Wanted("alias", real))


def glob_matches(glob: str, path: str) -> bool:
    """Whether a file pattern of the SDK's manifest matches a path; means what ``axletree.core.globs`` says."""
    return _compiled(glob).fullmatch(path) is not None


@lru_cache(maxsize=256)
def _compiled(glob: str) -> re.Pattern[str]:
    parts = glob.split("/")
    parts = [part for at, part in enumerate(parts) if part != "**" or parts[at - 1 : at] != ["**"]]
    if all(part == "**" for part in parts):
        return re.compile(".*", re.DOTALL)
    text = ""
    for at, part in enumerate(parts):
        last = at == len(parts) - 1
        if part == "**":
            text += "(?:/.*)?" if last else "(?:.*/)?"
        else:
            text += "".join(map(_expression, _SIGN.findall(part)))
            text += "" if last or parts[at + 1 :] == ["**"] else "/"
    return re.compile(text, re.DOTALL)


def _expression(sign: str) -> str:
    """A sign of a pattern, or a set of characters in brackets, as a regular expression."""
    if len(sign) == 1:
        return {"*": "[^/]*", "?": "[^/]"}.get(sign, re.escape(sign))
    negated = sign[1] == "!"
    ranges = _RANGE.findall(sign[2 if negated else 1 : -1])
    inside = "".join(f"{re.escape(each[0])}-{re.escape(each[-1])}" for each in ranges)
    return f"(?!/)[{'^' if negated else ''}{inside}]"


def is_program(path: str, mode: int) -> bool:
    """Whether a file is a program, by its name and mode: it may look for the SDK from where it really lies."""
    return bool(mode & 0o100) and _LIBRARY.search(path) is None


def _beside(root: str, member: Member) -> str:
    """What a link says, as a path of the site directory."""
    return posixpath.normpath(posixpath.join(root, posixpath.dirname(member.path), member.link))


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """The payload of a platform folder: path below it, and where that lies."""
    for place, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != "__pycache__")
        below = os.path.relpath(place, folder).replace(os.sep, "/")
        for name in sorted(files):
            path = name if below == "." else f"{below}/{name}"
            if path not in {"__init__.py", FILE} and not name.endswith((".pyc", ".pyo")):
                yield path, os.path.join(place, name)


def payload_facts(module: Path) -> tuple[Path, int, int]:
    """The payload, its size and time in nanoseconds."""
    payload = find_payload(module)
    facts = payload.stat()
    return payload, facts.st_size, facts.st_mtime_ns
