"""What a conda package is made of, and what is wrong with such a description."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.core.trees import all_safe_paths, is_safe_link, is_safe_path, paths_above_others
from axletree.package.wheel.writer import Packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PLACEHOLDER = ("/axletree" + "_placehold" * 25)[:255]
"""Stands for the prefix in files that we write ourselves; installers put the real one in its place (255 bytes: binary
files can take no longer prefix than their placeholder, and this is what conda's tools agreed on)."""

FileMode = Literal["text", "binary"]
NoArch = Literal["python", "generic"]

_MAX_PART = 255  # bytes that a file system takes between two slashes
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_VERSION = re.compile(r"[a-z0-9][a-z0-9_.!+]*")
_BUILD = re.compile(r"[A-Za-z0-9_.+]{1,64}")
_SUBDIR = re.compile(r"noarch|(linux|osx|win|emscripten|wasi|freebsd|zos)-[a-z0-9_]+")


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """Content that needs the digests of the other files, such as RECORD; such files are written last.

    Its length must not depend on the digests.
    """

    render: Callable[[Mapping[str, str]], bytes]
    """Path -> SHA-256 of its content, hexadecimal; returns the content."""


class CondaFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file or symbolic link of a package."""

    path: str
    """Where it goes below the prefix; for files of ``info/``, below that."""
    data: bytes | Packed | Late | Callable[[], Iterable[bytes | memoryview]] = b""
    """The content, what is compressed in another archive, or what yields it in chunks when it is its turn."""
    size: int | None = None
    """Bytes of the content; needed where it comes in chunks."""
    executable: bool = False
    link: str | None = None
    """Relative target; makes it a symbolic link."""
    no_link: bool = False
    """Whether installers must copy it, since a program changes it in place."""


class RunExports(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What packages that build against this one get as dependencies (CEP 12)."""

    weak: tuple[str, ...] = ()
    strong: tuple[str, ...] = ()
    noarch: tuple[str, ...] = ()
    weak_constrains: tuple[str, ...] = ()
    strong_constrains: tuple[str, ...] = ()


class CondaAbout(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What people read about a package."""

    home: str | None = None
    license: str | None = None
    license_family: str | None = None
    summary: str | None = None
    description: str | None = None
    dev_url: str | None = None
    doc_url: str | None = None


class CondaPackage(msgspec.Struct, frozen=True, kw_only=True):
    """A package, all but its files."""

    name: str
    version: str
    build: str
    """Build string, such as ``cuda129_py311_h1234567_300``."""
    subdir: str
    """``linux-64``, ``noarch`` ..."""
    build_number: int = 0
    noarch: NoArch | None = None
    """``python`` with a subdir other than ``noarch``: for one platform, for every Python (CEP 20)."""
    depends: tuple[str, ...] = ()
    constrains: tuple[str, ...] = ()
    track_features: tuple[str, ...] = ()
    about: CondaAbout = CondaAbout()
    run_exports: RunExports | None = None
    hash_input: dict[str, str] = {}
    """The variant that the hash in the build string stands for."""
    entry_points: tuple[str, ...] = ()
    """``name = module:function``, for ``noarch: python`` only: there the installer writes the scripts."""
    placeholder: str | None = None
    """The prefix that files were built for; where it is found in one, installers replace it."""
    binary_prefix: tuple[str, ...] = ()
    """Patterns of binary files that may hold the placeholder. Compilers join and measure strings, so replacing one
    in a binary is safe only where somebody looked."""
    site_packages: str | None = None
    """For packages of Python itself: where modules go, where that is not ``lib/pythonX.Y/site-packages`` (CEP 17)."""
    info: tuple[CondaFile, ...] = ()
    """More files of ``info/``: ``licenses/``, ``recipe/``, ``test/``."""

    @property
    def stem(self) -> str:
        """``NAME-VERSION-BUILD``, how its file is called without the extension."""
        return f"{self.name}-{self.version}-{self.build}"


def check_description(package: CondaPackage, files: Sequence[CondaFile]) -> None:
    """Whether a package can be made of these files.

    Raises:
        IntegrityError: lists everything that is wrong.
    """
    found = [*_name_problems(package), *_path_problems(files), *_path_problems(package.info, root="info")]
    found += _layout_problems(package, files)
    problems = [msgspec.structs.replace(problem, file=f"{package.stem}.conda") for problem in found]
    if problems:
        raise IntegrityError(*dict.fromkeys(problems))


def _name_problems(package: CondaPackage) -> Iterator[Problem]:
    fields = (
        ("name", package.name, _NAME, "use lowercase letters, digits, '_', '.' and '-'"),
        ("version", package.version, _VERSION, "use lowercase letters, digits, '_', '.', '!' and '+'"),
        ("build", package.build, _BUILD, "use at most 64 letters, digits, '_', '.' and '+'"),
        ("subdir", package.subdir, _SUBDIR, "use a platform such as linux-64, or noarch"),
    )
    for key, value, pattern, rule in fields:
        if pattern.fullmatch(value) is None:
            yield Problem(key=key, message=f"{value!r} is not a valid conda {key}: {rule}")
    if package.build_number < 0:
        yield Problem(key="build_number", message="the build number is negative")
    if package.subdir == "noarch" and package.noarch is None:
        yield Problem(key="noarch", message="a noarch package must be 'python' or 'generic'")
    if package.entry_points and package.noarch != "python":
        message = "only noarch: python packages list entry points; other packages contain the scripts themselves"
        yield Problem(key="entry_points", message=message)
    if package.placeholder is not None and not package.placeholder.startswith("/"):
        yield Problem(key="placeholder", message=f"{package.placeholder!r} is not an absolute path")


def _path_problems(files: Sequence[CondaFile], *, root: str = "") -> Iterator[Problem]:
    leaves: set[str] = set()
    safe = all_safe_paths([file.path for file in files])
    for file in files:
        key = posixpath.join(root, file.path)[:300]
        if not (safe or is_safe_path(file.path)) or _has_long_part(file.path):
            yield Problem(key=key, message="the path is not valid in a package")
        if file.path in leaves:
            yield Problem(key=key, message="the package lists this file twice")
        leaves.add(file.path)
        if not root and file.path.partition("/")[0] in {"info", "conda-meta"}:
            yield Problem(key=key, message="the file is in a folder that conda reserves")
        if file.link is not None:
            if file.data:
                yield Problem(key=key, message="the entry is a link, but has content")
            if link_place(file.path, file.link) is None:
                message = f"the entry is a link to {file.link[:200]!r}, which is outside the package"
                yield Problem(key=key, message=message, hint="use a relative link to a path inside the prefix")
        elif callable(file.data) and file.size is None:
            yield Problem(key=key, message="the file's size must be specified, because its content is given in chunks")
    for path in paths_above_others(leaves):
        yield Problem(key=posixpath.join(root, path), message="the path is both a file and a folder in the package")


def _has_long_part(path: str) -> bool:
    if len(path) <= _MAX_PART and path.isascii():
        return False
    return max(map(len, path.encode(errors="replace").split(b"/"))) > _MAX_PART


def link_place(path: str, target: str) -> str | None:
    """Where below the prefix a link leads; ``None`` where it leaves it, or is absolute or no text."""
    if not is_safe_link(target) or "\\" in target:
        return None
    place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return None if place == ".." or place.startswith(("../", "/")) else place


def _layout_problems(package: CondaPackage, files: Iterable[CondaFile]) -> Iterator[Problem]:
    for file in files:
        if (wrong := wrong_pyc(file.path, noarch=package.noarch == "python")) is not None:
            yield Problem(key=file.path, message=wrong)


_PYC = re.compile(r"(?:.*/)?__pycache__/[^/]+\.([a-z]+-\d+t?)(?:\.opt-\d)?\.pyc")
_PYTHON = re.compile(r"lib/python(\d+)\.(\d+)(t?)/")


def wrong_pyc(path: str, *, noarch: bool) -> str | None:
    """What is wrong with a ``.pyc`` file at a path: one of another Python is dead weight, and may clash.

    Args:
        path: any path of a package.
        noarch: whether the package is ``noarch: python``; installers compile those.
    """
    if not path.endswith(".pyc"):
        return None
    if noarch:
        return "the file is compiled, but installers compile noarch: python packages themselves"
    found, home = _PYC.fullmatch(path), _PYTHON.match(path)
    if found is None or home is None:
        return None
    wanted = f"cpython-{home[1]}{home[2]}{home[3]}"
    if found[1] == wanted:
        return None
    return f"the file is compiled for {found[1]}, but is in a folder for {wanted}"
