"""Programs that are run to their end: what comes back, and what an error says."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError
from axletree.host.git import finish_git, git_environ, git_failure
from axletree.host.run import Finished, finish, output_of, run

if TYPE_CHECKING:
    from pathlib import Path


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", code]


def test_a_program_gets_these_variables_this_folder_and_this_text(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ.get('HOME'), os.environ['X'], os.getcwd(), sys.stdin.read())"
    said = run(python(code), environ={"X": "y"}, cwd=tmp_path, text="of mine")
    assert said == f"None y {tmp_path} of mine\n"


def test_a_program_never_reads_what_is_ours_to_read() -> None:
    assert run(python("import sys; print(sys.stdin.read())")) == "\n"


def test_output_is_what_was_written_byte_by_byte() -> None:
    done = finish(python(r"import sys; sys.stdout.buffer.write(b'a\r\n\xff')"))
    assert done.out == b"a\r\n\xff"
    assert done.text.encode("utf-8", "surrogateescape") == done.out


def test_a_failure_has_the_command_its_code_and_its_last_lines() -> None:
    code = "import sys; sys.exit('\\n'.join(f'line {n}' for n in range(9)))"
    with pytest.raises(HostError) as raised:
        run(python(code), what="asking", hint="try again")
    lines = ["asking failed with exit code 1: line 3", *(f"    line {n}" for n in range(4, 9)), "  hint: try again"]
    assert str(raised.value).splitlines() == lines


def test_a_program_that_says_nothing_has_its_exit_code() -> None:
    assert Finished(7, b"", b" \n").ending() == "exit code 7"
    assert Finished(7, b"only output\n", b"").ending() == "exit code 7: only output"


def test_a_program_that_is_not_there_or_never_ends_is_a_clear_error() -> None:
    with pytest.raises(HostError, match="cannot run /no/such/program: No such file or directory"):
        finish(["/no/such/program"])
    with pytest.raises(HostError, match=re.escape(f"{sys.executable} did not respond within 0.2 s")):
        finish(python("import time; time.sleep(60)"), seconds=0.2)


def test_a_question_without_an_answer_is_an_empty_text() -> None:
    environ = {"PATH": os.defpath}
    assert output_of(["/no/such/program"], environ=environ, seconds=5) == ""
    assert output_of(python("print('said'); raise SystemExit(1)"), environ=environ, seconds=5) == ""
    assert output_of(python("print('said')"), environ=environ, seconds=5) == "said\n"


def test_git_is_run_without_what_a_hook_leaves_and_with_the_users_configuration(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("[user]\n\tname = somebody\n")
    environ = {**os.environ, "GIT_DIR": "/no/such", "GIT_CONFIG_GLOBAL": str(tmp_path / "config")}
    for arguments, said in ((["init", "--quiet"], ""), (["config", "user.name"], "somebody\n")):
        assert finish_git(arguments, folder=tmp_path, environ=git_environ(environ), protocols=()).text == said
    assert (tmp_path / ".git").is_dir()


def test_an_error_of_git_has_no_password() -> None:
    url = "https://me:secret@host.invalid/x.git"
    failure = str(git_failure("fetch", Finished(1, b"", f"fatal: can't read {url}".encode()), place="here"))
    assert failure == "here: git fetch failed with exit code 1: fatal: can't read https://****@host.invalid/x.git"
