"""Logs that no kind was written after: what is the same in all logs of a family is what a kind must look for."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import pytest

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Engine
from axletree.host.shipped_data import read_shipped
from support.logs import good_log

LOGS = [
    (log["kind"], log["text"])
    for log in tomllib.loads(
        (Path(__file__).parent.parent / "support" / "unseen_logs.toml").read_text(encoding="utf-8")
    )["log"]
]
IDS = [f"{number}-{kind}" for number, (kind, _) in enumerate(LOGS)]


@cache
def engine() -> Engine:
    return Engine(read_shipped(FAILURE_KINDS))


def rules(text: str) -> list[str]:
    return [finding.rule for finding in engine().diagnose([text.encode()]).findings]


@pytest.mark.parametrize(("kind", "text"), LOGS, ids=IDS)
def test_the_kind_of_an_unseen_log_comes_first(kind: str, text: str) -> None:
    found = rules(text)
    assert found[:1] == [kind], found


def test_an_unseen_failure_is_found_after_a_build_that_went_well() -> None:
    before, _ = good_log()
    missed = [
        (kind, found)
        for kind, text in LOGS
        if not text.startswith(("20", "#"))  # a CI system puts its clock before all lines or none
        and (found := rules("\n".join([*before[-400:], text])))[:1] != [kind]
    ]
    assert not missed


def test_no_unseen_log_is_a_sample() -> None:
    samples = {sample.strip() for kind in read_shipped(FAILURE_KINDS) for sample in kind.samples}
    assert not [text for _, text in LOGS if text.strip() in samples]
