#!/usr/bin/env python3
"""Run ``axletree wheel`` once for each project of a list and tabulate what it came to.

    nice .venv/bin/python scripts/measure_projects.py docs/proof/projects.toml WORK [NAME ...]

WORK has a folder for each project: events, messages, recipe and wheels. A project that has an outcome there isn't run
again, so a measurement that was interrupted continues; remove a folder to measure it once more. The store is that of
AXLETREE_STORE.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

AXLETREE = Path(sys.executable).with_name("axletree")
PASSED = {"done", "cached"}
LIMIT = 3600
"""Seconds for one project."""


def main(arguments: list[str]) -> int:
    listed, work, names = Path(arguments[0]), Path(arguments[1]), arguments[2:]
    projects = tomllib.loads(listed.read_text(encoding="utf-8"))["project"]
    wanted = [project for project in projects if not names or project["name"] in names]
    for project in wanted:
        folder = work / project["name"]
        if not (folder / "outcome.json").exists():
            measure(project, folder)
        sys.stdout.write(row(project, json.loads((folder / "outcome.json").read_text(encoding="utf-8"))) + "\n")
        sys.stdout.flush()
    return 0


def measure(project: dict[str, Any], folder: Path) -> None:
    """Run the command and write down what it came to."""
    folder.mkdir(parents=True, exist_ok=True)
    target = f"{project['name']}=={project['version']}"
    command = [AXLETREE, "wheel", target, *project.get("options", ()), "--out", folder / "dist", "--json"]
    with (folder / "events.jsonl").open("w") as events, (folder / "messages.txt").open("w") as messages:
        code = subprocess.run(command, stdout=events, stderr=messages, timeout=LIMIT, check=False).returncode
    outcome = outcome_of(folder, code)
    (folder / "outcome.json").write_text(json.dumps(outcome, indent=1), encoding="utf-8")


def outcome_of(folder: Path, code: int) -> dict[str, Any]:
    """What the events say, in short."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [event for line in lines if "event" in (event := json.loads(line))]
    ended = [event for event in events if event["event"] == "stage-finished"]
    built = next((event for event in ended if event["stage"].partition("[")[0] == "build"), None)
    recipe = next((folder / "dist").glob("*.toml"), None)
    text = recipe.read_text(encoding="utf-8").splitlines() if recipe is not None else []
    return {
        "code": code,
        "lines": sum(bool(line.strip()) and not line.startswith("#") for line in text),
        "wheels": sorted(path.name for path in (folder / "dist").glob("**/*.whl")),
        "tests": sorted(
            each["stage"] for each in ended if each["stage"].startswith("test:") and each["status"] in PASSED
        ),
        "cpu": built["metrics"]["cpu"] if built and built["metrics"] else None,
        "findings": sorted({finding["rule"] for event in events for finding in event.get("findings", ())}),
        "message": message_of(folder, ended),
    }


def message_of(folder: Path, ended: list[dict[str, Any]]) -> str:
    """The first failed stage's message and findings; else the last lines of the messages."""
    for event in ended:
        if event["status"] == "failed":
            found = [f"{finding['message']} [{finding['rule']}]" for finding in event["findings"]]
            return f"{event['stage']}: {' | '.join(found) or event['message']}"
    lines = (folder / "messages.txt").read_text(encoding="utf-8").splitlines()
    return " | ".join(line for line in lines if line.startswith(("error", "hint", "  hint")))


def row(project: dict[str, Any], outcome: dict[str, Any]) -> str:
    """A row of the table in docs/proof/projects.md."""
    tags = ", ".join(name.removesuffix(".whl").split("-", 2)[2] for name in outcome["wheels"])
    came = tags if outcome["code"] == 0 else outcome["message"]
    came = " ".join(came.split())
    cpu = f"{outcome['cpu']:.0f} s" if outcome["cpu"] is not None else ""
    cells = (f"{project['name']} {project['version']}", project["backend"], str(outcome["lines"]), came, cpu)
    return f"| {' | '.join(cells)} | {len(outcome['tests'])} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
