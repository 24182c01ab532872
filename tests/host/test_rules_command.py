"""``axletree rules`` prints what the rules themselves say."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from axletree.app.rules import RULES
from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.cli.rules import command
from axletree.core.errors import UsageError
from axletree.host.shipped_data import read_shipped


def kinds(name: str) -> list[dict[str, Any]]:
    (group,) = json.loads(CliRunner().invoke(command, [name, "--json"]).stdout)["result"]["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def test_all_rules_are_listed_once() -> None:
    done = CliRunner().invoke(command, ["--json"])
    listed = [rule["rule"] for group in json.loads(done.stdout)["result"]["groups"] for rule in group["rules"]]
    assert listed == [rule.id for _, rules in RULES for rule in rules]
    assert len(set(listed)) == len(listed)


def test_a_named_rule_is_explained_a_named_subject_is_listed() -> None:
    done = CliRunner().invoke(command, ["rocm/wsl", "conda"])
    assert "why: The WSL kernel has no KFD" in done.stdout
    assert "- fires: WSL 2" in done.stdout
    assert "conda/activated-twice" in done.stdout
    assert "rocm/mixed" not in done.stdout


def test_kinds_of_failure_are_listed_by_stage_and_explained_by_name() -> None:
    everything = kinds("log")
    assert len(everything) == len(read_shipped(FAILURE_KINDS))
    listed = kinds("link")
    assert listed == [rule for rule in everything if rule["rule"].startswith("link/")]
    done = CliRunner().invoke(command, [listed[0]["rule"]])
    assert f"why: {listed[0]['why'].split()[0]}" in done.stdout


def test_an_unknown_rule_is_told_with_the_nearest() -> None:
    error = CliRunner().invoke(command, ["cuda/error-803"]).exception
    assert isinstance(error, UsageError)
    assert "did you mean cuda/error-804?" in str(error)
