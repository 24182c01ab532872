"""The compiler cache in front of the compilers, asked by ccache itself."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.app.build import find_ccache
from axletree.core.records import Grant, LocalFacts
from axletree.execute.context import Context, Outcome
from axletree.execute.variables import child_environment
from axletree.store.store import Store
from support.requests import request_of, run_request
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

    request = request_of("lib", grant=Grant(jobs=1), local=LocalFacts(ccache=CCACHE))
    done, _ = run_request(store, request, action)
    assert done
    assert asked == {"cache_dir": str(store.cache / "ccache"), "max_size": "10.0 GB"}
