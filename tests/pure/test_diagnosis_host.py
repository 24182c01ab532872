"""Root causes and the host that a log comes from: rules of the doctor that tell the reason."""

from __future__ import annotations

import re

import msgspec
import pytest

from axletree.check.diagnosis.bringers import BRINGERS
from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Diagnosis, Engine
from axletree.check.diagnosis.enrich import enrich
from axletree.check.diagnosis.host import with_host
from axletree.check.host.examined import Examined, Wish
from axletree.check.rules.host.all import HOST_RULES
from axletree.check.rules.host.sample import BOUNDS, GIB, on
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.providers import Provider
from axletree.report.diagnosis import LogReport
from axletree.view.diagnosis import diagnosis_text

KINDS = read_shipped(FAILURE_KINDS)
ENGINE = Engine(KINDS)
KILLED = "c++: fatal error: Killed signal terminated program cc1plus\nninja: build stopped: subcommand failed.\n"
ROOMY = on(memory={"available": 900 * GIB, "total": 1000 * GIB})
TIGHT = on(memory={"available": 2 * GIB, "swap_free": 0})


def diagnose(text: str) -> Diagnosis:
    return ENGINE.diagnose([text.encode()])


def shown(diagnosis: Diagnosis) -> str:
    report = LogReport(name="x.log", outcome=diagnosis.outcome, findings=diagnosis.findings)
    return "\n".join(diagnosis_text([report], width=200))


def test_kinds_name_rules_that_there_are() -> None:
    rules = {rule.id for rule in HOST_RULES}
    assert not {(kind.id, rule) for kind in KINDS for rule in kind.see if rule not in rules}
    assert not [kind.id for kind in KINDS if len(set(kind.see)) < len(kind.see)]


def test_an_unfinished_log_names_rules_that_there_are() -> None:
    (found,) = diagnose("[1/9] Building CXX object a.o\n").findings
    assert found.rule == "log/unfinished"
    assert found.see
    assert not set(found.see) - {rule.id for rule in HOST_RULES}


@pytest.mark.parametrize("rule", ["host/memory-for-jobs"])
def test_what_fires_is_told_with_what_to_do(rule: str) -> None:
    explained = with_host(diagnose(KILLED), TIGHT)
    (found,) = explained.findings[0].host or ()
    assert found.rule == rule
    text = shown(explained)
    assert f"warning {found.where}: {found.message} [{rule}]" in text
    assert text.index("fix: ") < text.index("on this host:") < text.index("$ export MAX_JOBS=1")


def test_a_host_that_does_not_explain_it_is_said_to_be_so() -> None:
    explained = with_host(diagnose(KILLED), ROOMY)
    assert explained.findings[0].host == ()
    assert "on this host: `axletree doctor` does not find a cause" in shown(explained)


def test_without_a_host_none_is_spoken_of() -> None:
    diagnosis = diagnose(KILLED)
    assert "this host" not in shown(diagnosis)
    assert b'"host"' not in msgspec.json.encode(diagnosis)


def test_what_else_is_wrong_with_the_host_is_no_reason() -> None:
    text = "src/a.cpp:1:10: error: expected ';' before '}' token\nninja: build stopped: subcommand failed.\n"
    explained = with_host(diagnose(text), TIGHT)
    assert explained.findings[0].rule == "compile/error"
    assert explained.findings[0].host == ()
    assert "this host" not in shown(explained)


def test_only_the_root_cause_is_asked_about() -> None:
    text = f"MAGMA not found. Compiling without MAGMA support\n{KILLED}"
    root, *others = with_host(diagnose(text), TIGHT).findings
    assert root.host
    assert [found.host for found in others] == [None]


def test_a_log_without_findings_stays_so() -> None:
    diagnosis = diagnose("Successfully built x-1.0-py3-none-any.whl\n")
    assert with_host(diagnosis, Examined(host=TIGHT.host, wish=Wish(), bounds=BOUNDS)) == diagnosis


@pytest.mark.parametrize(
    ("groups", "commands"),
    [
        ({"library": "libshared.so.1"}, ["$ python -m pip install 'one'", "$ python -m pip install 'other'"]),
        (
            {"library": "libshared.so.1", "header": "zlib.h"},
            ["$ python -m pip install 'one'", "$ python -m pip install 'other'", "$ apt-get install zlib1g-dev"],
        ),
        ({"library": "libsndfile.so.1", "header": "zlib.h"}, ["$ apt-get install zlib1g-dev"]),
    ],
)
def test_fixes_for_several_reasons_are_lines_of_their_own(groups: dict[str, str], commands: list[str]) -> None:
    providers = [Provider(name=name, distributions=(name,), sonames=("libshared.so*",)) for name in ("one", "other")]
    _, fix = enrich(groups, specific=0, providers=providers, bringers=read_shipped(BRINGERS))
    lines = fix.splitlines()
    assert not [command for command in commands if command not in lines], fix
    assert not [line for line in lines if "$ " in line.removeprefix("$ ")]


def test_no_finding_of_any_sample_runs_its_fixes_together() -> None:
    found = [finding for kind in KINDS for sample in kind.samples for finding in diagnose(sample).findings]
    assert len(found) > 100
    lines = [line for finding in found for line in (finding.fix or "").splitlines()]
    assert not [line for line in lines if re.search(r"(?<=[^\s'\"`(])\$ (apt-get|python|pip|conda|export) ", line)]
