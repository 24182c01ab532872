"""Publishing: wheels are copied piece by piece and checked on the way; a damaged one changes nothing."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.app.publish import publish
from axletree.core.errors import PublishError
from axletree.core.records import StageRecord
from axletree.core.trees import Entry, make_tree
from axletree.core.values import Key, StageId
from axletree.package.index import IndexFile, render_index, render_links
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


def index_of(store: Store, content: bytes, *, name: str = NAME) -> StageRecord:
    """What an index stage makes of one wheel."""
    wheel = store.put_bytes(content)
    file = IndexFile(filename=name, size=len(content), sha256=wheel)
    entries = [Entry(path=name, blob=wheel, size=len(content))]
    for path, page in render_index([file]).items():
        entries.append(Entry(path=path, blob=store.put_bytes(page), size=len(page)))
    return StageRecord(
        stage=StageId("index:."),
        key=Key("0" * 64),
        tree=store.put_tree(make_tree(entries)),
        ingredients=ingredients_of(ListingParameters(root="."), action="index", spec=ACTIONS["index"]),
        facts=msgspec.to_builtins(
            ListingFacts(kind="index", root=".", files=(ListedFile(filename=name, sha256=wheel, size=len(content)),))
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


@pytest.mark.parametrize("page", ["simple/index.html", "simple/small/index.html", "simple/small/index.json"])
def test_what_a_publisher_that_was_killed_between_two_pages_left_out_is_added(
    page: str, store: Store, tmp_path: Path
) -> None:
    record = index_of(store, b"a wheel")
    publish(tmp_path, [record], store)
    whole = (tmp_path / page).read_bytes()
    (tmp_path / page).unlink()
    publish(tmp_path, [record], store)
    assert (tmp_path / page).read_bytes() == whole


def test_nothing_is_written_where_all_is_there(store: Store, tmp_path: Path) -> None:
    record = index_of(store, b"a wheel")
    publish(tmp_path, [record], store)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert [file.fresh for file in publish(tmp_path, [record], store)] == [False]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_page_with_all_files_names_what_a_build_adds(store: Store, tmp_path: Path) -> None:
    """`sdk build` made it; whoever publishes into that root keeps it true."""
    (tmp_path / "index.html").write_bytes(render_links([]))
    publish(tmp_path, [index_of(store, b"a wheel")], store)
    assert NAME in (tmp_path / "index.html").read_text(encoding="utf-8")
    (tmp_path / "index.html").write_bytes(b"mine")
    (tmp_path / NAME).unlink()
    publish(tmp_path, [index_of(store, b"another")], store)
    assert (tmp_path / "index.html").read_bytes() == b"mine"


def test_what_is_there_with_other_content_is_named_with_its_root_in_all_roots(store: Store, tmp_path: Path) -> None:
    def records(content: bytes) -> list[StageRecord]:
        made = index_of(store, content)
        return [msgspec.structs.replace(made, facts={**made.facts, "root": root}) for root in ("cpu", "cu130")]

    publish(tmp_path, records(b"a wheel"), store)
    with pytest.raises(PublishError) as caught:
        publish(tmp_path, records(b"another"), store)
    assert [problem.file for problem in caught.value.problems] == [f"cpu/{NAME}", f"cu130/{NAME}"]


def test_two_roots_of_which_one_is_a_link_are_one(store: Store, tmp_path: Path) -> None:
    out = tmp_path / "dist"
    (out / "cpu").mkdir(parents=True)
    (out / "latest").symlink_to("cpu")
    first, second = (index_of(store, b"a wheel", name=f"{name}-1.0-py3-none-any.whl") for name in ("one", "two"))
    records = [
        msgspec.structs.replace(record, facts={**record.facts, "root": root})
        for record, root in ((first, "cpu"), (second, "latest"))
    ]
    publish(out, records, store)
    assert {path.parent.name for path in (out / "cpu").glob("simple/*/index.json")} == {"one", "two"}
