"""Every kind of failure: found in its own logs, in the middle of others, and silent where nothing failed."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Diagnosis, Engine
from axletree.host.shipped_data import read_shipped
from support.logs import good_log

KINDS = read_shipped(FAILURE_KINDS)
FIELD = tomllib.loads((Path(__file__).parents[1] / "support" / "field_failures.toml").read_text(encoding="utf-8"))
SAMPLES = [(kind.id, number, text) for kind in KINDS for number, text in enumerate(kind.samples)]
QUOTES = {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
SILENT = [(kind.id, number, text) for kind in KINDS for number, text in enumerate(kind.silent)]


@cache
def engine() -> Engine:
    return Engine(KINDS)


def diagnose(text: str) -> Diagnosis:
    return engine().diagnose([text.encode()])


@pytest.mark.parametrize(("kind", "number", "text"), SAMPLES, ids=[f"{kind}-{number}" for kind, number, _ in SAMPLES])
def test_found_in_its_sample(kind: str, number: int, text: str) -> None:
    found = diagnose(text).findings
    assert found
    assert found[0].rule == kind, [finding.rule for finding in found]


@pytest.mark.parametrize(("kind", "number", "text"), SAMPLES, ids=[f"{kind}-{number}" for kind, number, _ in SAMPLES])
def test_cause_has_the_values_of_its_sample(kind: str, number: int, text: str) -> None:
    cause = diagnose(text).findings[0].cause
    assert cause
    assert "\n" not in cause
    assert not re.search(r"(?<!`)\{[a-z_]+[|}]", cause), cause  # a place that was not filled
    assert not re.search(r"(?<!\S)\(\s*\)|[:\s][.,](?:\s|$)", cause), cause  # a value that is empty


@pytest.mark.parametrize(
    ("kind", "number", "text"),
    [
        pytest.param(*sample, marks=[pytest.mark.proof] if sample[1] else [], id=f"{sample[0]}-{sample[1]}")
        for sample in SAMPLES
    ],
)
def test_found_in_the_middle_of_another_log(kind: str, number: int, text: str) -> None:
    before, after = good_log()
    lines = text.strip("\n").split("\n")
    found = diagnose("\n".join([*before, *lines, *after, ""])).findings
    assert found
    assert found[0].rule == kind, [finding.rule for finding in found]
    plain = [line.translate(QUOTES) for line in lines]
    for shown in found[0].lines:
        assert shown.text.strip() in plain[shown.line - len(before) - 1]


@pytest.mark.parametrize(("kind", "number", "text"), SILENT, ids=[f"{kind}-{number}" for kind, number, _ in SILENT])
def test_silent(kind: str, number: int, text: str) -> None:
    assert kind not in [finding.rule for finding in diagnose(text).findings]


def test_no_two_kinds_have_one_name() -> None:
    names = [kind.id for kind in KINDS]
    assert len(set(names)) == len(names)


def test_each_failure_seen_in_the_field_has_a_kind_of_its_own() -> None:
    assert len(FIELD) == 108
    assert len(set(FIELD.values())) == 108
    assert not set(FIELD.values()) - {kind.id for kind in KINDS}
