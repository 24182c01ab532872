"""A stage that downloads something, although it has no network: who wants what, and which table of a recipe has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.check.diagnosis.in_stage import fetched, line_for, lock_of, required
from axletree.check.diagnosis.linear import expression
from axletree.recipe.sdists import SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.core.setting import StageSetting

OFFLINE = "fetch/offline"
"""The kind of what is found out here."""

Tool = Literal["content", "external", "submodule", "cargo", "pip", "other"]

_HERE = expression(r"\blocalhost\b|\b127\.0\.0\.1\b|::1\b")
_ADDRESS = expression(r"(?P<url>(?:https?|git|ssh|ftp)://[^\s'\"`<>),;\]]+|git@[\w.-]+:[^\s'\"`<>),;\]]+)")
_GIT = expression(r"unable to access '|^Cloning into |Failed to clone ")
_WANTS: tuple[tuple[Tool, str], ...] = (
    ("submodule", r"into submodule path '(?:[^'\n]*/source/)?(?P<name>[^'\n]+)'"),
    ("content", r"\b(?P<name>[\w.+-]+)-populate-(?:gitclone|prefix|stamp|download)"),
    ("content", r"Build step for (?P<name>[\w.+-]+) failed"),
    ("content", r"[/-](?P<name>[\w.+]+)-subbuild/"),
    ("external", r"/(?P<name>[\w.+-]+)-gitclone\.cmake"),
    ("external", r"/download-(?P<name>[\w.+-]+)\.cmake"),
    ("external", r"Performing (?:download|update) step[^\n']{0,80} for '(?P<name>[^'\n]+)'"),
    ("content", r"^-- Populating (?P<name>[\w.+-]+)$"),
    ("external", r"-prefix/src/(?P<name>[\w.+-]+)-stamp/"),
    ("cargo", r"failed to get `(?P<name>[^`\n]+)` as a dependency of package"),
    ("cargo", r"no matching package named `(?P<name>[^`\n]+)` found"),
    ("cargo", r"failed to download `(?P<name>[^`\n ]+)[^`\n]*`"),
    ("cargo", r"Updating (?:\S+ index|git repository)|spurious network error"),
    ("pip", r"(?:satisfies the requirement|No matching distribution found for) (?P<name>[^\s(]+)"),
)
_FINDERS = tuple((tool, expression(pattern)) for tool, pattern in _WANTS)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is downloaded, as far as a log tells."""

    tool: Tool = "other"
    name: str = ""
    """Of the project, the crate, the requirement or the submodule's folder; empty if unknown."""
    url: str = ""
    git: bool = False
    """Whether the address is that of a git repository."""


def is_local(lines: Iterable[str]) -> bool:
    """Whether some lines of a log speak of a server on the machine itself, which a stage may have."""
    return any(_HERE.search(line) for line in lines)


def wanted_by(lines: Iterable[str]) -> Wanted:
    """What wants a network in some lines of a log: the first tool in the order of how much a line tells of it."""
    lines = tuple(lines)
    found = (_ADDRESS.search(line) for line in lines)
    url = next((match.groups["url"].rstrip(".:") for match in found if match is not None), "")
    # Some tools report in git's words what is a file all the same.
    git = bool(url) and not url.endswith(SUFFIXES) and any(_GIT.search(line) for line in lines)
    url = url.rstrip("/") if git else url
    for tool, finder in _FINDERS:
        match = next((hit for line in lines if (hit := finder.search(line)) is not None), None)
        if match is not None:
            return Wanted(tool=tool, name=match.groups.get("name", ""), url=url, git=git)
    return Wanted(url=url, git=git)


def no_network(setting: StageSetting, wanted: Wanted) -> tuple[str, str, str]:
    """Title, cause and fix where something is downloaded in a stage that is cut off."""
    what = "test" if setting.is_test else "build"
    tried = f" The {what} tried to access {wanted.url}." if wanted.url else ""
    cause = (
        "Axletree runs every stage without a network, so that the result depends only on the recipe and its locks; "
        f"no setting on this machine changes that.{tried}"
    )
    if setting.is_test:
        fix = (
            f"Keep the file next to the recipe and list it in {setting.place(f'{setting.table}.files')}, "
            "or leave out the test that downloads it."
        )
        return "The test downloads something, but stages have no network", cause, fix
    return f"{_who(wanted)}, but stages have no network", cause, "\n".join(_advice(wanted, setting))


def _who(wanted: Wanted) -> str:
    name = wanted.name
    url = wanted.url or "something"
    match wanted.tool:
        case "content":
            return f"CMake's FetchContent {name} downloads {url}"
        case "external":
            return f"CMake's ExternalProject {name} downloads {url}"
        case "submodule":
            return f"git clones submodule {name} from {wanted.url or 'its server'}"
        case "cargo":
            return f"cargo downloads {f'crate {name}' if name else 'crates'}"
        case "pip":
            return f"pip downloads {name}"
        case _:
            return "The build downloads something"


def _advice(wanted: Wanted, setting: StageSetting) -> Iterator[str]:
    letters = (letter if letter.isascii() and letter.isalnum() else " " for letter in wanted.name.lower())
    slug = "-".join("".join(letters).split()) or "name"
    match wanted.tool:
        case "submodule":
            yield from fetched(setting, submodules=True)
        case "pip":
            yield from required((wanted.name,), setting)
        case "cargo":
            yield from _vendored(setting)
        case "content":
            yield from _source(slug, wanted, setting)
            yield from _content(wanted.name, f"third_party/{slug}", setting)
        case "external":
            yield from _source(slug, wanted, setting)
            yield (
                f"Then, in a patch, give ExternalProject_Add({wanted.name}) that folder as SOURCE_DIR instead of its "
                "URL or GIT_REPOSITORY."
            )
        case _:
            yield from _source(slug, wanted, setting)
            yield 'If a tool downloads many files, run it in a stage with action = "download" and use that as an input.'


def _source(slug: str, wanted: Wanted, setting: StageSetting) -> Iterator[str]:
    yield f"Add it to the sources in {setting.recipe}:"
    yield f"    [sources.{slug}]"
    if wanted.git:
        yield f'    git = "{wanted.url}"'
        yield '    ref = "TAG OR COMMIT"'
    else:
        yield f'    url = "{wanted.url or "URL"}"'
        yield '    sha256 = "DIGEST OF THE FILE"'
    yield f'    into = "third_party/{slug}"'
    yield "then lock the recipe:"
    yield f"$ {lock_of(setting)}"


def _content(name: str, folder: str, setting: StageSetting) -> Iterator[str]:
    """How CMake is told that it has the content of a FetchContent already."""
    table = setting.table or "stages.NAME"
    option = f"FETCHCONTENT_SOURCE_DIR_{name.upper()}"
    if setting.action == "run":
        place = setting.place(f"{setting.table}.commands")
        yield f"Then add -D{option}=$AXLETREE_SOURCE/{folder} to the cmake command in {place}."
        return
    key, values = ("options", {option: folder})
    if setting.action != "compile":
        key, values = ("env", {"CMAKE_ARGS": f"-D{option}={folder}"})
    yield f"Then set {setting.place(f'{table}.{key}')}:"
    yield f"    {line_for(key, values, setting)}"


def _vendored(setting: StageSetting) -> Iterator[str]:
    yield f"Vendor the crates in a stage with a network. In {setting.recipe}, add:"
    yield "    [stages.crates]"
    yield '    action = "download"'
    yield '    tools = ["cargo", "rustc"]'
    yield '    commands = ["cargo vendor --locked $AXLETREE_OUT/vendor"]'
    yield f"and set this in [{setting.table or 'stages.NAME'}]:"
    yield '    inputs = ["crates"]'
    yield "Its commands must create a .cargo/config.toml that replaces the registry with $AXLETREE_IN_CRATES/vendor."
