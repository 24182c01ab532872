"""Publishing: wheels are copied piece by piece and checked on the way; a damaged one changes nothing."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.app.publish import publish
from axletree.core.records import StageRecord
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Key, StageId
from axletree.package.index import IndexFile, render_index
from axletree.plan.actions.listing import ListedFile, ListingFacts, ListingParameters
from axletree.plan.actions.spec import facts_of
from axletree.plan.actions.table import ACTIONS
from axletree.store.blobs import CorruptBlob
from axletree.store.store import Store
from support.requests import ingredients_of
from support.store import damage

if TYPE_CHECKING:
    from pathlib import Path

NAME = "small-1.0-py3-none-any.whl"
LARGE = 48 << 20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def index_of(store: Store, content: bytes) -> StageRecord:
    """What an index stage makes of one wheel."""
    wheel = store.put_bytes(content)
    file = IndexFile(filename=NAME, size=len(content), sha256=wheel)
    entries = [Entry(path=NAME, blob=wheel, size=len(content))]
    for path, page in render_index([file]).items():
        entries.append(Entry(path=path, blob=store.put_bytes(page), size=len(page)))
    return StageRecord(
        stage=StageId("index:."),
        key=Key("0" * 64),
        tree=store.put_tree(make_tree(entries)),
        ingredients=ingredients_of(ListingParameters(root="."), action="index", spec=ACTIONS["index"]),
        facts=msgspec.to_builtins(
            ListingFacts(kind="index", root=".", files=(ListedFile(filename=NAME, sha256=wheel, size=len(content)),))
        ),
    )


def test_a_large_wheel_is_never_in_memory_as_a_whole(store: Store, tmp_path: Path) -> None:
    record = index_of(store, bytes(LARGE))
    tracemalloc.start()
    try:
        (file,) = publish(tmp_path / "out", [record], store)
        (tmp_path / "out" / "simple" / "index.html").unlink()
        (tmp_path / "out" / "simple" / "small" / "index.json").unlink()
        publish(tmp_path / "out", [record], store)  # compares it with the one that is there
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (file.path, file.size, file.fresh) == (NAME, LARGE, True)
    assert (tmp_path / "out" / NAME).stat().st_size == LARGE
    assert peak < LARGE // 4


def test_a_damaged_wheel_is_found_while_it_is_copied_and_nothing_appears(store: Store, tmp_path: Path) -> None:
    record = index_of(store, b"a wheel" * 99)
    damage(store, facts_of(record, ListingFacts).files[0].sha256)
    with pytest.raises(CorruptBlob):
        publish(tmp_path / "out", [record], store)
    assert [path.name for path in (tmp_path / "out").rglob("*") if path.is_file()] == [".axletree.lock"]
    with pytest.raises(CorruptBlob, match="is corrupt"):  # set aside, so whatever made it runs again
        publish(tmp_path / "out", [record], store)
