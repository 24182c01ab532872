"""What is wrong with conda packages that exist: each by itself, and several that are to be installed together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.core.trees import all_safe_paths, is_safe_path
from axletree.package.conda.model import link_place, wrong_pyc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from axletree.package.conda.info import PathEntry
    from axletree.package.conda.reader import CondaFacts, CondaMember

Kind = Literal[
    "unreadable", "name", "unsafe", "twice", "case", "missing", "extra", "size", "hash", "type", "link", "prefix",
    "files", "pyc", "clobber", "pin", "run-exports",
]  # fmt: skip


class CondaIssue(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a package."""

    kind: Kind
    package: str
    """File name."""
    path: str
    """Path in the package, or the field that is meant; empty where the package as a whole is."""
    detail: str
    same: bool = False
    """Of a clobber: whether all packages have the same content there."""


def check_conda(facts: CondaFacts) -> tuple[CondaIssue, ...]:
    """Compare what a package says with what it holds; empty where all is well.

    ``missing`` is listed in ``paths.json``, but not in the archive; ``extra`` the other way round. ``case``: paths that
    differ only in case, an issue where file systems may not tell them apart.
    """
    found = [*_identity(facts), *_safety(facts)]
    if facts.paths is not None:
        found += _listing(facts, facts.paths)
    if facts.files is not None and facts.paths is not None:
        listed = {entry.path for entry in facts.paths if entry.path_type != "directory"}
        for path in sorted(listed ^ set(facts.files)):
            where = "paths.json" if path in listed else "files"
            found.append(("files", path, f"only info/{where} lists the file"))
    return tuple(CondaIssue(kind=k, package=facts.filename, path=p, detail=d) for k, p, d in found)


def clobbers(packages: Sequence[CondaFacts]) -> tuple[CondaIssue, ...]:
    """Paths that several packages hold: installers let one win and do not say so.

    A path that is a file in one and a folder in another is among them. Files of ``noarch: python`` packages are
    compared with those that lie in the site-packages of any Python.
    """
    owners: dict[str, dict[str, str]] = defaultdict(dict)
    folders: dict[str, str] = {}
    for facts in packages:
        contents = {member.path: member.sha256 for member in facts.members}
        for member in facts.members:
            if member.kind == "folder":
                continue
            place = _place(member.path)
            owners[place].setdefault(facts.filename, _content(member, contents))
            parent = place.rpartition("/")[0]
            while parent and parent not in folders:
                folders[parent] = facts.filename
                parent = parent.rpartition("/")[0]
    found: list[CondaIssue] = []
    for path, holders in sorted(owners.items()):
        first, *others = holders
        if others:
            same = len(set(holders.values())) == 1
            detail = f"another package contains {'the same file' if same else 'a different file with this path'}: "
            issue = CondaIssue(kind="clobber", package=first, path=path, detail=detail, same=same)
        elif path in folders:
            others = [folders[path]]
            issue = CondaIssue(
                kind="clobber", package=first, path=path, detail="the path is a folder in another package: "
            )
        else:
            continue
        found.append(msgspec.structs.replace(issue, detail=issue.detail + ", ".join(sorted(others))))
    return tuple(found)


def _content(member: CondaMember, contents: Mapping[str, str]) -> str:
    """What stands for the content of a path."""
    if member.kind == "link":
        return f"-> {member.target}"
    return contents.get(member.target, "") if member.kind == "hardlink" else member.sha256


def check_siblings(packages: Sequence[CondaFacts], *, exact: bool = True) -> tuple[CondaIssue, ...]:
    """Whether packages of one build hold together: exact pins both ways, and run exports that name both.

    Without the pin back a solver may put a sibling of another variant beside one; without the sibling's run exports
    what builds against the dependent loses the library that it really links to. Packages without files (metapackages)
    need neither.

    Args:
        packages: of one build.
        exact: whether dependents must name the very build of a sibling; else they need only take it.
    """
    by_name = {facts.index.name: facts for facts in packages if facts.index}
    found: list[CondaIssue] = []
    for facts in packages:
        for spec in facts.index.depends if facts.index else ():
            name, _, rest = spec.partition(" ")
            other = by_name.get(name)
            if other is not None and other is not facts:
                found += _sibling(facts, other, rest, exact=exact)
    return tuple(found)


def _sibling(facts: CondaFacts, other: CondaFacts, rest: str, *, exact: bool) -> Iterator[CondaIssue]:
    def issue(kind: Kind, package: CondaFacts, path: str, detail: str) -> CondaIssue:
        return CondaIssue(kind=kind, package=package.filename, path=path, detail=detail)

    version, _, build = rest.strip().lstrip("=").replace("=", " ").partition(" ")
    same = (version, build.strip()) == (other.version, other.build)
    taken = _RANGE.search(version) or (version == other.version and fnmatchcase(other.build, build.strip() or "*"))
    if not same and (exact or not taken):
        wanted = f"{'exactly ' if exact else ''}{other.name} {other.version} {other.build}"
        yield issue(
            "pin", facts, "depends", f"the package depends on {other.name} {rest}".rstrip() + f" instead of {wanted}"
        )
    if not facts.members or not other.members or other.index is None:
        return
    back = [spec for spec in (*other.index.constrains, *other.index.depends) if spec.split(" ")[0] == facts.name]
    if not any(facts.version in spec for spec in back):
        detail = (
            f"the package must constrain {facts.name} to {facts.version}, because {facts.name} depends on this package"
        )
        yield issue("pin", other, "constrains", detail)
    if _exported(other) and not _exported(other) & _exported(facts):
        detail = f"the run exports do not include {other.name}, which packages built against this one also need"
        yield issue("run-exports", facts, "run_exports", detail)


def _exported(facts: CondaFacts) -> set[str]:
    exports = facts.run_exports
    return {spec.split(" ")[0] for spec in (*exports.weak, *exports.strong)} if exports else set()


_RANGE = re.compile(r"[<>!~*,|]|^$")
"""What is in a version that names more than one: which it takes is the solver's business."""
_Found = tuple[Kind, str, str]


def _identity(facts: CondaFacts) -> Iterator[_Found]:
    for sentence in facts.unreadable:
        yield "unreadable", "", sentence
    if facts.index is not None:
        for field in ("name", "version", "build"):
            inside, outside = getattr(facts.index, field), getattr(facts, field)
            if inside != outside:
                yield "name", field, f"the value is {inside!r} in info/index.json, but {outside!r} in the file name"
    if facts.paths is None and not any("paths.json" in sentence for sentence in facts.unreadable):
        yield "unreadable", "", "the package has no info/paths.json"


def _safety(facts: CondaFacts) -> Iterator[_Found]:
    noarch = facts.index is not None and facts.index.noarch == "python"
    counts = Counter(member.path for member in facts.members)
    links = {member.path for member in facts.members if member.kind == "link"}
    cases: dict[str, str] = {}
    safe = all_safe_paths([member.path for member in facts.members])
    for member in facts.members:
        path = member.path
        if not (safe or is_safe_path(path)):
            yield "unsafe", repr(path)[1:-1][:300], "the path leads outside the prefix"
            continue
        if counts[path] > 1:
            yield "twice", path, "the file occurs twice in the archive"
        if member.kind == "link" and link_place(path, member.target) is None:
            yield "link", path, f"the link points outside the prefix, to {member.target[:200]!r}"
        if links and any(parent in links for parent in _parents(path)):
            yield "unsafe", path, "the path is below a symbolic link in the package"
        other = cases.setdefault(path.lower(), path)
        if other != path and not (facts.index and (facts.index.subdir or "").startswith("linux")):
            yield "case", path, f"the path differs from {other} only in case"
        if (wrong := wrong_pyc(path, noarch=noarch)) is not None:
            yield "pyc", path, wrong


def _parents(path: str) -> Iterator[str]:
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]


def _listing(facts: CondaFacts, paths: Sequence[PathEntry]) -> Iterator[_Found]:
    members = {member.path: member for member in facts.members}
    listed: set[str] = set()
    safe = all_safe_paths([entry.path for entry in paths])
    for entry in paths:
        if not (safe or is_safe_path(entry.path)):
            yield "unsafe", repr(entry.path)[1:-1][:300], "info/paths.json lists a path that leads outside the prefix"
        elif entry.path in listed:
            yield "twice", entry.path, "info/paths.json lists the file twice"
        elif (member := members.get(entry.path)) is None:
            if entry.path_type != "directory":
                yield "missing", entry.path, "info/paths.json lists the file, but the archive does not contain it"
        else:
            yield from _compare(entry, member, members)
        listed.add(entry.path)
    for path, member in members.items():
        if path not in listed and member.kind != "folder":
            yield "extra", path, "the archive contains the file, but info/paths.json does not list it"


def _compare(entry: PathEntry, member: CondaMember, members: Mapping[str, CondaMember]) -> Iterator[_Found]:
    is_link = member.kind == "link"
    if is_link != (entry.path_type == "softlink"):
        yield (
            "type",
            entry.path,
            f"info/paths.json lists a {entry.path_type}, but the archive contains a {member.kind}",
        )
        return
    if is_link or member.kind == "folder":
        return
    true = member if member.kind == "file" else members.get(member.target)
    if true is None or true.kind != "file":
        yield (
            "link",
            entry.path,
            f"the hard link points to {member.target[:200]!r}, which is not a file in the package",
        )
        return
    if entry.size_in_bytes is not None and entry.size_in_bytes != true.size:
        yield "size", entry.path, f"the file has {true.size} bytes, but info/paths.json lists {entry.size_in_bytes}"
    if entry.sha256 is not None and entry.sha256 != true.sha256:
        yield "hash", entry.path, f"the file has SHA-256 {true.sha256}, but info/paths.json lists {entry.sha256[:80]}"
    if entry.prefix_placeholder is None and true.prefix and not entry.path.endswith(".pyc"):
        yield (
            "prefix",
            entry.path,
            (
                "the file contains its build prefix, but info/paths.json does not list it as a file that needs "
                "prefix replacement"
            ),
        )
    elif entry.prefix_placeholder is not None and true.prefix is None:
        yield "prefix", entry.path, "info/paths.json lists a prefix that the file does not contain"
    elif entry.file_mode == "text" and true.prefix == "binary":
        yield (
            "prefix",
            entry.path,
            (
                "info/paths.json lists the file as text, but it contains NUL bytes, so its prefix would be "
                "replaced incorrectly"
            ),
        )


_SITE = re.compile(r"(?:lib/python\d+\.\d+t?/)?site-packages/")


def _place(path: str) -> str:
    """Where a path is installed, the same for every Python."""
    if path.startswith("python-scripts/"):
        return f"bin/{path.removeprefix('python-scripts/')}"
    return _SITE.sub("site-packages/", path, count=1) if _SITE.match(path) else path
