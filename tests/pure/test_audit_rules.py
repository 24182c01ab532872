"""Each rule fires and stays silent in the cases that it carries, and says enough when it fires."""

from __future__ import annotations

import re
from typing import Any

import pytest

from axletree.check.audit import audit_buffer
from axletree.check.document import render_rules
from axletree.check.engine import Case, Rule, apply_rules
from axletree.check.rules.archive import ARCHIVE_RULES
from axletree.check.rules.asked import ASKED_RULES
from axletree.check.rules.build import BUILD_RULES
from axletree.check.rules.compiling import COMPILING_RULES
from axletree.check.rules.conda import CONDA_RULES
from axletree.check.rules.conda_beside import BESIDE_RULES
from axletree.check.rules.image import IMAGE_RULES
from axletree.check.rules.plan import LOCK_RULES, PLAN_RULES, REPUBLISHING_RULES
from axletree.check.rules.wheel.all import DIST_RULES
from axletree.check.rules.wheel.sample import CORE, POLICIES, library, sample
from axletree.check.waiving import WAIVER_RULES
from axletree.core.errors import IntegrityError
from axletree.core.units import format_bytes
from axletree.package.wheel.record import RecordIssue
from support.wheels import demo_metadata, make_elf, wheel_bytes

RULES: list[Rule[Any]] = [
    *PLAN_RULES,
    *LOCK_RULES,
    *WAIVER_RULES,
    *REPUBLISHING_RULES,
    *BUILD_RULES,
    *ASKED_RULES,
    *COMPILING_RULES,
    *IMAGE_RULES,
    *ARCHIVE_RULES,
    *DIST_RULES,
    *CONDA_RULES,
    *BESIDE_RULES,
]
CASES = [pytest.param(rule, case, id=f"{rule.id}: {case.title}") for rule in RULES for case in rule.cases()]
TAG = "cp311-cp311-manylinux_2_17_x86_64"
NAME = f"demo-1.0-{TAG}.whl"


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_case(rule: Rule[Any], case: Case[Any]) -> None:
    found = list(rule.check(case.facts))
    assert bool(found) == case.fires
    for each in found:
        assert each.where
        assert each.message
        assert not each.message.endswith(".")
        assert "; or " not in (each.fix or rule.fix)  # another fix is another line


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rule_is_complete(rule: Rule[Any]) -> None:
    assert re.fullmatch(r"(build|dist|archive|conda)/[a-z-]+", rule.id)
    assert {case.fires for case in rule.cases()} == {True, False}
    assert rule.title
    assert rule.why.endswith(".")
    assert rule.fix


def test_ids_are_unique() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_a_silent_case_breaks_no_other_rule() -> None:
    """A good wheel gets no finding above info."""
    assert apply_rules(DIST_RULES, sample()) == ()


def test_findings_come_worst_first_with_the_rules_fix() -> None:
    facts = sample(
        filename="demo-1.0-cp311-cp311-linux_x86_64.whl",
        elfs={CORE: library(symbol_table=5 << 20, needed=("libx.so", "libc.so.6"), runpath=("/usr/local/lib",))},
    )
    findings = apply_rules(DIST_RULES, facts)
    assert [(finding.severity, finding.rule) for finding in findings] == [
        ("error", "dist/needed-unresolved"),
        ("warning", "dist/rpath-absolute"),
        ("warning", "dist/platform-unportable"),
        ("info", "dist/never-loaded"),
    ]
    assert findings[0].where == CORE
    assert "libx.so" in findings[0].message
    assert findings[0].fix is not None


def test_what_is_alike_is_one_finding() -> None:
    changed = [
        RecordIssue(kind="hash", path=f"demo/{name}.py", detail=f"has sha256={name}, but sha256=x is listed")
        for name in "abc"
    ]
    issues = (
        *changed,
        RecordIssue(kind="missing", path="demo/d.py", detail="the file is in the wheel, but not listed in RECORD"),
    )
    needs = ("libx.so", "liby.so", "libc.so.6")
    facts = sample(elfs={CORE: library(needed=needs)}, wheel={"record_issues": issues})
    found = {(finding.where, finding.message, len(finding.evidence)) for finding in apply_rules(DIST_RULES, facts)}
    assert found == {
        ("demo/a.py", "has sha256=a, but sha256=x is listed; 2 more files do not match", 3),
        ("demo/d.py", "the file is in the wheel, but not listed in RECORD", 0),
        (CORE, "no distribution provides libx.so, liby.so, which this file needs", 0),
    }


def test_the_page_names_every_rule_and_case() -> None:
    page = render_rules([("What the audit reports about wheels", DIST_RULES)])
    for rule in DIST_RULES:
        assert f"## {rule.id} " in page
        assert all(case.title in page for case in rule.cases())


def test_an_audit_from_bytes_to_findings() -> None:
    core = make_elf(
        needed=("libc10.so", "libc.so.6"),
        needs={"libc.so.6": ("GLIBC_2.17", "GLIBC_2.2.5")},
        undefined=("PyModule_Create2",),
        exported=("PyInit__core",),
    )
    files = {"demo/__init__.py": b"", "demo/_core.so": core}
    providers = {"torch": ["libc10*.so"]}
    bare = audit_buffer(wheel_bytes(files, tag=TAG), filename=NAME, policies=POLICIES, provided_by=providers)
    assert [finding.rule for finding in bare.findings] == ["dist/provider-undeclared"]
    assert bare.failed
    data = wheel_bytes(files, tag=TAG, metadata=demo_metadata(requires=("torch==2.13.0",)))
    good = audit_buffer(data, filename=NAME, policies=POLICIES, provided_by=providers)
    assert good.findings == ()
    assert not good.failed
    assert (good.project, good.version, good.elf_files, good.glibc) == ("demo", "1.0", 1, "2.17")
    assert good.floors == {"x86_64": "manylinux_2_17_x86_64"}
    assert [(need.soname, need.owner) for need in good.needs] == [
        ("libc.so.6", "system"),
        ("libc10.so", "distribution"),
    ]


def test_what_is_no_wheel_is_an_error_not_a_finding() -> None:
    with pytest.raises(IntegrityError):
        audit_buffer(b"PK", filename=NAME, policies=POLICIES)


def test_one_needless_file_is_told_where_it_is_and_several_with_the_wheel() -> None:
    old, own = "demo/__pycache__/a.cpython-39.pyc", "demo/__pycache__/a.cpython-311.pyc"
    told = {
        (finding.where, finding.message)
        for files in [("demo/.DS_Store", old), ("demo/.DS_Store", "demo/core.py~", old, own)]
        for finding in apply_rules(DIST_RULES, sample(elfs={}, files=files))
        if finding.rule in {"dist/litter", "dist/bytecode"}
    }
    size = sample(files=("demo/.DS_Store",)).wheel.members[-1].size
    one, two = format_bytes(size), format_bytes(2 * size)
    assert told == {
        ("demo/.DS_Store", f"this is a file ({one}) left behind by editors, operating systems or builds"),
        (NAME, f"the wheel contains 2 files ({two}) left behind by editors, operating systems or builds"),
        (old, f"this is a file ({one}) of compiled Python code for a different Python version"),
        (NAME, f"the wheel contains 2 files ({two}) of compiled Python code, 1 of them for a different Python version"),
    }


def _fixes(rule_id: str) -> dict[str, str]:
    """Title of each case that fires -> the fixes of its findings."""
    rule = next(rule for rule in RULES if rule.id == rule_id)
    return {
        case.title: "\n".join(found.fix or rule.fix for found in rule.check(case.facts))
        for case in rule.cases()
        if case.fires
    }


def test_only_licenses_are_sent_to_the_folder_for_licenses() -> None:
    fixes = _fixes("dist/top-level-claimed")
    assert "licenses" not in fixes["tests"]
    assert "licenses" not in fixes["lib and include"]
    assert ".dist-info/licenses" in fixes["LICENSE"]


def test_a_variable_that_never_reached_cmake_is_not_said_to_be_overridden() -> None:
    fixes = _fixes("build/option-different")
    assert "overrides" in fixes["a different value"]
    assert "check the spelling" in fixes["a variable that never reached CMake"]


def test_a_copied_openmp_runtime_is_left_out_of_the_repair() -> None:
    fixes = _fixes("dist/openmp-runtime-twice")
    fix = fixes["a vendored libgomp and torch's own"]
    assert "leaves libgomp.so.1.0.0 to torch" in fix
    assert "auditwheel repair --exclude 'libgomp.so*'" in fix
