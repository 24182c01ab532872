"""The doctor's answers about recorded hosts, about this one, and about bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from axletree.app.doctor import examine, wishes_of
from axletree.app.facts import read_facts
from axletree.check.host.examined import Wish
from axletree.report.doctor import next_step
from axletree.store.layout import STORE_VARIABLE

if TYPE_CHECKING:
    from axletree.core.findings import Finding

HOSTS = Path(__file__).parents[1] / "golden" / "hosts"
EXPECTED: dict[str, dict[str, Any]] = tomllib.loads((HOSTS / "hosts.toml").read_text())


def doctor(*words: str, store: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, STORE_VARIABLE: str(store), **environ}
    argv = [sys.executable, "-m", "axletree", "doctor", *words]
    return subprocess.run(argv, capture_output=True, text=True, env=env, check=False)


def findings_of(name: str) -> tuple[Finding, ...]:
    expected = EXPECTED[name]
    recipe, wishes = "", tuple[Wish, ...]()
    if "recipe" in expected:
        recipe, wishes = wishes_of(expected["recipe"], [expected["variant"]], environ={})
        assert len(wishes) == 1
    answer = examine(read_facts(HOSTS / f"{name}.json"), recipe, wishes)
    return answer.findings


def test_every_recorded_host_has_an_expectation() -> None:
    assert {path.stem for path in HOSTS.glob("*.json")} == set(EXPECTED)
    assert len(EXPECTED) >= 12


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_host_gets_exactly_the_expected_findings(name: str) -> None:
    rules = [finding.rule for finding in findings_of(name)]
    assert sorted(rules) == sorted(EXPECTED[name]["findings"])


def test_error_804_in_a_container_of_a_newer_cuda_names_the_package_in_the_image() -> None:
    (finding,) = findings_of("container-error-804")
    assert "570.86.15 from /usr/local/cuda-12.8/compat" in finding.message
    assert "LD_LIBRARY_PATH" in (finding.fix or "")


def test_a_laptop_is_told_how_many_jobs_fit() -> None:
    jobs = next(finding for finding in findings_of("laptop-16-gb") if finding.rule == "host/memory-for-jobs")
    assert "$ export MAX_JOBS=7" in (jobs.fix or "")


def test_the_integrated_gpu_is_hidden_by_number() -> None:
    findings = findings_of("rocm-integrated-gpu-first")
    first = next(finding for finding in findings if finding.rule == "rocm/integrated-first")
    assert next_step([first]) == "export HIP_VISIBLE_DEVICES=1"


def test_this_host_in_a_poor_environment(tmp_path: Path) -> None:
    """What is planted is found, by the facts that are really taken."""
    done = doctor(
        "--json",
        store=tmp_path,
        CUDA_HOME="/nowhere",
        LD_LIBRARY_PATH=f":{tmp_path}/gone",
        LC_ALL="C",
        PYTHONPATH=str(tmp_path),
        MAX_JOBS="5000",
    )
    document = json.loads(done.stdout)["result"]
    rules = {finding["rule"] for finding in document["findings"]}
    assert {"cuda/home-wrong", "library/search-path", "host/locale", "variable/python", "host/memory-for-jobs"} <= rules
    assert done.returncode == 1
    assert done.stderr == ""


def test_a_program_that_a_recipe_needs_is_looked_for(tmp_path: Path) -> None:
    recipe = tmp_path / "demo.toml"
    recipe.write_text(
        'name = "demo"\nversion = "1.0"\n[source]\npath = "."\n[axes]\npython = ["3.11"]\n'
        '[environments.build]\nrequires = ["setuptools"]\n'
        '[stages.build]\naction = "build"\naxes = ["python"]\nenvironment = "build"\n'
        'tools = ["no-such-compiler"]\nresources = { disk = "900 TB" }\n'
        '[packages.demo]\nfrom = "build"\n'
    )
    done = doctor(str(recipe), store=tmp_path / "store")
    assert done.returncode == 1
    assert "no-such-compiler is not on PATH, but a stage needs it [host/tool-missing]" in done.stdout
    assert "but the build needs 900 TB [host/disk-full]" in done.stdout
    assert done.stdout.rstrip().endswith("next: axletree store gc")


def test_what_holds_for_many_variants_is_said_once(tmp_path: Path) -> None:
    done = doctor("pytorch", "--json", store=tmp_path)
    document = json.loads(done.stdout)["result"]
    said = [(finding["rule"], finding["message"]) for finding in document["findings"]]
    assert len(set(said)) == len(said)
    assert (document["recipe"], len(document["variants"])) == ("pytorch", 189)
    missing = [finding for finding in document["findings"] if finding["rule"] == "rocm/toolkit-missing"]
    assert {len(finding["variants"]) for finding in missing} == {21}
    assert any("variants" not in finding for finding in document["findings"])  # it holds for all
    assert "host/cmake-version" not in {rule for rule, _ in said}  # its environments bring one


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["no-such-recipe"], "no-such-recipe"),
        (["-v", "py311"], "--variant needs a recipe"),
        (["pytorch", "-v", "py27-*"], "py27-*"),
        (["--facts", "FOLDER/broken.json"], "broken.json: the file does not contain host facts"),
        (["--facts", "FOLDER/newer.json"], "has format 99"),
        (["--facts", "FOLDER/gone.json"], "does not exist"),
    ],
)
def test_bad_input_is_told_in_one_message(tmp_path: Path, words: list[str], says: str) -> None:
    (tmp_path / "broken.json").write_bytes(b'{"schema": 1, "memory": "\xff"')
    (tmp_path / "newer.json").write_text('{"schema": 99}')
    done = doctor(*(word.replace("FOLDER", str(tmp_path)) for word in words), store=tmp_path / "store")
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
