"""The ``index`` stage: what its pages say of wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.binary.zip.records import EARLIEST
from axletree.core.records import StageRecord
from axletree.package.index import read_index
from axletree.plan.actions.listing import ListingParameters
from axletree.store.store import Store
from support.requests import run_action
from support.store import write_files
from support.wheels import demo_metadata, wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("epoch", "time"), [(EARLIEST, None), (1_769_860_800, "2026-01-31T12:00:00Z")], ids=["nothing", "a date"]
)
def test_the_upload_time_is_what_the_user_gives(epoch: int, time: str | None, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    data = wheel_bytes({"demo/__init__.py": b""}, metadata=demo_metadata("1.0"))
    wheel = store.ingest(write_files(tmp_path / "wheel", {"demo-1.0-py3-none-any.whl": data}))
    record = run_action(store, "index", ListingParameters(root="."), {"wheel:demo": wheel}, epoch=epoch)
    assert isinstance(record, StageRecord)
    (page,) = (entry for entry in store.get_tree(record.tree).entries if entry.path == "simple/demo/index.json")
    assert page.blob is not None
    (line,) = read_index(store.read_blob(page.blob), file=page.path)
    assert line.upload_time == time
