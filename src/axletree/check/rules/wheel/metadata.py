"""Rules about what a wheel says of itself: name, metadata, tags, RECORD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.tags import parse_tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.check.engine import Found, Rule, fires, listing, silent
from axletree.check.rules.wheel.sample import CORE, sample
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata, parse_metadata, parse_requirement
from axletree.package.wheel.record import RecordIssue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts


def _unreadable(facts: DistFacts) -> Iterator[Found]:
    for message in facts.wheel.unreadable:
        yield Found(facts.wheel.filename, message)


def _names_differ(facts: DistFacts) -> Iterator[Found]:
    wheel = facts.wheel
    said = [(f"the folder {wheel.dist_info}", *_split_folder(wheel.dist_info))]
    if wheel.metadata is not None:
        said.append(("METADATA", wheel.metadata.name, wheel.metadata.version))
    for place, name, version in said:
        if canonicalize_name(name) != wheel.name.project:
            yield Found(wheel.filename, f"{place} has the name {name!r}, but the file name has {wheel.name.project!r}")
        elif not _same_version(version, wheel.name.version):
            yield Found(wheel.filename, f"{place} has version {version}, but the file name has {wheel.name.version}")


def _split_folder(folder: str) -> tuple[str, str]:
    name, _, version = folder.removesuffix(".dist-info").rpartition("-")
    return name, version


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except ValueError:
        return one == other


def _requirements_invalid(facts: DistFacts) -> Iterator[Found]:
    metadata = facts.wheel.metadata
    requires = metadata.requires if metadata is not None else ()
    wrong = [text for text in requires if parse_requirement(text) is None]
    if wrong:
        more = f"; {len(wrong) - 1} more {'are' if len(wrong) > 2 else 'is'} not valid" if len(wrong) > 1 else ""
        message = f"METADATA requires {wrong[0][:120]!r}, which is not a valid requirement (PEP 508){more}"
        yield Found(facts.wheel.filename, message, evidence=listing(wrong))


def _tags_differ(facts: DistFacts) -> Iterator[Found]:
    wheel = facts.wheel
    if wheel.wheel_info is None:
        return
    inside = {str(tag) for text in wheel.wheel_info.tags for tag in _tags(text)}
    outside = set(wheel.name.tags)
    if inside != outside:
        evidence = (
            *(f"only in WHEEL: {tag}" for tag in sorted(inside - outside)),
            *(f"only in the file name: {tag}" for tag in sorted(outside - inside)),
        )
        yield Found(wheel.filename, "WHEEL and the file name have different tags", evidence=evidence)
    if wheel.wheel_info.build != wheel.name.build:
        message = f"WHEEL has the build tag {wheel.wheel_info.build!r}, but the file name has {wheel.name.build!r}"
        yield Found(wheel.filename, message)


def _tags(text: str) -> frozenset[object]:
    try:
        return frozenset(parse_tag(text))
    except ValueError:
        return frozenset({text})


def _record_wrong(facts: DistFacts) -> Iterator[Found]:
    """One finding for all files of which the same is wrong."""
    groups: dict[str, list[RecordIssue]] = {}
    for issue in facts.wheel.record_issues:
        groups.setdefault(issue.detail if issue.kind == "unchecked" else issue.kind, []).append(issue)
    for issues in groups.values():
        first, more = issues[0], len(issues) - 1
        others = f"; {more} more file{'s do' if more > 1 else ' does'} not match" if more else ""
        evidence = listing([f"{issue.path}: {issue.detail}" for issue in issues])
        yield Found(first.path, f"{first.detail}{others}", evidence=evidence)


def _requiring(*requirements: str) -> DistFacts:
    lines = [
        "Metadata-Version: 2.1",
        "Name: demo",
        "Version: 1.0",
        *(f"Requires-Dist: {text}" for text in requirements),
    ]
    return sample(wheel={"metadata": parse_metadata("\n".join(lines).encode())})


_OTHER_NAME = create_metadata(name="other", version="1.0")
_OTHER_VERSION = create_metadata(name="demo", version="1.1")
_ISSUE = RecordIssue(kind="hash", path=CORE, detail="the file has sha256=b, but RECORD lists sha256=a")

METADATA_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/metadata-unreadable",
        severity="error",
        title="METADATA, WHEEL or RECORD is missing or damaged",
        why="Installers reject the wheel, some only after they have resolved all other requirements.",
        fix="build or pack the wheel again",
        check=_unreadable,
        cases=lambda: (
            fires("no WHEEL file", sample(wheel={"unreadable": ("WHEEL is missing",)})),
            silent("all three files present", sample()),
        ),
    ),
    Rule(
        id="dist/name-mismatch",
        severity="error",
        title="The file name does not match METADATA or the .dist-info folder",
        why="Resolvers trust the file name and compare it with METADATA after the download. If they differ, "
        "resolvers give up or silently choose a different version.",
        fix="rename the wheel to match METADATA, or pack it again",
        check=_names_differ,
        cases=lambda: (
            fires("a different name in METADATA", sample(wheel={"metadata": _OTHER_NAME})),
            fires("a different version in METADATA", sample(wheel={"metadata": _OTHER_VERSION})),
            fires("a folder with a different name", sample(wheel={"dist_info": "x-1.0.dist-info"})),
            silent("the same name, spelled differently", sample(wheel={"dist_info": "Demo-1.0.0.dist-info"})),
        ),
    ),
    Rule(
        id="dist/requirement-invalid",
        severity="error",
        title="A requirement in METADATA is not valid",
        why="pip 24.1 and later reject the whole wheel (`has invalid metadata`), and so does uv unless it can guess "
        "the intended requirement.",
        fix="correct the project's dependencies and build the wheel again (for example, `numpy>=2`, with markers "
        "after a semicolon)",
        check=_requirements_invalid,
        cases=lambda: (
            fires("two names without a comma", _requiring("numpy scipy")),
            fires("a star after >=", _requiring("numpy>=1.0.*")),
            silent("the older form with parentheses", _requiring("numpy (>=1.0)", "tqdm; extra == 'all'")),
            silent("no requirements", sample()),
        ),
    ),
    Rule(
        id="dist/tags-mismatch",
        severity="error",
        title="The tags in the file name differ from those in the WHEEL file",
        why="Installers use the file name to select the wheel, and other tools read the WHEEL file once the "
        "wheel is installed.",
        fix="change the tags with `axletree retag`, which also updates WHEEL, instead of renaming the file",
        check=_tags_differ,
        cases=lambda: (
            fires(
                "a wheel renamed to a manylinux tag",
                sample(wheel={"wheel_info": WheelInfo(tags=("cp311-cp311-linux_x86_64",), purelib=False)}),
            ),
            silent(
                "a set of tags, with each tag listed",
                sample(filename="demo-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
            ),
        ),
    ),
    Rule(
        id="dist/record-wrong",
        severity="error",
        title="RECORD does not match the wheel's content",
        why="Installers check hashes against RECORD, and uninstalling removes the files that it lists.",
        fix=(
            "unpack the wheel with `axletree unpack` and pack it again with `axletree pack`, which writes a new RECORD"
        ),
        check=_record_wrong,
        cases=lambda: (
            fires("a changed file", sample(wheel={"record_issues": (_ISSUE,)})),
            silent("every file listed with its hash", sample()),
        ),
    ),
)
