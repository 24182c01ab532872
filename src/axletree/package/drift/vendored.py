"""Copies of other projects in a source tree: the commits of submodules, and the versions that the copies name."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from packaging.version import Version

from axletree.package.drift import ranges
from axletree.package.drift.cmake import project_version
from axletree.package.drift.evidence import Evidence
from axletree.package.drift.names import look_up, own_version
from axletree.package.drift.tags import parse_contains, parse_describe, tag_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from packaging.ranges import VersionRange

    from axletree.package.drift.names import DependencyTable, Macro
    from axletree.package.drift.tags import Contained, TagDistance

FOLDERS = ("third_party", "3rdparty", "thirdparty", "external", "extern", "vendor", "subprojects", "deps")
"""Where copies lie in trees that say nothing of submodules."""
VERSION_FILES = ("CMakeLists.txt", "VERSION", "VERSION.txt", "version.txt", "VERSION_NUMBER", "pyproject.toml")
"""Files of a copy that may name its version, beside those of the table."""
HEADERS = re.compile(r"(?:^|/)(?:[a-z0-9_-]*version|config|base|core)\.(?:h|hh|hpp|inc|mk)(?:\.in)?$", re.IGNORECASE)
"""Headers that may have version macros."""
_SET = r"^[ \t]*(?:#[ \t]*define[ \t]+|(?:export[ \t]+)?(?=\w+[ \t]*[:?]?=))"
"""How the line of a macro of C, or of a variable of make, begins; then come its name, and this."""
_TO = r"[ \t]*(?:[ \t]|[:?]?=)[ \t]*"
_TRIPLE = re.compile(
    _SET + r"(?P<stem>\w*?)_?(?:VERSION_)?MAJOR(?:_VERSION)?" + _TO + r"\(?(?P<major>\d+)\)?\s*?$",
    re.MULTILINE,
)
_STRING = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(?P<stem>\w+?)_VERSION(?:_STR(?:ING)?)?[ \t]+"
    r'"v?(?P<version>\d++(?:\.\d++)++[\w.+-]*+)"',
    re.MULTILINE,
)
_LATER = (("MINOR",), ("PATCH", "PATCHLEVEL", "MICRO", "REVISION", "SUBMINOR", "BUILD"))
_PACKAGE = re.compile(_SET + r"(?:\w+_)?(?:PKG|PACKAGE)_REVISION" + _TO + r"(?P<revision>\d+)\s*?$", re.MULTILINE)
"""Which package of a version this is: the 1 in 2.21.5-1."""
_IN_FOLDER = re.compile(r"(?P<name>[A-Za-z][\w+-]*?)-v?(?P<version>\d+(?:\.\d+)+)")
_SHOWN = 12


class VendoredSubmodule(msgspec.Struct, frozen=True, kw_only=True):
    """A submodule as the commit of its parent has it, and what its own repository says where that is there."""

    path: str
    commit: str
    url: str = ""
    branch: str = ""
    nested: bool = False
    """Whether its parent is a submodule itself."""
    here: bool = False
    """Whether its repository is there, with that commit."""
    checked_out: str | None = None
    """The commit that its work tree is at."""
    described: str = ""
    """``git describe --tags --long --abbrev=40`` of the commit; empty where no tag is reachable."""
    annotated: str = ""
    """The same with annotated tags only, which ``git submodule status`` shows."""
    contained: str = ""
    """``git describe --tags --contains``; empty where no tag has the commit in its past."""
    shallow: bool = False
    tags: int = 0
    """Tags that its repository has."""


def of_submodule(module: VendoredSubmodule, *, table: DependencyTable) -> Evidence:
    """What a vendored commit is known to be."""
    name = dependency_of(module.path, module.url, table)
    described, contained = parse_describe(module.described), parse_contains(module.contained)
    spec, found = _bounds(name, described, contained, table)
    notes = [*_trouble(module, described, table, name)]
    certain = found is not None and described is not None and described.commits == 0 and not notes
    return Evidence(
        dependency=name,
        column="vendored",
        role="pin",
        file=module.path,
        text=f"{module.commit} {_said(module, described, contained)}".rstrip(),
        spec=spec or module.commit[:_SHOWN],
        range=found,
        confidence="certain" if certain else "likely" if found is not None else "guess",
        note="; ".join(notes),
    )


def dependency_of(path: str, url: str, table: DependencyTable) -> str:
    """What is vendored in a folder: the repository's name, unless only the folder's is known."""
    repository = url.rstrip("/").removesuffix(".git").rpartition("/")[2]
    names = [name for name in (repository, path.rpartition("/")[2]) if name]
    found = [look_up(table, "submodule", name) for name in names]
    return next((name for name in found if name in table.dependencies), found[-1])


def _bounds(
    name: str, described: TagDistance | None, contained: Contained | None, table: DependencyTable
) -> tuple[str, VersionRange | None]:
    """A commit's version: its tag's; else not before the last tag, not after the next.

    Bounds include the tags' own versions: the copy may still, or already, name them.
    """
    low = _own(name, None if described is None else described.tag, table)
    high = _own(name, None if contained is None else contained.tag, table)
    if described is not None and described.commits == 0 and low is not None:
        return low, ranges.exactly(low)
    if contained is not None and contained.exact and high is not None:
        return high, ranges.exactly(high)
    before, after = (None if text is None else Version(text.removesuffix(".*")) for text in (low, high))
    if before is not None and after is not None and before > after:
        after, high = None, None  # the tag is on another line of releases
    if before is None and after is None:
        return "", None
    text = f"{low}+" if low is not None else ""
    return f"{text} (before {high})".strip() if high is not None else text, ranges.between(before, after)


def _own(name: str, tag: str | None, table: DependencyTable) -> str | None:
    return None if tag is None else own_version(table, name, "tag", tag)


def _said(module: VendoredSubmodule, described: TagDistance | None, contained: Contained | None) -> str:
    parts = [] if described is None else [f"{described.tag}, {_later_by(described)}"]
    if described is not None and described.commits == 0:
        parts = [described.tag]
    if contained is not None and (described is None or described.commits):
        parts.append(f"contained in {module.contained}")
    return ", ".join(parts)


def _later_by(described: TagDistance) -> str:
    return f"{described.commits} commit{'s' * (described.commits != 1)} later"


def _trouble(
    module: VendoredSubmodule, described: TagDistance | None, table: DependencyTable, name: str
) -> Iterator[str]:
    if not module.here:
        yield "not checked out; only its commit is known"
    elif module.checked_out not in {None, module.commit}:
        yield f"a different commit is checked out: {str(module.checked_out)[:_SHOWN]}"
    if module.here and not module.tags:
        yield "its clone has no tags" + (", because it is shallow" if module.shallow else "")
    elif module.here and described is None:
        yield "no tagged commit is an ancestor of this commit" + (
            ", but the clone is shallow" if module.shallow else ""
        )
    elif module.shallow:
        yield "its clone is shallow, so later tags may be missing"
    if described is not None and tag_version(described.tag) is None:
        yield f"tag {described.tag} is not a version"
    annotated = parse_describe(module.annotated)
    if annotated is not None and described is not None and annotated.tag != described.tag:
        status = f"{annotated.tag}, {_later_by(annotated)}"
        yield f"`git submodule status` reports {status}, because it ignores lightweight tags"
    if module.url and _is_fork(module.url, name, table):
        yield f"it is a fork ({_repository(module.url)}), so its tags may differ from upstream's"


def _is_fork(url: str, name: str, table: DependencyTable) -> bool:
    known = table.dependencies.get(name)
    homes = {home.lower() for home in known.homes} if known is not None else set()
    return bool(homes) and "://" in url and not url.startswith("file:") and _repository(url).lower() not in homes


def _repository(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname or ''}{parts.path.rstrip('/').removesuffix('.git')}"


def of_copy(folder: str, files: Mapping[str, str], *, table: DependencyTable, url: str = "") -> tuple[Evidence, ...]:
    """Versions that the files of a vendored copy name.

    Args:
        folder: the copy's folder, from the source tree.
        files: paths from that folder -> content, of those that may tell.
        table: what dependencies are called.
        url: where it comes from, as far as that is known.
    """
    name = dependency_of(folder, url, table)
    named = _IN_FOLDER.fullmatch(folder.rpartition("/")[2])
    found: list[tuple[str, int | None, str, str]] = []
    if named is not None:
        name = dependency_of(named["name"], url, table)
        found.append(("", None, folder, named["version"]))
    known = table.dependencies.get(name)
    macros = known.macros if known is not None else ()
    for path, text in sorted(files.items()):
        found += [(path, *each) for macro in macros if fnmatchcase(path, macro.file) for each in _macro(text, macro)]
        found += [
            (path, line, raw, _own_macro(name, version, table)) for line, raw, version in _named(path, text, name)
        ]
    best = {version: (path, line, raw) for path, line, raw, version in reversed(found)}
    return tuple(
        Evidence(
            dependency=name,
            column="tree",
            role="pin",
            file=f"{folder}/{path}".rstrip("/"),
            line=line,
            text=raw,
            spec=version,
            range=ranges.exactly(version),
            confidence="likely",
        )
        for version, (path, line, raw) in best.items()
    )


def _own_macro(name: str, version: str, table: DependencyTable) -> str:
    """A version in the table's form. What the revision of a package adds to one is known for those in the table."""
    known = table.dependencies.get(name)
    if known is not None and any("macro" in rewrite.of for rewrite in known.versions):
        return own_version(table, name, "macro", version) or version
    return version.partition("-")[0]


def _macro(text: str, macro: Macro) -> Iterator[tuple[int, str, str]]:
    match = re.search(macro.pattern, text)
    if match is None:
        return
    parts = [part for part in match.groups() if part is not None]
    if macro.base is not None:
        number, base = int(parts[0]), macro.base
        parts = [str(number // base**2), str(number // base % base), str(number % base)]
    version = tag_version(".".join(parts))
    if version is not None:
        yield _line(text, match.start()), " ".join(match[0].split())[:120], str(version)


def _named(path: str, text: str, name: str) -> Iterator[tuple[int, str, str]]:
    last = path.rpartition("/")[2]
    if path == "CMakeLists.txt":
        found = project_version(text, file=path)
        if found is not None:
            yield found[1], f"project(... VERSION {found[0]})", found[0]
    elif last in VERSION_FILES and "/" not in path and last != "pyproject.toml":
        words = text.split()
        version = tag_version(words[0]) if len(words) == 1 else None
        if version is not None:
            yield 1, words[0], str(version)
    elif HEADERS.search(path):
        yield from _header(text, re.sub(r"[^a-z0-9]", "", name.removeprefix("lib").lower()))


def _header(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Version macros whose name begins as the dependency's: those of others are common."""
    for match in _STRING.finditer(text):
        version = tag_version(match["version"])
        if version is not None and _is_called(match["stem"], name):
            yield _line(text, match.start()), " ".join(match[0].split())[:120], str(version)
    for match in _TRIPLE.finditer(text):
        if _is_called(match["stem"], name):
            parts = [match["major"], *_later(text, match["stem"])]
            if len(parts) > 1:
                package = _PACKAGE.search(text)
                parts[-1] += f"-{package['revision']}" if package is not None else ""
                yield _line(text, match.start()), " ".join(match[0].split())[:120], ".".join(parts)


def _later(text: str, stem: str) -> Iterable[str]:
    for names in _LATER:
        other = rf"(?:VERSION_)?(?:{'|'.join(names)})(?:_VERSION)?"
        form = rf"{_SET}{re.escape(stem)}_?{other}{_TO}\(?(\d+)\)?"
        found = re.search(form, text, re.MULTILINE)
        if found is None:
            return
        yield found[1]


def _is_called(stem: str, name: str) -> bool:
    plain = re.sub(r"[^a-z0-9]", "", stem.lower())
    return plain == name or (len(name) > 2 and plain.startswith(name))


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
