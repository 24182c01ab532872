"""The child that runs a stage, and the stream between it and the driver: what does not belong there is put up with."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.core.events import StageProgress
from axletree.core.values import digest_of
from axletree.execute.executor import LocalExecutor
from axletree.plan.actions.fetch import FetchParameters, FileSource, FolderSource
from axletree.plan.actions.table import ACTIONS
from axletree.recipe.settings import Settings
from axletree.store.store import Store
from support.requests import request_of
from support.store import write_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from axletree.core.events import Event, StageFinished
    from axletree.core.values import Digest
    from axletree.plan.actions.fetch import PinnedSource


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def run(store: Store, tree: Digest, noise: str, folder: Path) -> StageFinished:
    """Run a fetch stage in a process that starts by saying something."""
    write_files(folder, {"sitecustomize.py": noise.encode()})
    return fetch(store, FolderSource(tree=tree), folder, Settings())


def fetch(
    store: Store,
    source: PinnedSource,
    folder: Path,
    settings: Settings,
    *,
    events: list[Event] | None = None,
    variables: Mapping[str, str] | None = None,
) -> StageFinished:
    parameters = FetchParameters(source=source)
    request = request_of("fetch", parameters, action="fetch", spec=ACTIONS["fetch"])
    heard: list[Event] = [] if events is None else events
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(folder), **(variables or {})}
    executor = LocalExecutor(store, environ, settings)
    return asyncio.run(executor.run(request, heard.append))


NOISE = """
import os, sys
if "run-stage" in sys.orig_argv:
    os.write(1, b"a library says hello\\n\\xff\\xfe{}\\n" + b"{\\"event\\":\\"of-tomorrow\\"}\\n")
"""


def test_other_lines_on_the_output_of_a_stage_are_no_harm(store: Store, tmp_path: Path) -> None:
    tree = store.ingest(write_files(tmp_path / "source", {"a": b"1"}))
    finished = run(store, tree, NOISE, tmp_path / "noise")
    assert (finished.status, finished.tree) == ("done", tree)


def test_a_stage_that_vanishes_has_its_figures(store: Store, tmp_path: Path) -> None:
    tree = store.ingest(write_files(tmp_path / "source", {"a": b"1"}))
    killed = 'import os, sys\nif "run-stage" in sys.orig_argv:\n    os.kill(os.getpid(), 9)\n'
    finished = run(store, tree, killed, tmp_path / "killed")
    assert (finished.status, finished.killed, finished.exit_code) == ("failed", True, 1)
    assert finished.metrics is not None
    assert finished.metrics.wall > 0


def test_a_line_without_end_is_cut_out(store: Store, tmp_path: Path) -> None:
    tree = store.ingest(write_files(tmp_path / "source", {"a": b"1"}))
    noise = NOISE.replace('b"a library', 'b"x" * (20 << 20) + b"\\n" + b"a library').replace("os.write(1,", "write(")
    noise = noise.replace("import os, sys\n", "import sys\nwrite = lambda data: print(end=data.decode('latin-1'))\n")
    finished = run(store, tree, noise, tmp_path / "noise")
    assert (finished.status, finished.tree) == ("done", tree)


def test_of_a_stage_without_a_result_they_are_shown(store: Store, tmp_path: Path) -> None:
    report = "    os.write(1, b'{\\\"schema\\\":1}\\n')\n"  # as run-stage prints it last
    finished = run(store, digest_of(b"none"), f"{NOISE}{report}    os.abort()\n", tmp_path / "noise")
    assert finished.status == "failed"
    assert "a library says hello" in finished.cause
    assert not any("schema" in line for line in finished.cause)


def test_the_stage_has_the_settings_of_the_build_and_no_others(store: Store, tmp_path: Path) -> None:
    """Not those that its own process would find: a variable, another store."""
    content = b"a wheel"
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tiny-1.0-py3-none-any.whl").write_bytes(content)
    source = FileSource(filename="tiny-1.0-py3-none-any.whl", sha256=digest_of(content), size=len(content))
    elsewhere = {
        "AXLETREE_FIND_LINKS": str(tmp_path / "links"),
        "AXLETREE_STORE": str(tmp_path / "other"),
        "AXLETREE_NO_INDEX": "",
    }
    alone = Settings(offline=True, no_index=True)
    finished = fetch(store, source, tmp_path, alone, variables=elsewhere)
    assert finished.status == "failed"
    assert "tiny-1.0" in (finished.message or "")
    found = msgspec.structs.replace(alone, find_links=(str(tmp_path / "links"),))
    finished = fetch(store, source, tmp_path, found, variables=elsewhere)
    assert finished.status == "done", finished
    assert store.has_blob(digest_of(content))
    assert not (tmp_path / "other").exists()


def test_a_download_is_counted_in_bytes(store: Store, tmp_path: Path) -> None:
    content = bytes(54_631)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "tiny-1.0-py3-none-any.whl").write_bytes(content)
    source = FileSource(filename="tiny-1.0-py3-none-any.whl", sha256=digest_of(content), size=len(content))
    found = Settings(offline=True, no_index=True, find_links=(str(tmp_path / "links"),))
    events: list[Event] = []
    assert fetch(store, source, tmp_path, found, events=events).status == "done"
    steps = [event for event in events if isinstance(event, StageProgress) and event.done is not None]
    assert [(step.done, step.total, step.unit) for step in steps] == [(0, 54_631, "bytes"), (54_631, 54_631, "bytes")]


PRINTING = """
import threading
from axletree.app.run_stage import print_event
def tell(name):
    for _ in range(50):
        print_event(b'"' + name * 200_000 + b'"\\n')
threads = [threading.Thread(target=tell, args=(name,)) for name in (b"a", b"b")]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


def test_lines_of_two_threads_stay_whole() -> None:
    done = subprocess.run([sys.executable, "-c", PRINTING], check=True, capture_output=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [len(set(line)) for line in lines] == [1] * 100
