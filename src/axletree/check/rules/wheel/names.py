"""Rules about the names of a wheel's files: what file systems and other distributions make of them."""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent
from axletree.check.rules.wheel.sample import sample
from axletree.core.grouping import grouped
from axletree.package.libraries.linkage import installed_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from axletree.check.dist import DistFacts

_PREFIX = 70
"""Characters of a usual path to site-packages: ``C:\\Users\\somebody\\AppData\\Local\\Programs\\Python\\...``."""
_WINDOWS_PATH = 260
_KERNEL_PATH = 174
"""rocBLAS on Windows ends the process where the path of a kernel file is longer."""
_KERNELS = re.compile(r"(?:^|/)(?:rocblas|hipblaslt)/library/")
_NAME_BYTES = 255
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_WINDOWS = re.compile(
    r"[<>:\"|?*\\]|[. ](?:/|$)|(?:^|/)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.[^/]*)?(?:/|$)", re.IGNORECASE
)
_REFUSED = "Windows does not allow this file name, or stores the file under a different name"
_COMMON = frozenset(
    {
        *("test", "tests", "testing", "doc", "docs", "example", "examples", "sample", "samples", "demo", "demos"),
        *("benchmark", "benchmarks", "script", "scripts", "tool", "tools", "util", "utils", "build", "dist", "src"),
        *("bin", "lib", "lib64", "include", "share", "etc", "data", "resources", "third_party", "conftest.py"),
        *("setup.py", "setup.cfg", "pyproject.toml", "noxfile.py", "tasks.py", "makefile", "manifest.in", ".github"),
    }
)
_PAPERS = re.compile(
    r"(?:licen[cs]es?|copying|notice|readme|changelog|changes|history|news|authors|contributing|requirements)"
    r"(?:[-_.][^/]*)?",
    re.IGNORECASE,
)


def _foreign(facts: DistFacts, *starts: str) -> bool:
    """Whether the wheel may be installed on systems whose platform tags begin like this."""
    return any(platform.tag.startswith(("any", *starts)) for platform in facts.platforms)


def _installed(facts: DistFacts) -> Iterator[str]:
    """Paths below site-packages."""
    for member in facts.wheel.members:
        place = installed_path(member.path)
        if place is not None:
            yield place


def _together(found: Mapping[str, str]) -> Iterator[Found]:
    """One finding for all paths: what is wrong with the first, and how many are like it."""
    if found:
        first = next(iter(found))
        count = len(found) - 1
        more = f"; {count} more path{'s have' if count > 1 else ' has'} the same problem" if count else ""
        yield Found(first, f"{found[first]}{more}", evidence=listing([*found]))


def _too_long(facts: DistFacts) -> Iterator[Found]:
    sizes = {
        member.path: max(len(part.encode("utf-8", "surrogateescape")) for part in member.path.split("/"))
        for member in facts.wheel.members
        if len(member.path.encode("utf-8", "surrogateescape")) > _NAME_BYTES
    }
    text = f"a part of the path has {{}} bytes, but file systems allow at most {_NAME_BYTES}"
    yield from _together({path: text.format(size) for path, size in sizes.items() if size > _NAME_BYTES})


def _long(facts: DistFacts) -> Iterator[Found]:
    if not _foreign(facts, "win"):
        return
    pure = facts.wheel.name.platform == "any"
    found: dict[str, str] = {}
    for path in sorted(_installed(facts), key=lambda path: (-len(path), path)):
        kernel = not pure and _KERNELS.search(path) is not None
        limit, who = (_KERNEL_PATH, "rocBLAS can open") if kernel else (_WINDOWS_PATH, "Windows allows by default")
        if len(path) > limit - _PREFIX:
            found[path] = (
                f"the path has {len(path)} characters below site-packages; with a typical installation folder "
                f"({_PREFIX} more), it exceeds the {limit} characters that {who}"
            )
    yield from _together(found)


def _collide(facts: DistFacts) -> Iterator[Found]:
    if not _foreign(facts, "win", "macosx"):
        return
    # With the least of all characters between parts, what lies in folders of one name stands together.
    ordered = sorted((_fold(path).replace("/", "\0"), path) for path in _installed(facts))
    found: dict[str, str] = {}
    for (_, before), (_, after) in itertools.pairwise(ordered):
        pair = _same_place(before, after)
        if pair is not None:
            one, other = sorted(pair)
            found.setdefault(one, f"this file has the same name as {other} on systems that ignore case")
    yield from _together(found)


def _fold(text: str) -> str:
    """A name as systems compare it that ignore case."""
    return unicodedata.normalize("NFC", text).casefold()


def _same_place(one: str, other: str) -> tuple[str, str] | None:
    """The files, or the outermost folders of them, that differ but are the same where case is ignored."""
    parts, others = one.split("/"), other.split("/")
    differ = next((at for at, (a, b) in enumerate(zip(parts, others, strict=False)) if a != b), None)
    if differ is None or _fold(parts[differ]) != _fold(others[differ]):
        return None
    return "/".join(parts[: differ + 1]), "/".join(others[: differ + 1])


def _awkward(facts: DistFacts) -> Iterator[Found]:
    windows = _foreign(facts, "win")
    found: dict[str, str] = {}
    for member in facts.wheel.members:
        path = member.path
        if path.isascii() and path.isprintable():
            if windows and _WINDOWS.search(path):
                found[path] = _REFUSED
        elif _CONTROL.search(path):
            found[ascii(path)[1:-1]] = "the name contains control or invisible characters"
        elif unicodedata.normalize("NFC", path) != path:
            found[path] = "the name is not in Unicode's composed form (NFC)"
        elif windows and _WINDOWS.search(path):
            found[path] = _REFUSED
    yield from _together(found)


def _claimed(facts: DistFacts) -> Iterator[Found]:
    own = facts.wheel.name.project.replace("-", "_")
    all_tops = grouped((path.partition("/")[0], path) for path in _installed(facts))
    tops = {top: paths for top, paths in all_tops.items() if top.lower() != own and _is_common(top, paths)}
    if tops:
        names = sorted(tops)
        message = f"the wheel puts {', '.join(names)} directly in site-packages, which all distributions share"
        evidence = tuple(f"{name}: {len(tops[name])} file{'s' if len(tops[name]) > 1 else ''}" for name in names)
        papers = [name for name in names if _is_paper(name, tops[name])]
        yield Found(
            tops[names[0]][0], message, evidence=evidence if len(names) > 1 else (), fix=_moved(papers, len(names))
        )


def _moved(papers: list[str], names: int) -> str:
    if not papers:
        return "move the files into the import package, or exclude them from the wheel"
    if len(papers) == names:
        return "move the files into `.dist-info/licenses` (`license-files` in pyproject.toml), or exclude them"
    return f"move the files into the import package, and {', '.join(papers)} into `.dist-info/licenses`"


def _is_common(top: str, paths: list[str]) -> bool:
    return top.lower() in _COMMON or _is_paper(top, paths)


def _is_paper(top: str, paths: list[str]) -> bool:
    return top in paths and _PAPERS.fullmatch(top) is not None


_WIN = "demo-1.0-cp311-cp311-win_amd64.whl"
_PURE = "demo-1.0-py3-none-any.whl"


def _sample(*files: str, filename: str = _PURE) -> DistFacts:
    return sample(filename=filename, elfs={}, files=files)


NAME_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/name-too-long",
        severity="error",
        title="A file name is longer than file systems allow",
        why="Linux, macOS and Windows allow at most 255 bytes or characters in each part of a path, so the wheel "
        "cannot be installed.",
        fix="shorten the name",
        check=_too_long,
        cases=lambda: (
            fires("a 300-character name", _sample(f"demo/{'x' * 300}.py")),
            silent("a 200-character name", _sample(f"demo/{'x' * 200}.py")),
        ),
    ),
    Rule(
        id="dist/path-long",
        severity="warning",
        title="A path is too long for Windows",
        why="If long paths are not enabled, installation fails with `No such file or directory` or skips the file.",
        fix="shorten the names of folders and files, or leave the file (often test data) out of the wheel",
        check=_long,
        cases=lambda: (
            fires("a 200-character path in a wheel for any system", _sample(f"demo/{'x/' * 95}a.json")),
            fires(
                "a 120-character path of a rocBLAS kernel on Windows",
                _sample(f"demo/rocblas/library/{'K' * 100}.co", filename=_WIN),
            ),
            silent(
                "a 200-character path on Linux",
                _sample(f"demo/{'x/' * 95}a.json", filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl"),
            ),
            silent("100 characters", _sample(f"demo/{'x/' * 45}a.json")),
        ),
    ),
    Rule(
        id="dist/names-collide",
        severity="warning",
        title="Two file names differ only in case",
        why="On Windows and macOS, the second file overwrites the first, and uninstalling fails.",
        fix="rename one of the files",
        check=_collide,
        cases=lambda: (
            fires("Makefile and makefile", _sample("demo/Makefile", "demo/makefile")),
            fires("folders A and a", _sample("demo/A/x.py", "demo/a/y.py")),
            fires("a file and a folder", _sample("demo/a", "demo/a-b", "demo/A/y.py")),
            silent(
                "the same names in a wheel for Linux",
                _sample("demo/A", "demo/a", filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl"),
            ),
            silent("different names", _sample("demo/a.py", "demo/b.py")),
        ),
    ),
    Rule(
        id="dist/name-awkward",
        severity="warning",
        title="Some systems change or reject a file name",
        why="Windows rejects some characters and device names, and drops trailing dots and spaces. File systems "
        "and RECORD disagree on decomposed Unicode. Invisible characters mislead anyone who reads a listing.",
        fix="rename the file",
        check=_awkward,
        cases=lambda: (
            fires("aux.py", _sample("demo/aux.py")),
            fires("a trailing dot", _sample("demo/notes.")),
            fires("a colon", _sample("demo/a:b.txt")),
            fires("a decomposed letter", _sample("demo/u\u0308ber.txt")),
            fires("a control character", _sample("demo/a\x07.txt")),
            silent(
                "a colon in a wheel for Linux",
                _sample("demo/a:b.txt", filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl"),
            ),
            silent("auxiliary.py, console.py", _sample("demo/auxiliary.py", "demo/console.py")),
            silent("a composed letter", _sample("demo/\u00fcber.txt")),
        ),
    ),
    Rule(
        id="dist/top-level-claimed",
        severity="warning",
        title="Files with common names are directly in site-packages",
        why="Two distributions that both contain `tests/__init__.py` or `LICENSE` overwrite each other's files, "
        "and removing one breaks the other. `import tests` may also find the wrong one.",
        fix="move the files into the import package (licenses into `.dist-info/licenses`), or exclude them",
        check=_claimed,
        cases=lambda: (
            fires("tests", _sample("tests/__init__.py", "tests/test_a.py")),
            fires("LICENSE", _sample("LICENSE")),
            fires("lib and include", _sample("lib/x.txt", "include/x.h")),
            silent("tests below the package", _sample("demo/tests/__init__.py", "demo/LICENSE")),
            silent("files that are installed elsewhere", _sample("demo-1.0.data/data/share/doc/LICENSE")),
        ),
    ),
)
