"""What somebody meets who writes a first recipe: each failure's report names the line of the recipe that helps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from support.faulty import BOUND, LIBRARY, make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Golden = Callable[[str, str], None]

LINK = '"c++ $CXXFLAGS -shared -fPIC -o $AXLETREE_OUT/lib/libsmall.so -Wl,-soname,libsmall.so small.cpp"'
AXES = '[axes]\ngpu = ["cpu"]\n\n[stages.lib]\naxes = ["gpu"]'
DOWNLOAD = """\
import sys, urllib.request
try:
    urllib.request.urlopen("https://example.org/libzmq-4.3.5.tar.gz", timeout=5)
except OSError as error:
    sys.exit(f"fatal: unable to access 'https://example.org/libzmq-4.3.5.tar.gz': Could not resolve host: {error}")
"""
FAULTS = {
    # A variable of the shell would reach no stage.
    "warning-as-error": (LIBRARY, (LINK, LINK.replace("-shared", "-Wall -Werror -shared")), {}),
    # The stage has no network by our own doing.
    "stage-downloads": (LIBRARY, (LINK, '"python3 get.py"'), {"src/get.py": DOWNLOAD}),
    # Some project asks for nvcc in a variant for the CPU.
    "toolkit-for-cpu": (
        LIBRARY.replace("[stages.lib]", AXES),
        (LINK, '"echo OSError: CUDA_HOME environment variable is not set. >&2; exit 1"'),
        {},
    ),
    # The package works, and its test needs another one.
    "module-of-test": (BOUND, ("python -c 'import small;", "python -c 'import yaml, small;"), {}),
    "program-missing": (LIBRARY, (LINK, '"swig -python small.i"'), {}),
}
SOURCE = 'int unused() { static int never; return 1; }\nextern "C" int small_answer() { return 42; }\n'


@pytest.mark.parametrize(("recipe", "edit", "files"), FAULTS.values(), ids=FAULTS)
def test_the_report_names_lines_of_the_recipe(
    recipe: str,
    edit: tuple[str, str],
    files: dict[str, str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    golden: Golden,
) -> None:
    project = make_project(tmp_path / "project", recipe, files=files)
    project.edit(*edit)
    if request.node.callspec.id == "warning-as-error":
        (project.source / "small.cpp").write_text(SOURCE, encoding="utf-8")
    ended = project.build()
    account = project.account(ended)
    golden(f"flow/newcomer-{request.node.callspec.id}.txt", account)
    assert ended.code == 1
    assert not re.search(r"\bexport \w+=|pip install|conda install|proxy", account)
    assert "small.toml" in account
