from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.core.trees import (
    Entry,
    Tree,
    all_safe_paths,
    decode_tree,
    encode_tree,
    is_safe_link,
    is_safe_path,
    make_tree,
    paths_above_others,
)
from axletree.core.values import Digest, digest_of

if TYPE_CHECKING:
    import random

BLOB = digest_of(b"content")


def a_file(path: str, *, executable: bool = False) -> Entry:
    return Entry(path=path, blob=BLOB, size=7, executable=executable)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../a",
        "a/..",
        "a/../b",
        ".",
        "./a",
        "a/.",
        "a//b",
        "a/",
        "a\\b",
        "a\0b",
        "a/\udcff",
    ],
)
def test_unsafe_paths_are_refused(path: str) -> None:
    assert not is_safe_path(path)
    with pytest.raises(IntegrityError, match="unsafe path"):
        make_tree([a_file(path)])


@pytest.mark.parametrize("path", ["a", "a/b", ".hidden", "a/..b", "...", "a b/ü", "a\nb", "a..", "lib/x.so.1"])
def test_safe_paths_are_taken(path: str) -> None:
    assert is_safe_path(path)
    assert make_tree([a_file(path)]).find(path) == a_file(path)


@pytest.mark.parametrize("target", ["/etc/passwd", "", "a\0b", "\udcff"])
def test_links_that_are_absolute_or_no_text_are_refused(target: str) -> None:
    assert not is_safe_link(target)
    with pytest.raises(IntegrityError, match="link in a tree must have a relative target"):
        make_tree([Entry(path="a", kind="link", target=target)])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (Entry(path="a"), "must have a digest"),
        (Entry(path="a", blob=Digest("../../etc/passwd"), size=1), "must have a digest"),
        (Entry(path="a", blob=BLOB, size=-1), "must have a digest"),
        (Entry(path="a", blob=BLOB, target="b"), "must have a digest"),
        (Entry(path="a", kind="link"), "must have a relative target"),
        (Entry(path="a", kind="link", target="b", blob=BLOB), "must have a relative target"),
        (Entry(path="a", kind="directory", executable=True), "empty folder"),
        (Entry(path="a", kind="directory", target="b"), "empty folder"),
    ],
)
def test_fields_that_do_not_fit_the_kind_are_refused(entry: Entry, message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        make_tree([entry])


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(IntegrityError) as caught:
        make_tree([a_file("../a"), a_file("b"), a_file("b"), a_file("c"), a_file("c/d/e"), Entry(path="f")])
    assert [problem.message for problem in caught.value.problems] == [
        "unsafe path in a tree: '../a'",
        "duplicate path in a tree: b",
        "a file in a tree must have a digest and a size, and no link target: f",
        "path is both a file and a folder in a tree: c",
    ]


@given(st.lists(st.lists(st.sampled_from(["a", "b", "a-", "é", "\x01"]), min_size=1, max_size=4).map("/".join)))
def test_paths_above_others_are_those_that_are_folders_of_some(paths: list[str]) -> None:
    expected = {above for above in paths if any(below.startswith(f"{above}/") for below in paths)}
    assert set(paths_above_others(paths)) == expected


def test_nothing_can_lie_below_a_link_or_an_empty_folder() -> None:
    for leaf in (Entry(path="a", kind="link", target="../.."), Entry(path="a", kind="directory")):
        with pytest.raises(IntegrityError, match="path is both a file and a folder in a tree: a"):
            make_tree([leaf, a_file("a/b")])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"entries":[{"path":"\xff"}],"format":1}',
        b'{"entries":[],"format":2}',
        b'{"entries":[{"path":"../a","blob":"' + BLOB.encode() + b'"}],"format":1}',
    ],
)
def test_what_is_no_listing_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError):
        decode_tree(data)


def test_the_encoding_is_fixed() -> None:
    """Digests of trees are in keys and records: a change of the encoding makes every stage run again."""
    tree = make_tree([a_file("b", executable=True), Entry(path="a", kind="link", target="b")])
    assert encode_tree(tree) == (
        b'{"entries":[{"kind":"link","path":"a","target":"b"},'
        b'{"blob":"' + BLOB.encode() + b'","executable":true,"path":"b","size":7}],"format":1}'
    )


paths = st.lists(st.text("abc.", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)


@given(st.lists(paths, max_size=12), st.randoms(use_true_random=False))
def test_a_tree_is_a_value_whatever_the_order_of_its_entries(names: list[str], draw: random.Random) -> None:
    entries = [a_file(name, executable=len(name) % 2 == 0) for name in names]
    try:
        tree = make_tree(entries)
    except IntegrityError:
        folders = {name[:at] for name in names for at in range(len(name)) if name[at] == "/"}
        assert len(set(names)) < len(names) or folders & set(names) or not all(map(is_safe_path, names))
        return
    draw.shuffle(entries)
    assert make_tree(entries) == tree
    assert decode_tree(encode_tree(tree)) == tree
    assert json.loads(encode_tree(tree))["entries"] == sorted(
        json.loads(encode_tree(tree))["entries"], key=lambda entry: entry["path"]
    )
    assert all(tree.find(name) is not None for name in names)
    assert tree.find("absent") is None
    assert tree.size == 7 * len(names)
    assert tree.blobs == ({BLOB: 7} if names else {})


def test_an_empty_tree_is_a_tree() -> None:
    assert decode_tree(encode_tree(make_tree([]))) == Tree(entries=())


@given(
    st.lists(st.sampled_from(["a", "a.b/..c", "é/x y", "...", "a/.b/-"]), max_size=3),
    st.text(st.sampled_from("a./\\\n\0\ud800é"), max_size=6),
)
def test_paths_are_safe_together_if_each_is(paths: list[str], another: str) -> None:
    assert all_safe_paths(paths)
    assert not all_safe_paths([*paths, another]) or is_safe_path(another)


def test_plain_paths_are_safe_together() -> None:
    assert all_safe_paths(["a", "a.b/..c/d..", "é/x y"])
