"""The guard of pure tests works, and does not stand in the way."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import purity

TEMP = tempfile.gettempdir()


def test_writing_a_file_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="a pure test did open"):
        Path(TEMP, "never-written").write_text("x")
    assert not Path(TEMP, "never-written").exists()


def test_starting_a_process_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"a pure test did subprocess\.Popen"):
        subprocess.run([sys.executable, "-c", "pass"], check=False)


def test_connecting_fails() -> None:
    with (
        socket.socket() as sock,
        pytest.raises(pytest.fail.Exception, match=r"a pure test did socket\.connect"),
    ):
        sock.connect(("127.0.0.1", 9))


def test_the_code_under_test_cannot_swallow_it() -> None:
    def careless() -> None:
        try:
            os.mkdir(Path(TEMP, "never-made"))  # noqa: PTH102
        except Exception:  # noqa: BLE001
            return

    with pytest.raises(pytest.fail.Exception):
        careless()


def test_reading_is_allowed() -> None:
    assert Path(__file__).read_text(encoding="utf-8")
    assert Path(os.devnull).exists()


@given(st.text())
def test_hypothesis_is_allowed(text: str) -> None:
    assert text == text  # noqa: PLR0124


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("open", ("/x", "r", os.O_RDONLY)),
        ("open", (3, "w", os.O_WRONLY)),
        ("open", ("/lib/__pycache__/a.pyc", None, os.O_WRONLY | os.O_CREAT)),
        ("os.rename", ("/lib/__pycache__/a.pyc.1", "/lib/__pycache__/a.pyc", -1, -1)),
        ("import", ("os", None, None, None, None)),
    ],
)
def test_what_tools_do_for_themselves_is_allowed(event: str, args: tuple[object, ...]) -> None:
    assert purity.offence(event, args) is None
