"""Each way of asking for something that cannot be: one clear error, the right exit code, and nothing left behind."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from support.faulty import BOUND, PYTHON, make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faulty import Project

    Golden = Callable[[str, str], None]


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is done to a project, and what comes of it."""

    change: Callable[[Project], None]
    code: int = 2
    arguments: tuple[str, ...] = ()
    recipe: str | None = None


def edit(old: str, new: str) -> Callable[[Project], None]:
    return lambda project: project.edit(old, new)


def no_compiler(project: Project) -> None:
    """A PATH with everything that a build needs but a compiler."""
    folder = project.folder / "bin"
    folder.mkdir()
    (folder / "bash").symlink_to("/bin/bash")


def nothing(_project: Project) -> None:
    """The arguments alone are at fault."""


def old_lock(project: Project) -> None:
    """A lock of when the environment asked for something else."""
    project.edit("[environments.plain]", '[environments.plain]\nrequires = ["wheel>=2"]')
    (project.folder / "small").mkdir()
    (project.folder / "small" / f"pylock.plain-py{PYTHON.replace('.', '')}.toml").write_text(
        f"""\
lock-version = "1.0"
environments = []
requires-python = "=={PYTHON}.*"
created-by = "axletree"
packages = []

[tool.axletree]
requires = ["wheel>=1"]
python = "{PYTHON}"
platform = "linux-x86_64"
""",
        encoding="utf-8",
    )


FAULTS = {
    "unknown-key": Fault(edit("commands =", "comands =")),
    "unknown-axis": Fault(edit('axes = ["python"]', 'axes = ["pyton"]'), recipe=BOUND),
    "cyclic-stages": Fault(
        edit("[stages.lib]\n", '[stages.lib]\naxes = ["python"]\ninputs = ["bind"]\n'), recipe=BOUND
    ),
    "undeclared-axis": Fault(edit("-fPIC -o", "-fPIC -DPYTHON={python} -o"), recipe=BOUND),
    "empty-matrix": Fault(
        edit("[environments.plain]", f'[matrix]\nexclude = [{{ python = "{PYTHON}" }}]\n\n[environments.plain]'),
        recipe=BOUND,
    ),
    "missing-source": Fault(edit('path = "src"', 'path = "sources"')),
    "missing-patch": Fault(edit("[stages.lib]", '[[patches]]\nfile = "fix.patch"\n\n[stages.lib]')),
    "secret-passed": Fault(edit('tools = ["c++"]', 'tools = ["c++"]\npass-env = ["GITHUB_TOKEN"]')),
    "missing-lock": Fault(edit("[environments.plain]", '[environments.plain]\nrequires = ["wheel"]'), recipe=BOUND),
    "old-lock": Fault(old_lock, recipe=BOUND),
    "missing-source-lock": Fault(
        edit('path = "src"', f'url = "file:///nowhere/small-1.0.tar.gz"\nsha256 = "{"0" * 64}"')
    ),
    "missing-interpreter": Fault(edit(f'python = ["{PYTHON}"]', 'python = ["3.99"]'), code=3, recipe=BOUND),
    "unknown-variant": Fault(nothing, arguments=("-v", "py399"), recipe=BOUND),
    "unknown-option": Fault(nothing, arguments=("--keep-goin",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_before_anything_runs(name: str, tmp_path: Path, golden: Golden) -> None:
    fault = FAULTS[name]
    project = make_project(tmp_path / "project", **({"recipe": fault.recipe} if fault.recipe else {}))
    fault.change(project)
    ended = project.build(*fault.arguments)
    golden(f"flow/{name}.txt", project.account(ended))
    assert ended.code == fault.code
    assert not project.out.exists()
    assert not (project.store / "results").exists() or project.records() == {}
