"""Completion in real shells: commands, options, recipes, and the variants and stages of the recipe that is named."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.cli.main import cli
from axletree.cli.outline import outline_of, outlined
from support.faulty import make_project

if TYPE_CHECKING:
    from collections.abc import Iterable

BIN = Path(sys.executable).parent
BASH = """
eval "$(axletree completion bash)"
for line; do
  COMP_WORDS=($line); [ "${line: -1}" != " " ] || COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
  _axletree_completion axletree
  printf '%s\\n' "${COMPREPLY[@]}" END
done
"""
FISH = "axletree completion fish | source; for line in $argv; complete -C $line; echo END; end"
TEXT = """\
name = "small"
version = "1.0"
source = { path = "src" }
axes = { blas = ["mkl", "openblas"] }

[stages.lib]
action = "run"
axes = ["blas"]
commands = ["false"]

[packages.small]
from = "lib"
local = "{blas}"
"""


def environ(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "AXLETREE_STORE": str(tmp_path / "store"),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
    }


def completed(shell: str, lines: Iterable[str], tmp_path: Path) -> tuple[dict[str, list[str]], str]:
    """What a shell offers behind each line, and what was said on stderr meanwhile."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    command = ["bash", "-c", BASH, "bash"] if shell == "bash" else ["fish", "--no-config", "-c", FISH]
    done = subprocess.run(
        [*command, *lines], cwd=tmp_path, env=environ(tmp_path), capture_output=True, text=True, check=False
    )
    answers = done.stdout.split("END\n")[:-1]
    found = [sorted(each.partition("\t")[0] for each in answer.splitlines() if each) for answer in answers]
    return dict(zip(lines, found, strict=True)), done.stderr


LINES = {
    "axletree compl": ["completion"],
    "axletree store ": ["du", "gc", "verify"],
    "axletree build --form": ["--format"],
    "axletree build small.toml --format ": ["conda", "wheel", "zip"],
    "axletree build kiwi": ["kiwisolver"],
    "axletree build kiwisolver --variant py31": ["py311", "py312", "py313", "py314"],
    "axletree build small.toml -v ": ["mkl", "openblas"],
    "axletree build small.toml --set axes.blas=mine -v ": ["mine"],
    "axletree dev small.toml --stage ": ["lib"],
    "axletree build small.toml --package ": ["small"],
    "axletree env create pytorch-c": ["pytorch-cuda"],
    "axletree env create pytorch-cuda -v cu12": ["cu121", "cu124", "cu126", "cu128"],
    "axletree build pytorch-c": [],
    "axletree completion ": ["bash", "fish", "zsh"],
    "axletree build short.toml -v ": ["py311", "py312"],
    "axletree dev short.toml --stage ": ["build"],
    "axletree build short.toml --package ": ["gizmo"],
    "axletree build broken.toml -v ": [],
    "axletree build none.toml -v ": [],
    "axletree nothing ": [],
}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_what_is_offered(shell: str, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    (tmp_path / "broken.toml").write_text("name = ")
    (tmp_path / "short.toml").write_text('name = "gizmo"\nsource.path = "."\naxes.python = ["3.11", "3.12"]\n')
    assert completed(shell, LINES, tmp_path) == (LINES, "")


def test_recipe_files_are_offered_beside_those_that_ship(tmp_path: Path) -> None:
    (tmp_path / "pytorch-mine").mkdir()
    for name in ("python.toml", "pylock.a.toml", "py.lock.toml", "py.txt", "pytorch-mine/a.toml"):
        (tmp_path / name).write_text("")
    found, _ = completed("bash", ["axletree plan py", "axletree plan pytorch-mine/"], tmp_path)
    assert list(found.values()) == [
        ["python.toml", "pytorch", "pytorch-debian", "pytorch-mine/"],
        ["pytorch-mine/a.toml"],
    ]


def test_stages_of_the_store_are_offered(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", TEXT)
    assert project.build("-v", "mkl").code == 1
    words = {"_AXLETREE_COMPLETE": "bash_complete", "COMP_WORDS": "axletree shell li", "COMP_CWORD": "2"}
    assert project.having(**words).run().out == "plain,lib[mkl]\n"


def test_zsh_completes_at_its_prompt(tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    (tmp_path / "small.toml").write_text(TEXT)
    start = 'autoload -U compinit; compinit -u -D; eval "$(axletree completion zsh)"\n'
    keys = "axletree build small.to\t --vari\t open\t\x01print -r -- read''y \n"  # the line that it came to is printed
    shown = at_prompt(start + keys, tmp_path, until="ready axletree")
    assert "ready axletree build small.toml --variant openblas" in shown


def at_prompt(keys: str, folder: Path, *, until: str) -> str:
    """What a zsh shows once keys are typed at its prompt, up to the end of the line that has a text."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe("zsh", ["zsh", "-f", "-i"], environ(folder))
    shown = ""
    os.write(terminal, keys.encode())
    while "\n" not in shown.partition(until)[2]:
        ready, _, _ = select.select([terminal], [], [], 120)
        if not ready:
            break
        shown += os.read(terminal, 65536).decode(errors="replace")
    os.write(terminal, b"exit\n")
    os.close(terminal)
    os.waitpid(child, 0)
    return shown


def test_the_outline_is_that_of_the_commands() -> None:
    for name, node in outline_of(cli)["commands"].items():
        made = outlined(name)
        assert made is not None
        assert outline_of(made)["params"] == node["params"]
    assert outlined("nothing") is None


def test_completing_imports_no_command() -> None:
    code = (
        "import sys\nfrom axletree.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ('axletree.app', 'axletree.execute', 'packaging')\n"
        "print(sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    words = {"_AXLETREE_COMPLETE": "bash_complete", "COMP_WORDS": "axletree build --fo", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["plain,--format", "[]"]
    assert done.stderr == ""
