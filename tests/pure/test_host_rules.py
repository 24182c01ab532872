"""Each rule about hosts fires and stays silent in the cases that it carries, and says enough when it fires."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.check.engine import Case, Rule, apply_rules
from axletree.check.rules.host.all import HOST_RULES
from axletree.check.rules.host.sample import FOR_CUDA, FOR_ROCM, GIB, HEALTHY, WITH_CUDA, WITH_ROCM, having, on

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


@pytest.mark.parametrize(
    ("uses", "told"),
    [
        ({"tmp": "/tmp"}, "temporary files"),
        ({"store": "/s", "cwd": "/w"}, "the store and the working folder"),
        ({"home": "/h", "store": "/s", "cwd": "/w"}, "the home folder, the store and the working folder"),
        ({}, "builds"),
    ],
)
def test_a_tight_disk_is_told_with_what_it_is_used_for(uses: dict[str, str], told: str) -> None:
    disk = msgspec.structs.replace((HEALTHY.disks or ())[0], uses=uses, free=2 * GIB)
    found = apply_rules(HOST_RULES, on(msgspec.structs.replace(HEALTHY, disks=(disk,))))
    assert f"only 2.15 GB is free for {told}" in {each.message for each in found}


@pytest.mark.parametrize(("version", "gpu"), [("9.0.10", "gfx90a"), ("10.3.0", "gfx1030"), ("11.0.0", "gfx1100")])
def test_an_override_is_told_as_the_gpu_that_it_selects(version: str, gpu: str) -> None:
    host = msgspec.structs.replace(WITH_ROCM, rocm=msgspec.structs.replace(WITH_ROCM.rocm, gpus=()))
    found = apply_rules(HOST_RULES, having(("HSA_OVERRIDE_GFX_VERSION", version), host=host))
    assert any(f"identify as {gpu}:" in each.message for each in found)


@pytest.mark.parametrize(("use", "variable"), [("tmp", "TMPDIR"), ("store", "AXLETREE_STORE")])
def test_the_disk_that_starts_no_programs_is_the_one_to_mount_anew(use: str, variable: str) -> None:
    disk = (HEALTHY.disks or ())[0]
    disk = msgspec.structs.replace(disk, uses={use: "/data/x"}, mount="/data", noexec=True, executable=False)
    found = apply_rules(HOST_RULES, on(msgspec.structs.replace(HEALTHY, disks=(disk,))))
    (fix,) = [each.fix for each in found if each.rule == "host/disk-noexec"]
    assert fix is not None
    assert f"export {variable}=..." in fix
    assert "remount,exec /data" in fix.splitlines()[-1]
