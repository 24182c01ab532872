"""Findings that a recipe accepts: which ones, what is left to fail, and waivers that nothing needs."""

from __future__ import annotations

import pytest

from axletree.check.waiving import waive
from axletree.core.findings import Finding, worst
from axletree.plan.actions.packages import Waived
from axletree.view.findings import counted, finding_lines

NEEDED, STACK = "dist/needed-unresolved", "dist/exec-stack"
FINDINGS = (
    Finding(
        rule=NEEDED, severity="error", where="small/lib/one.so", message="needs what nobody brings", fix="bring it"
    ),
    Finding(rule=NEEDED, severity="error", where="small/two.so", message="needs what nobody brings"),
    Finding(rule=STACK, severity="warning", where="small/two.so", message="has an executable stack"),
)


def waiver(rule: str, where: str, reason: str = "known") -> Waived:
    return Waived(rule=rule, where=where, reason=reason)


@pytest.mark.parametrize(
    ("where", "waived"),
    [
        ("small/two.so", ["small/two.so"]),
        ("small/*.so", ["small/two.so"]),
        ("**/one.so", ["small/lib/one.so"]),
        ("small/**", ["small/lib/one.so", "small/two.so"]),
        ("two.so", []),
    ],
)
def test_a_waiver_is_for_one_rule_and_the_places_of_its_pattern(where: str, waived: list[str]) -> None:
    found, unused = waive(FINDINGS, [waiver(NEEDED, where)], ["r.toml:3"])
    assert sorted(finding.where for finding in found if finding.waived) == waived
    assert {finding.rule for finding in found if finding.waived} <= {NEEDED}
    assert worst(found) == ("warning" if len(waived) == 2 else "error")
    assert len(found) == len(FINDINGS)
    assert [finding.where for finding in unused] == ([] if waived else ["r.toml:3"])


def test_all_waived_is_nothing_to_fail_for() -> None:
    found, unused = waive(FINDINGS, [waiver(NEEDED, "**", "the driver's"), waiver(STACK, "**")], ["r:1", "r:2"])
    assert (worst(found), unused) == (None, ())
    assert counted(found) == "3 waived"
    lines = list(finding_lines(found[0]))
    assert lines == [f"waived error small/lib/one.so: needs what nobody brings [{NEEDED}]: the driver's"]


def test_an_unused_waiver_is_told_with_its_line_where_this_audit_decides_about_it() -> None:
    waivers = [waiver(NEEDED, "small/two.so"), waiver(STACK, "other.so"), waiver("dist/tag", "**")]
    _, unused = waive(FINDINGS, waivers, ["r.toml:3", "r.toml:7", ""])
    (finding,) = unused
    assert (finding.rule, finding.severity, finding.where) == ("build/waiver-unused", "warning", "r.toml:7")
    assert finding.message == f"the audit found no {STACK} at 'other.so' to waive"


def test_the_first_waiver_that_fits_gives_the_reason_and_both_are_used() -> None:
    found, unused = waive(FINDINGS, [waiver(STACK, "small/**", "first"), waiver(STACK, "**", "second")], ["a", "b"])
    assert [finding.waived for finding in found if finding.waived] == ["first"]
    assert unused == ()
