"""Audits of what is no wheel: unpacked trees and conda packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.check.conda_audit import audit_conda
from axletree.check.rules.wheel.sample import POLICIES, PROVIDERS
from axletree.check.tree import Distribution, audit_tree
from axletree.package.conda.needs import LibraryOwners
from axletree.package.conda.neighbours import Neighbours
from axletree.package.conda.reader import CondaMember
from axletree.package.wheel.info import WheelInfo
from axletree.package.wheel.metadata import create_metadata
from axletree.package.wheel.tree import scan_tree
from support.conda import demo, scanned, text
from support.wheels import make_elf

if TYPE_CHECKING:
    from axletree.check.audit import AuditReport
    from axletree.package.conda.reader import CondaFacts
    from axletree.package.wheel.tree import TreeScan

NEEDS: dict[str, tuple[str, ...]] = {"libc.so.6": ("GLIBC_2.17",)}
GOOD = make_elf(needed=("libc.so.6",), needs=NEEDS, soname="libdemo.so")
NEW = make_elf(needed=("libc.so.6",), needs={"libc.so.6": ("GLIBC_2.34",)})
LOOSE = make_elf(needed=("libc.so.6",), needs=NEEDS, stack=7)
"""It asks for an executable stack."""
TAG = "cp311-cp311-manylinux_2_17_x86_64"


def audited(files: dict[str, bytes], **options: object) -> AuditReport:
    given = {"policies": POLICIES, "providers": PROVIDERS, **options}
    return audit_tree(scan_tree(files.items()), label="site-packages", files=sorted(files), **given)  # type: ignore[arg-type]


def ids(report: AuditReport) -> list[str]:
    return [finding.rule for finding in report.findings]


def dist(name: str, *requires: str, tags: tuple[str, ...] = ()) -> Distribution:
    info = WheelInfo(tags=tags, purelib=False) if tags else None
    return Distribution(metadata=create_metadata(name=name, version="1.0", requires=requires), wheel_info=info)


def test_a_sound_tree_has_no_finding_and_says_what_is_in_it() -> None:
    report = audited({"demo/libdemo.so": GOOD, "demo/a.py": b"", "demo/b.dll": b"MZ" + bytes(200)})
    assert ids(report) == []
    assert (report.file, report.project, report.version) == ("site-packages", "site-packages", "0")
    assert (report.files, report.elf_files, report.glibc, report.size) == (3, 1, "2.17", 0)
    assert report.tags == ("py3-none-linux_x86_64",)
    assert [need.soname for need in report.needs] == ["libc.so.6"]


def test_machine_code_is_judged_as_in_a_wheel() -> None:
    report = audited({"demo/libdemo.so": LOOSE, "demo/cut.so": GOOD[:100]})
    assert {"dist/stack-executable", "dist/elf-damaged"} <= set(ids(report))
    assert report.failed


@pytest.mark.parametrize(
    ("distributions", "owner", "rules"),
    [
        ((), "undeclared", []),  # nothing says what is required, so that is not judged
        ((dist("demo"),), "undeclared", ["dist/provider-undeclared"]),
        ((dist("demo", "torch"),), "distribution", []),
        ((dist("demo"), dist("torch")), "distribution", []),  # it lies in the same tree
    ],
)
def test_who_brings_what_it_needs(distributions: tuple[Distribution, ...], owner: str, rules: list[str]) -> None:
    files = {"demo/_c.so": make_elf(needed=("libtorch.so", "libc.so.6"), needs=NEEDS)}
    report = audited(files, distributions=distributions)
    assert {need.soname: (need.owner, need.by) for need in report.needs}["libtorch.so"] == (owner, "torch")
    assert ids(report) == rules
    given = audited(files, provided_by={"other": ("libtorch.so",)}, distributions=[dist("demo", "other")])
    assert {need.soname: (need.owner, need.by) for need in given.needs}["libtorch.so"] == ("distribution", "other")


def test_the_one_distribution_of_a_tree_gives_name_and_tags() -> None:
    tags = (TAG, "cp311-cp311-manylinux2014_x86_64", "odd")
    report = audited({"demo/_c.so": GOOD}, distributions=[dist("Demo_X", tags=tags)])
    assert (report.project, report.version) == ("demo-x", "1.0")
    assert set(report.tags) == set(tags[:2])
    two = audited({"demo/_c.so": GOOD}, distributions=[dist("a", tags=tags), dist("b", tags=tags)])
    assert two.project == "site-packages"


def test_tags_are_judged_only_where_there_are_some_or_something_was_promised() -> None:
    files = {"demo/_c.so": NEW}
    assert ids(audited(files)) == []
    assert ids(audited(files, distributions=[dist("demo")])) == []
    tagged = audited(files, distributions=[dist("demo", tags=(TAG,))])
    assert "dist/glibc-above-tag" in ids(tagged)
    promised = audited(files, glibc="2.28")
    assert "dist/glibc-above-promise" in ids(promised)
    assert "dist/glibc-above-promise" not in ids(audited(files, glibc="2.34"))
    wanted = audited(files, wanted="manylinux_2_17_x86_64")
    assert "dist/policy-unmet" in ids(wanted)
    assert ids(audited(files, glibc="2.28", rules=())) == []


OWNERS = LibraryOwners(known=Neighbours(), providers=(), names={}, others={})


def conda(files: dict[str, bytes], **fields: object) -> tuple[CondaFacts, TreeScan]:
    facts = scanned(demo(**fields), [text(path, data) for path, data in files.items()])
    return facts, scan_tree(files.items())


def test_a_sound_conda_package() -> None:
    facts, code = conda({"lib/libdemo.so": GOOD, "etc/a": b"x"}, depends=("python >=3.11", "__glibc >=2.17,<3.0.a0"))
    report = audit_conda(facts, code, policies=POLICIES, owners=OWNERS)
    assert ids(report) == []
    assert report.verdict == "a conda package for linux-64, glibc >=2.17,<3.0.a0"
    assert (report.file, report.project, report.version, report.tags) == (
        *("demo-1.0-h1234567_0.conda", "demo", "1.0", ("h1234567_0",)),
    )
    assert (report.files, report.elf_files, report.glibc, report.size) == (2, 1, "2.17", facts.size)
    assert report.needs == ()  # other packages of the prefix bring what it needs
    assert report.compared == ("known paths of 0 packages",)


@pytest.mark.parametrize(("glibc", "fires"), [(None, False), ("2.28", True), ("2.34", False)])
def test_the_glibc_that_a_conda_package_may_need(glibc: str | None, fires: bool) -> None:  # noqa: FBT001
    facts, code = conda({"lib/libdemo.so": NEW})
    report = audit_conda(facts, code, policies=POLICIES, owners=OWNERS, glibc=glibc)
    assert ("dist/glibc-above-promise" in ids(report)) == fires
    assert report.verdict == "a conda package for linux-64"


@pytest.mark.parametrize("used", [False, True])
def test_a_driver_that_a_conda_package_needs_without_a_use(used: bool) -> None:  # noqa: FBT001
    elf = make_elf(
        needed=("libc.so.6", "libcuda.so.1"), needs=NEEDS, undefined=("cuInit",) if used else ("cudaMalloc",)
    )
    facts, code = conda({"lib/libdemo.so": elf})
    report = audit_conda(facts, code, policies=POLICIES, owners=msgspec.structs.replace(OWNERS, providers=PROVIDERS))
    assert ids(report) == ([] if used else ["dist/driver-unused"])


def test_findings_about_the_package_and_about_its_code_come_worst_first() -> None:
    facts, code = conda({"lib/libdemo.so": LOOSE})
    nameless = audit_conda(msgspec.structs.replace(facts, index=None), code, policies=POLICIES, owners=OWNERS)
    assert nameless.verdict == "a conda package for an unspecified platform"
    report = audit_conda(msgspec.structs.replace(facts, version="1.1"), code, policies=POLICIES, owners=OWNERS)
    assert {"conda/name", "dist/stack-executable"} <= set(ids(report))
    members = tuple(msgspec.structs.replace(member, elf=False) for member in facts.members)
    unlisted = msgspec.structs.replace(facts, members=(*members, CondaMember(path="etc/x", kind="file", size=1)))
    mixed = audit_conda(unlisted, scan_tree([("lib/libdemo.so", LOOSE[:100])]), policies=POLICIES, owners=OWNERS)
    assert [(finding.rule, finding.severity) for finding in mixed.findings] == [
        ("dist/elf-damaged", "error"),
        ("conda/file-unlisted", "warning"),
    ]
