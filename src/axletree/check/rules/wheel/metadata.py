"""Rules about what a wheel says of itself: name, metadata, tags, RECORD."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import parse_tag
from packaging.utils import canonicalize_name
from packaging.version import Version

from axletree.check.engine import Case, Found, Rule, listing
from axletree.check.rules.wheel.sample import CORE, sample
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata, parse_metadata
from axletree.package.wheel.record import RecordIssue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts


def _unreadable(facts: DistFacts) -> Iterator[Found]:
    for message in facts.wheel.unreadable:
        yield Found(where=facts.wheel.filename, message=message)


def _names_differ(facts: DistFacts) -> Iterator[Found]:
    wheel = facts.wheel
    said = [(f"the folder {wheel.dist_info}", *_split_folder(wheel.dist_info))]
    if wheel.metadata is not None:
        said.append(("METADATA", wheel.metadata.name, wheel.metadata.version))
    for place, name, version in said:
        if canonicalize_name(name) != wheel.name.project:
            yield Found(where=wheel.filename, message=f"{place} says {name!r}, the file name {wheel.name.project!r}")
        elif not _same_version(version, wheel.name.version):
            yield Found(where=wheel.filename, message=f"{place} says {version}, the file name {wheel.name.version}")


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
    wrong = [text for text in (metadata.requires if metadata is not None else ()) if not _is_requirement(text)]
    if wrong:
        more = f", and {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
        message = f"METADATA requires {wrong[0][:120]!r}, which is not a valid requirement (PEP 508){more}"
        yield Found(where=facts.wheel.filename, message=message, evidence=listing(wrong))


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


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
        yield Found(where=wheel.filename, message="WHEEL and the file name have different tags", evidence=evidence)
    if wheel.wheel_info.build != wheel.name.build:
        message = f"WHEEL has the build tag {wheel.wheel_info.build!r}, the file name {wheel.name.build!r}"
        yield Found(where=wheel.filename, message=message)


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
        others = f"; {more} more file{'s are' if more > 1 else ' is'} like it" if more else ""
        evidence = listing([f"{issue.path} {issue.detail}" for issue in issues])
        yield Found(where=first.path, message=f"it {first.detail}{others}", evidence=evidence)


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
_ISSUE = RecordIssue(kind="hash", path=CORE, detail="has sha256=b, but sha256=a is listed")

METADATA_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/metadata-unreadable",
        severity="error",
        title="METADATA, WHEEL or RECORD is missing or damaged",
        why="Installers refuse such a wheel, some only after they have resolved everything else.",
        fix="build or pack the wheel again",
        check=_unreadable,
        cases=lambda: (
            Case(title="no WHEEL file", facts=sample(wheel={"unreadable": ("WHEEL is missing",)}), fires=True),
            Case(title="all three are there", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/name-mismatch",
        severity="error",
        title="The file name disagrees with METADATA or with the name of its folder",
        why=(
            "Resolvers trust the file name and compare it with METADATA after the download: they then give up, or "
            "silently choose another version."
        ),
        fix="rename the wheel to what METADATA says, or pack it again",
        check=_names_differ,
        cases=lambda: (
            Case(title="METADATA has another name", facts=sample(wheel={"metadata": _OTHER_NAME}), fires=True),
            Case(title="METADATA has another version", facts=sample(wheel={"metadata": _OTHER_VERSION}), fires=True),
            Case(title="the folder is another's", facts=sample(wheel={"dist_info": "x-1.0.dist-info"}), fires=True),
            Case(
                title="the same name in another spelling",
                facts=sample(wheel={"dist_info": "Demo-1.0.0.dist-info"}),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/requirement-invalid",
        severity="error",
        title="A requirement of METADATA can't be read",
        why=(
            "pip 24.1 and later reject the whole wheel (`has invalid metadata`), and so does uv unless it can guess "
            "the intended requirement."
        ),
        fix="correct the project's dependencies and build it again: `numpy>=2`, markers behind a semicolon",
        check=_requirements_invalid,
        cases=lambda: (
            Case(title="words without a comma", facts=_requiring("numpy scipy"), fires=True),
            Case(title="a star behind >=", facts=_requiring("numpy>=1.0.*"), fires=True),
            Case(
                title="the older form with brackets",
                facts=_requiring("numpy (>=1.0)", "tqdm; extra == 'all'"),
                fires=False,
            ),
            Case(title="no requirements", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/tags-mismatch",
        severity="error",
        title="The tags in the file name differ from those in the WHEEL file",
        why="The file name decides who installs the wheel; the WHEEL file is what tools read once it is installed.",
        fix="write both from one source: pack the wheel again instead of renaming it",
        check=_tags_differ,
        cases=lambda: (
            Case(
                title="renamed to a manylinux tag by hand",
                facts=sample(wheel={"wheel_info": WheelInfo(tags=("cp311-cp311-linux_x86_64",), purelib=False)}),
                fires=True,
            ),
            Case(
                title="a set of tags, listed one by one",
                facts=sample(filename="demo-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/record-wrong",
        severity="error",
        title="RECORD does not match the content",
        why="Installers check hashes against RECORD, and uninstalling removes what it lists.",
        fix="change files before packing, never inside a finished wheel",
        check=_record_wrong,
        cases=lambda: (
            Case(title="a file was changed", facts=sample(wheel={"record_issues": (_ISSUE,)}), fires=True),
            Case(title="each file is listed with its hash", facts=sample(), fires=False),
        ),
    ),
)
