"""What is compiled does not depend on where the store, the recipe and the user's home are."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.app.build import find_ccache
from support.tiny import Tiny, copied, prepared_tiny

if TYPE_CHECKING:
    from pathlib import Path

KEPT = """
[stages.kept]
action = "run"
workspace = true
tools = ["c++"]
commands = [
  "c++ -g -DTINY_BONUS=1 -c tiny.cpp -o $AXLETREE_WORKSPACE/tiny.o",
  "cp $AXLETREE_WORKSPACE/tiny.o $AXLETREE_OUT/",
]
[packages.kept]
from = "kept"
"""


def somewhere_else(tiny: Tiny, root: Path) -> Tiny:
    """The same recipe in another folder, with another store and another home."""
    other = copied(tiny, root / "a-much-longer-path" / "to-another-checkout")
    home = root / "home-of-another-user"
    home.mkdir()
    return other.with_environ(HOME=str(home))


def log_of(tiny: Tiny) -> str:
    return "".join(path.read_text() for path in sorted((tiny.store / "logs").glob("*.log")))


def cache_use(tiny: Tiny) -> list[dict[str, int]]:
    records = (json.loads(path.read_text()) for path in (tiny.store / "results").glob("*/*.json"))
    return [record["compiler_cache"] for record in records if record["stage"] == "kept"]


@pytest.fixture
def two(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tiny, Tiny]:
    tiny = copied(prepared_tiny(tmp_path_factory), tmp_path / "first")
    tiny.add(KEPT)
    return tiny, somewhere_else(tiny, tmp_path / "other")


def test_objects_with_debug_information_are_equal(two: tuple[Tiny, Tiny]) -> None:
    """Compiled in a kept folder, without a word of ours on the command line."""
    one, other = (each.built("--package", "kept") for each in two)
    assert one.trees == other.trees
    for tiny in two:
        (kept,) = (tiny.store / "workspaces").glob("*/state/tiny.o")
        text = subprocess.run(["readelf", "--debug-dump=info", kept], capture_output=True, text=True, check=True).stdout
        assert "/axletree/workspace/source" in text
        assert str(tiny.store) not in text


def test_another_store_takes_what_the_compiler_cache_has(two: tuple[Tiny, Tiny]) -> None:
    if find_ccache() is None:
        pytest.skip("needs ccache")
    first, second = two
    first.built("--package", "kept")
    shutil.rmtree(second.store / "cache" / "ccache", ignore_errors=True)
    shutil.copytree(first.store / "cache" / "ccache", second.store / "cache" / "ccache")
    second.built("--package", "kept")
    assert [each["misses"] for each in cache_use(first)] == [1]
    assert [(each["hits"], each["misses"]) for each in cache_use(second)] == [(1, 0)]


def test_logs_and_messages_have_the_paths_of_this_machine(two: tuple[Tiny, Tiny]) -> None:
    first, _ = two
    first.change("c++ -g -DTINY_BONUS=1 -c", "pwd; echo $AXLETREE_OUT; c++ -g -c")
    failed = first.call("build", str(first.recipe), "--out", str(first.out), "--package", "kept")
    assert failed.returncode == 1
    assert "/axletree/" not in failed.stdout + failed.stderr + log_of(first)
    (kept,) = (first.store / "workspaces").glob("*/source")
    assert str(kept) in log_of(first)
    inside = first.call("shell", "kept", "--", "sh", "-c", "pwd; ls; test -d $AXLETREE_WORKSPACE")
    assert inside.returncode == 0, inside.stderr
    assert inside.stdout.split()[0] == "/axletree/workspace/source"
    assert "tiny.cpp" in inside.stdout
    assert first.call("shell", "kept", "no-such-program").returncode == 2
    assert first.call("shell", "kept", "sh", "-c", "exit 9").returncode == 9
