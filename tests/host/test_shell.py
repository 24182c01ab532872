"""``shell`` opens the folder of the stage that was meant, and of no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.app.shell import find_place, find_request
from axletree.core.errors import UsageError
from axletree.execute.stage import stage_lock, work_folder
from axletree.store.store import Store
from support.requests import request_of

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.records import StageRequest


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def left(store: Store, recipe: str, stage: str = "build[py311]") -> StageRequest:
    """A request of a stage that failed, and its folder."""
    request = msgspec.structs.replace(request_of(stage, axes={"of": recipe}), recipe=recipe)
    store.put_request(request)
    work_folder(store, request.key).mkdir(parents=True)
    return request


def test_a_stage_is_that_of_the_recipe_that_is_named(store: Store) -> None:
    one, other = left(store, "one"), left(store, "other")
    assert find_request(store, "one:build[py311]") == one
    assert find_place(store, "other:build[py311]").folder == work_folder(store, other.key)
    with pytest.raises(UsageError, match="ran for several recipes: one, other") as caught:
        find_place(store, "build[py311]")
    assert caught.value.problems[0].hint == "specify the recipe, too: 'other:build[py311]'"
    with pytest.raises(UsageError, match="never run a stage 'third:build"):
        find_request(store, "third:build[py311]")


def test_a_bare_id_will_do_where_one_recipe_has_it(store: Store) -> None:
    test = left(store, "one", "test:smoke:pip")
    left(store, "", "lib")  # as earlier versions wrote them
    lib = left(store, "two", "lib")
    assert find_request(store, "test:smoke:pip") == test
    assert find_request(store, "lib") == lib


def test_the_folder_of_a_running_stage_stays_closed(store: Store) -> None:
    request = left(store, "one")
    with store.lock(stage_lock(request.key)), pytest.raises(UsageError, match="is running"):
        find_place(store, "build[py311]")
    assert find_place(store, "build[py311]").folder == work_folder(store, request.key)
