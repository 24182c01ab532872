"""The workflow beside .ci/run says the same as that and pyproject.toml. `make lint` holds it to GitHub's schema."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PINNED = re.compile(r"[\w.-]+/[\w./-]+@(?:[0-9a-f]{40}|v\d+)")


@pytest.fixture(scope="module")
def workflow() -> Any:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))


def test_every_python_that_is_promised_is_tested(workflow: Any) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [re.search(r":: Python :: (3\.\d+)$", each) for each in project["classifiers"]]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == [each[1] for each in named if each]


def test_the_jobs_are_the_parts_of_the_script(workflow: Any) -> None:
    jobs = workflow["jobs"].values()
    runs = [step["run"] for job in jobs for step in job["steps"] if step.get("run", "").startswith(".ci/run")]
    assert runs == ['.ci/run "$PART"', ".ci/run test"]
    parts = [*workflow["jobs"]["check"]["strategy"]["matrix"]["part"], "test"]
    done = subprocess.run([ROOT / ".ci" / "run", "all"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"usage: .ci/run {' '.join(f'[{part}]' for part in parts)}\n")


def test_what_runs_there_is_pinned_and_may_do_little(workflow: Any) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "permissions" not in job, name
        assert job["timeout-minutes"] <= 120, name
        for step in job["steps"]:
            assert PINNED.fullmatch(step.get("uses", "a/b@v1")), step
            assert "checkout" not in step.get("uses", "") or step["with"]["persist-credentials"] is False
            assert "${{" not in step.get("run", ""), "a value goes to a script by its environment"
