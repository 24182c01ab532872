"""Which search path entries lead into what builds."""

from __future__ import annotations

import pytest

from axletree.package.libraries.build_paths import build_paths, interpreter_folders

PYTHON = "/home/ada/.pyenv/versions/3.11.7"
WORK = "0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("program", "folders"),
    [
        (f"{PYTHON}/bin/python3.11", (PYTHON,)),
        ("/opt/python/cp311-cp311/bin/../bin/python", ("/opt/python/cp311-cp311",)),
        ("/usr/bin/python3", ()),
        ("/usr/local/bin/python3.13", ()),
        ("/python", ()),
    ],
)
def test_an_interpreter_owns_its_folder_unless_the_system_does(program: str, folders: tuple[str, ...]) -> None:
    assert interpreter_folders([program, program]) == folders


@pytest.mark.parametrize(
    "entry",
    [
        f"{PYTHON}/lib",
        f"{PYTHON}//lib/",
        PYTHON,
        f"/home/u/.cache/axletree/environments/{WORK}/lib",
        f"/store/work/{WORK}/out/lib",
        f"/store/workspaces/{WORK}",
    ],
)
def test_entries_of_the_build(entry: str) -> None:
    assert build_paths([entry, "$ORIGIN"], [PYTHON]) == (entry,)


@pytest.mark.parametrize(
    "entry",
    [
        f"{PYTHON}-debug/lib",
        "/home/ada/.pyenv/versions/3.12.1/lib",
        "/usr/lib",
        "/opt/vendor/lib",
        "/home/u/work/project/lib",
        f"{PYTHON}/../other/lib",
        f"$ORIGIN/..{PYTHON}",
        "",
    ],
)
def test_entries_of_others(entry: str) -> None:
    assert build_paths([entry], [PYTHON]) == ()
