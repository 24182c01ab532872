"""A build that accepts a finding of the audit, and says so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.envelopes import events_of

if TYPE_CHECKING:
    from pathlib import Path

RECIPE = """\
name = "small"
version = "1.0"
source = { path = "src" }
[axes]
gpu = ["cpu", "cu130"]
[stages.lib]
action = "run"
axes = ["gpu"]
tools = ["cc"]
commands = [
  "mkdir $AXLETREE_OUT/small",
  "echo 'int nobody;' | cc -shared -fPIC -x c - -Wl,-soname,libnobody.so.1 -o libnobody.so",
  "cc -shared -fPIC {gpu}.c -L. -Wl,--no-as-needed -lnobody -o $AXLETREE_OUT/small/a.so",
]
[packages.small]
from = "lib"
local = "{gpu}"
index = "{gpu}"
"""
WAIVER = """\
[[packages.small.waive]]
rule = "dist/needed-unresolved"
where = "small/*.so"
reason = "the card's driver brings it"
"""


@pytest.fixture
def build(tmp_path: Path) -> Any:
    if shutil.which("cc") is None:
        pytest.skip("needs cc")
    (tmp_path / "src").mkdir()
    for gpu in ("cpu", "cu130"):
        (tmp_path / "src" / f"{gpu}.c").write_text("int a(void) { return 2; }\n")

    def call(recipe: str, *options: str) -> tuple[int, list[dict[str, Any]], str]:
        """Exit code, findings of audits, and what was said."""
        (tmp_path / "small.toml").write_text(recipe)
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "AXLETREE_STORE": str(tmp_path / "store")}
        command = [sys.executable, "-P", "-m", "axletree", "build", "small.toml", "--keep-going", *options]
        done = subprocess.run(
            [*command, "--json"], capture_output=True, text=True, check=False, cwd=tmp_path, env=environ
        )
        events = events_of(done.stdout)
        found = [
            finding
            for event in events
            if event["event"] == "stage-finished" and event["stage"].startswith("audit:")
            for finding in event.get("findings", ())
        ]
        return done.returncode, found, done.stderr + json.dumps(events)

    return call


def test_a_waived_finding_is_reported_with_its_reason_and_fails_nothing(build: Any) -> None:
    code, found, said = build(RECIPE)
    assert code == 1, said
    assert {(each["rule"], each["severity"]) for each in found if each["severity"] == "error"} == {
        ("dist/needed-unresolved", "error")
    }
    code, found, said = build(RECIPE + WAIVER)
    assert code == 0, said
    waived = [each for each in found if each.get("waived")]
    assert [(each["where"], each["waived"]) for each in waived] == [("small/a.so", "the card's driver brings it")] * 2
    assert not [each for each in found if each["rule"] == "build/waiver-unused"]


def test_a_waiver_that_nothing_needs_is_a_warning_with_its_line(build: Any) -> None:
    waiver = WAIVER + 'when = { gpu = "cpu" }\n' + WAIVER.replace("small/*.so", "small/b.so")
    code, found, said = build(RECIPE + waiver)
    assert code == 1, said
    lines = (RECIPE + waiver).splitlines()
    unused = {each["where"]: each["severity"] for each in found if each["rule"] == "build/waiver-unused"}
    at = lines.index('where = "small/b.so"') - 1  # the table's own line
    assert unused == {f"small.toml:{at}": "warning"}
    errors = [each for each in found if each["severity"] == "error" and not each.get("waived")]
    assert len(errors) == 1, "the waiver is for the CPU alone"


@pytest.mark.parametrize(
    ("rule", "hint"),
    [("dist/needed-unresolvd", "did you mean 'dist/needed-unresolved'?"), ("xyz", "`axletree rules` lists the rules")],
)
def test_a_rule_that_no_audit_has_is_an_error_with_its_line(build: Any, rule: str, hint: str) -> None:
    code, _, said = build(RECIPE + WAIVER.replace("dist/needed-unresolved", rule))
    assert code == 2
    assert f"packages.small.waive[0].rule: unknown audit rule '{rule}'" in said
    assert hint in said
