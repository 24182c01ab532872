"""Activation in real shells: twice is once, and undoing gives back every byte."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.environment.apply import activated
from axletree.environment.delta import Activation, Delta
from axletree.environment.shells import SHELLS, Shell, activation_text

if TYPE_CHECKING:
    from pathlib import Path

UNDO = """
import os, sys
from axletree.environment.apply import undoing
from axletree.environment.shells import undoing_text
sys.stdout.buffer.write(os.fsencode(undoing_text(undoing(os.environ), sys.argv[1])))
"""
POSIX_START = r"""
export NEWLINES=$'two\nlines "q" '"'"'s' EMPTY= CC=$'b\xff\\' FLAGS=-O2 PATH=/usr/local/bin:/usr/bin:/bin
export UNWANTED=$'there\n\n' LISTED=/a::/b: EDITED=/u
unset LD_LIBRARY_PATH NEW
PLAIN='pl ain'; PLAIN_LIST=/p; PLAIN_EMPTY=
"""
FISH_START = r"""
set -gx NEWLINES "two
lines 'q'"; set -gx EMPTY ""; set -gx CC 'b\\'; set -gx FLAGS -O2; set -gx PATH /usr/local/bin /usr/bin /bin
set -gx UNWANTED "there

"; set -gx LISTED /a::/b:; set -gx EDITED /u; set -e LD_LIBRARY_PATH; set -e NEW
set -g PLAIN "pl ain"; set -g PLAIN_LIST /p; set -g PLAIN_EMPTY ""
"""
# Counters and what the shell has just done are different each time.
DUMPS = {
    "bash": "declare -p | "
    "grep -avE '^declare -[-a-zA-Z]+ (BASH_.*|FUNCNAME|_|PIPESTATUS|RANDOM|SECONDS|EPOCH.*|SRANDOM|LINENO)'",
    "zsh": "typeset -p | "
    "grep -avE ' (-[a-zA-Z0-9]+ )*(RANDOM|SECONDS|EPOCH.*|LINENO|TTYIDLE|_|status|pipestatus|[?]|ERRNO)='",
    "fish": "set --show | grep -avE '^[$](status|pipestatus|CMD_DURATION|last_pid|history|status_generation|_)'",
}


def delta(variable: str, operation: str, value: str = "", separator: str = ":") -> Delta:
    return Delta(variable=variable, operation=operation, value=value, origin="test", separator=separator)  # type: ignore[arg-type]


OUTER = Activation(
    folder="/an env/it's",
    deltas=(
        delta("PATH", "prepend", "/env/bin:/env/it's"),
        delta("LD_LIBRARY_PATH", "prepend", "/env/lib"),
        delta("CC", "set", "a'b\nc $x `y` \\ \"\n"),
        delta("NEWLINES", "set", "one"),
        delta("UNWANTED", "unset"),
        delta("EMPTY", "prepend", "/x"),
        delta("FLAGS", "append", "-I/env", " "),
        delta("LISTED", "prepend", "/env/l"),
        delta("LISTED", "append", "/env/m"),
        delta("NEW", "set", ""),
        delta("PLAIN", "set", "ours"),
        delta("PLAIN_EMPTY", "unset"),
    ),
)
INNER = Activation(
    folder="/inner",
    deltas=(delta("PATH", "prepend", "/inner/bin"), delta("NEW", "unset"), delta("CC", "set", "inner")),
)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Shell:
    name: Shell = request.param
    if shutil.which(name) is None:
        pytest.skip(f"no {name} here")
    return name


class Session:
    """A script for one shell, and what it left."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self.shell, self.folder = shell, folder
        (folder / "undo.py").write_text(UNDO)
        self.lines: list[str] = [FISH_START if shell == "fish" else f"set -eu\n{POSIX_START}"]

    def evaluate(self, command: str) -> None:
        self.lines.append(f"{command} | source" if self.shell == "fish" else f'eval "$({command})"')

    def activate(self, activation: Activation) -> None:
        file = self.folder / f"{len(self.lines)}.txt"
        file.write_text(activation_text(activation, self.shell))
        self.evaluate(f"cat {file}")

    def undo(self) -> None:
        self.evaluate(f"{sys.executable} -P {self.folder}/undo.py {self.shell}")

    def dump(self, name: str) -> None:
        self.lines.append(f"env -0 > {self.folder}/{name}.env; {DUMPS[self.shell]} > {self.folder}/{name}.all || true")

    def run(self) -> subprocess.CompletedProcess[str]:
        options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[self.shell]
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"}
        command = [self.shell, *options, "-c", "\n".join(self.lines)]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    def variables(self, name: str) -> dict[str, str]:
        entries = (self.folder / f"{name}.env").read_bytes().split(b"\0")
        pairs = (entry.partition(b"=") for entry in entries if entry)
        return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs if key != b"_"}

    def everything(self, name: str) -> bytes:
        text = (self.folder / f"{name}.all").read_bytes()
        assert text.count(b"\n") > 20
        return text


def test_twice_and_back_is_byte_for_byte_what_was(shell: Shell, tmp_path: Path) -> None:
    session = Session(shell, tmp_path)
    session.dump("before")
    session.activate(OUTER)
    session.dump("once")
    session.activate(OUTER)
    session.dump("twice")
    session.activate(INNER)
    session.dump("inner")
    session.undo()
    session.dump("outer")
    session.undo()
    session.dump("after")
    done = session.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert session.variables("after") == session.variables("before")
    assert session.everything("after") == session.everything("before")
    once = session.variables("once")
    assert session.variables("twice") == session.variables("outer") == once
    assert session.variables("inner")["PATH"].startswith("/inner/bin:/env/bin:/env/it's:")
    # The text does what the function does; only the function can't see variables that are not exported.
    expected = activated(session.variables("before"), OUTER)
    differ = {name for name in expected.keys() | once.keys() if expected.get(name) != once.get(name)}
    plain = {"AXLETREE_1_HOW", "AXLETREE_1_WAS_PLAIN", "AXLETREE_1_WAS_PLAIN_EMPTY"}
    assert differ == plain
    assert once["CC"] == "a'b\nc $x `y` \\ \"\n"
    assert "PLAIN:p" in once["AXLETREE_1_HOW"]


def test_what_the_user_changes_meanwhile_stays(shell: Shell, tmp_path: Path) -> None:
    session = Session(shell, tmp_path)
    session.activate(OUTER)
    if shell == "fish":
        session.lines.append("set -gx PATH /mine $PATH; set -gx CC mine; set -gx EDITED changed")
    else:
        session.lines.append("export PATH=/mine:$PATH CC=mine EDITED=changed")
    session.undo()
    session.dump("after")
    assert session.run().returncode == 0
    after = session.variables("after")
    assert after["PATH"] == "/mine:/usr/local/bin:/usr/bin:/bin"
    assert (after["CC"], after["EDITED"]) == ("mine", "changed")
    assert not any(name.startswith("AXLETREE") for name in after)


def test_a_shell_below_can_undo_what_its_parent_activated(shell: Shell, tmp_path: Path) -> None:
    if shutil.which("zsh") is None:
        pytest.skip("no zsh here")
    session = Session(shell, tmp_path)
    session.activate(OUTER)
    undo = f"{sys.executable} -P {tmp_path}/undo.py zsh"
    session.lines.append(f"zsh -f -c 'set -eu; eval \"$({undo})\"; env -0 > {tmp_path}/below.env'")
    session.dump("above")
    assert session.run().returncode == 0
    below = session.variables("below")
    assert below["PATH"] == "/usr/local/bin:/usr/bin:/bin"
    assert below["EMPTY"] == ""
    assert "LD_LIBRARY_PATH" not in below
    assert session.variables("above")["LD_LIBRARY_PATH"] == "/env/lib"


@pytest.mark.parametrize("shell", ["bash", "zsh"], indirect=True)  # fish has no such variables
@pytest.mark.parametrize("line", ["readonly CC", "unset CC; CC=(a b)", "unset CC; typeset -i CC=3"])
def test_nothing_is_changed_where_something_can_not_be(shell: Shell, tmp_path: Path, line: str) -> None:
    session = Session(shell, tmp_path)
    session.lines.append(f"set +e; {line}")
    session.dump("before")
    session.activate(OUTER)
    session.lines.append(f'echo "$?" > {tmp_path}/code')
    session.dump("after")
    done = session.run()
    assert "not activated" in done.stderr
    assert done.stderr.strip().endswith(" CC")
    assert (tmp_path / "code").read_text() == "1\n"
    assert session.variables("after") == session.variables("before")
    assert session.everything("after") == session.everything("before")


@pytest.mark.parametrize("shell", ["bash", "zsh"], indirect=True)
def test_inside_a_function_with_other_ideas_of_words(shell: Shell, tmp_path: Path) -> None:
    session = Session(shell, tmp_path)
    session.dump("before")
    file = tmp_path / "on.txt"
    file.write_text(activation_text(OUTER, shell))
    options = {"bash": "set -f; IFS=:/", "zsh": "setopt sh_word_split ksh_arrays; IFS=:/"}[shell]
    back = {
        "bash": "set +f; IFS=$' \\t\\n'",
        "zsh": "unsetopt sh_word_split ksh_arrays; IFS=$' \\t\\n\\0'",
    }[shell]
    undo = f"{sys.executable} -P {tmp_path}/undo.py {shell}"
    session.lines.append(f'on() {{ eval "$(cat {file})"; }}; off() {{ eval "$({undo})"; }}; alias export=false')
    session.lines.append(f"{options}; on; on")
    session.dump("on")
    session.lines.append(f"off; {back}; unset -f on off; unalias export")
    session.dump("after")
    done = session.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert session.variables("on")["PATH"].startswith("/env/bin:")
    assert session.variables("after") == session.variables("before")
