"""The compiler cache in front of the compilers, asked by ccache itself."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.app.build import find_ccache
from axletree.core.records import Grant, StageRequest
from axletree.core.values import StageId, key_of
from axletree.execute.context import Context, Outcome
from axletree.execute.environ import child_environment
from axletree.execute.stage import run_stage
from axletree.store.store import Store
from support.store import write_files

if TYPE_CHECKING:
    from pathlib import Path

CCACHE = find_ccache()


@pytest.mark.skipif(CCACHE is None or shutil.which("cc") is None, reason="needs ccache and a C compiler")
def test_it_lies_in_the_store_and_has_a_limit(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    asked: dict[str, str] = {}

    def action(context: Context) -> Outcome:
        with child_environment(context, venv=None, compiles=True) as env:
            for setting in ("cache_dir", "max_size"):
                command = [str(CCACHE), "--get-config", setting]
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
                asked[setting] = done.stdout.strip()
        return Outcome(tree=context.store.ingest(write_files(context.work / "out", {"a": b""})))

    ingredients = {"action": {"name": "made-up", "revision": 1}, "parameters": {}, "inputs": {}}
    request = StageRequest(
        stage=StageId("lib"),
        action="made-up",
        key=key_of(ingredients),
        ingredients=ingredients,
        inputs={},
        grant=Grant(jobs=1),
        local={"ccache": CCACHE},
    )
    assert run_stage(store, request, action, emit=lambda _: None, environ={})
    assert asked == {"cache_dir": str(store.cache / "ccache"), "max_size": "10.0 GB"}
