"""Each rule about hosts fires and stays silent in the cases that it carries, and says enough when it fires."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from axletree.check.engine import Case, Rule, apply_rules
from axletree.check.rules.host.all import HOST_RULES
from axletree.check.rules.host.sample import FOR_CUDA, FOR_ROCM, WITH_CUDA, WITH_ROCM, on

if TYPE_CHECKING:
    from axletree.check.host.examined import Examined

CASES = [pytest.param(rule, case, id=f"{rule.id}: {case.title}") for rule in HOST_RULES for case in rule.cases()]


@pytest.mark.parametrize(("rule", "case"), CASES)
def test_case(rule: Rule[Examined], case: Case[Examined]) -> None:
    found = list(rule.check(case.facts))
    assert bool(found) == case.fires
    for each in found:
        assert each.where
        assert each.message
        assert not each.message.endswith(".")
        assert "  " not in each.message
        assert "None" not in each.message
        assert "; or " not in (each.fix or rule.fix)  # another fix is another line


@pytest.mark.parametrize("rule", HOST_RULES, ids=lambda rule: rule.id)
def test_rule_is_complete(rule: Rule[Examined]) -> None:
    assert re.fullmatch(r"(host|cuda|rocm|python|conda|library|variable)/[a-z0-9-]+", rule.id)
    assert {case.fires for case in rule.cases()} == {True, False}
    assert rule.title
    assert rule.why.endswith(".")
    assert rule.fix
    assert rule.references


def test_ids_are_unique() -> None:
    assert len({rule.id for rule in HOST_RULES}) == len(HOST_RULES)


@pytest.mark.parametrize("facts", [on(), on(WITH_CUDA, FOR_CUDA), on(WITH_ROCM, FOR_ROCM)], ids=["cpu", "cuda", "rocm"])
def test_nothing_is_said_of_a_healthy_host(facts: Examined) -> None:
    assert apply_rules(HOST_RULES, facts) == ()


def test_causes_of_error_804_are_told_apart() -> None:
    rule = next(rule for rule in HOST_RULES if rule.id == "cuda/error-804")
    fixes = [found.fix or "" for case in rule.cases() if case.fires for found in rule.check(case.facts)]
    assert ["LD_LIBRARY_PATH" in fix for fix in fixes] == [True, False, False]
    assert ["modprobe" in fix for fix in fixes] == [False, True, False]
    assert ["nvidia-container-toolkit" in fix for fix in fixes] == [False, False, True]
