"""Layers become roots: what OCI's whiteouts mean, and that nothing leaves the root, whatever a layer contains."""

from __future__ import annotations

import hashlib
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.core.values import Digest
from axletree.host.image.inside import read_inside, resolve_inside
from axletree.host.image.layers import LayerFile, apply_layer
from axletree.host.image.root import RootWriter
from support.images import HARD, LINK, folder, layer, listing, member, packed, tiny_layer

if TYPE_CHECKING:
    from collections.abc import Sequence

Member = tuple[tarfile.TarInfo, bytes]
_FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def unpack(place: Path, *layers: bytes, pack: str = "gzip", room: int = 1000) -> Path:
    """Write layers into a new root."""
    root = place / "root"
    root.mkdir()
    with RootWriter(root) as writer:
        for number, data in enumerate(layers):
            path = place / f"layer-{number}"
            path.write_bytes(packed(data, pack))
            suffix = {"gzip": "gz", "zstd": "zst", "": ""}[pack]
            digest = Digest(hashlib.sha256(data).hexdigest())
            file = LayerFile(path=path, name=f"layer {number}", suffix=suffix, diff_id=digest)
            writer.begin(file.name, first=number == 0)
            apply_layer(writer, file, at=path, room=room)
        writer.finish()
    return root


@pytest.mark.parametrize("pack", ["gzip", "zstd", ""])
def test_a_layer_is_unpacked_with_modes_links_and_dates(tmp_path: Path, pack: str) -> None:
    root = unpack(tmp_path, tiny_layer(), pack=pack)
    found = listing(root)
    assert found["usr/bin/tool"][:2] == ("file", "755")
    assert (root / "usr/bin/tool").samefile(root / "usr/bin/same")
    assert found["bin"] == ("link", "/usr/bin")
    assert found["tmp"] == ("folder", "1777")
    assert found["root"] == ("folder", "700")
    assert found["root/secret"][1] == "600"
    assert found["usr"] == ("folder", "755")
    assert (root / "usr/lib/Főtanúsítvány.crt").read_bytes() == b"c"
    assert (root / r"usr/lib/system-a\x2db.slice").stat().st_mtime == 1_000_000_000
    assert "dev/null" not in found


def test_whiteouts_are_about_lower_layers_only(tmp_path: Path) -> None:
    lower = layer(*(member(name, b"old") for name in ("a/x", "a/y", "b/x", "b/deep/z", "c", "d/x", "keep")))
    upper = layer(
        member("a/.wh.x"),
        member("b/new", b"new"),
        member("b/deep/new", b"new"),
        member("b/.wh..wh..opq"),
        member("c", b"new"),
        member(".wh.c"),
        member(".wh.d"),
        member(".wh.never"),
        member("never/.wh.there"),
    )
    found = listing(unpack(tmp_path, lower, upper))
    files = {path for path, what in found.items() if what[0] == "file"}
    assert files == {"a/y", "b/new", "b/deep/new", "c", "keep"}
    assert found["c"][2] == hashlib.sha256(b"new").hexdigest()
    assert "d" not in found


def test_the_first_layer_hides_nothing(tmp_path: Path) -> None:
    assert "a" in listing(unpack(tmp_path, layer(member("a", b"x"), member(".wh.a"), member(".wh..wh..opq"))))


def test_entries_replace_what_is_of_another_kind(tmp_path: Path) -> None:
    lower = layer(
        member("file", b"x"),
        member("tree/inner/x", b"x"),
        member("link", kind=LINK, target="tree"),
        folder("kept", 0o700),
        member("kept/x", b"x"),
    )
    upper = layer(
        folder("file"),
        member("tree", b"now a file"),
        folder("link"),
        member("link/x", b"x"),
        folder("kept", 0o711),
    )
    found = listing(unpack(tmp_path, lower, upper))
    assert found["tree"][0] == "file"
    assert found["link/x"][0] == "file"
    assert found["file"] == ("folder", "755")
    assert (found["kept"], found["kept/x"][0]) == (("folder", "711"), "file")


def test_nothing_is_below_a_file(tmp_path: Path) -> None:
    with pytest.raises(
        IntegrityError,
        match=r"layer 1: file/x: damaged archive: the entry is below 'file', which is a file in the image",
    ):
        unpack(tmp_path, layer(member("file", b"x")), layer(folder("file/x")))


def test_a_hard_link_to_a_lower_layer_is_kept(tmp_path: Path) -> None:
    root = unpack(tmp_path, layer(member("a/x", b"x")), layer(member("b/y", kind=HARD, target="a/x")))
    assert (root / "a/x").samefile(root / "b/y")


def test_folders_without_rights_can_be_filled(tmp_path: Path) -> None:
    root = unpack(tmp_path, layer(folder("a", 0o555), member("a/x", b"x"), folder("a/b", 0), member("a/b/y", b"y")))
    assert {path: what[1] for path, what in listing(root).items()} == {
        "a": "755",
        "a/x": "644",
        "a/b": "700",
        "a/b/y": "644",
    }


OUT = "../outside"
HOSTILE: dict[str, list[Member]] = {
    "absolute": [member("/outside/x", b"evil")],
    "dots": [member("../outside/x", b"evil")],
    "inner dots": [folder("a"), member("a/../../outside/x", b"evil")],
    "through a link": [member("a", kind=LINK, target=OUT), member("a/x", b"evil")],
    "through an absolute link": [member("a", kind=LINK, target="{outside}"), member("a/x", b"evil")],
    "through two links": [
        member("a", kind=LINK, target=OUT),
        member("b", kind=LINK, target="a"),
        member("b/x", b"evil"),
    ],
    "folder through a link": [member("a", kind=LINK, target=OUT), folder("a/sub/x")],
    "link through a link": [member("a", kind=LINK, target=OUT), member("a/x", kind=LINK, target="y")],
    "hard link out": [member("x", kind=HARD, target="../outside/old")],
    "absolute hard link": [member("x", kind=HARD, target="{outside}/old")],
    "hard link through a link": [member("a", kind=LINK, target=OUT), member("x", kind=HARD, target="a/old")],
    "hard link into a link": [member("a", kind=LINK, target=OUT), member("a/x", kind=HARD, target="a/old")],
    "hard link to nothing": [member("x", kind=HARD, target="nothing")],
    "hard link to a folder": [folder("a"), member("x", kind=HARD, target="a")],
    "hard link to itself": [member("x", b"x"), member("x", kind=HARD, target="x")],
    "device": [member("x", kind=tarfile.BLKTYPE)],
    "below a file": [member("a", b"x"), member("a/x", b"x")],
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("alone", [True, False], ids=["one layer", "two layers"])
def test_hostile_layers_are_refused_and_touch_nothing_outside(tmp_path: Path, name: str, *, alone: bool) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").write_bytes(b"old")
    members = HOSTILE[name]
    for info, _ in members:
        info.linkname = info.linkname.replace("{outside}", str(outside))
    last = len(members) - 1
    layers = [layer(*members)] if alone else [layer(*members[:last]), layer(members[last])]
    with pytest.raises(IntegrityError, match=r"layer [01]: "):
        unpack(tmp_path, *layers)
    assert listing(outside) == {"old": ("file", "644", hashlib.sha256(b"old").hexdigest())}


@pytest.mark.parametrize("whiteout", ["a/.wh.old", "a/.wh..wh..opq", ".wh.a"])
def test_whiteouts_do_not_follow_links(tmp_path: Path, whiteout: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").write_bytes(b"old")
    unpack(tmp_path, layer(member("a", kind=LINK, target=OUT)), layer(member(whiteout)))
    assert (outside / "old").exists()


def test_replacing_a_link_leaves_its_target(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    root = unpack(tmp_path, layer(member("a", kind=LINK, target="../old"), member("a", b"new")))
    assert (tmp_path / "old").read_bytes() == b"old"
    assert (root / "a").read_bytes() == b"new"


def test_a_bomb_of_bytes_is_refused(tmp_path: Path) -> None:
    from axletree.host.image.layers import chunks_of

    (tmp_path / "bomb").write_bytes(packed(bytes(3 << 20), "gzip"))
    with pytest.raises(IntegrityError, match=r"layer: unsupported archive: it would unpack to more than 1.05 MB"):
        for _ in chunks_of(tmp_path / "bomb", "gz", name="layer", limit=1 << 20):
            pass


def test_a_bomb_of_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="has more than 10 entries"):
        unpack(tmp_path, layer(*(member(f"f{number}") for number in range(11))), room=10)


@pytest.mark.parametrize("pack", ["gzip", "zstd", ""])
def test_truncated_and_changed_layers_are_refused(tmp_path: Path, pack: str) -> None:
    data = tiny_layer()
    whole = packed(data, pack)
    digest = Digest(hashlib.sha256(data).hexdigest())
    suffix = {"gzip": "gz", "zstd": "zst", "": ""}[pack]
    changed = packed(layer(member("other", b"x")), pack)
    for number, content in enumerate([whole[: len(whole) // 2], whole[:-1], changed, b"garbage" * 100, whole + b"x"]):
        root, path = tmp_path / f"root-{number}", tmp_path / f"layer-{number}"
        root.mkdir()
        path.write_bytes(content)
        file = LayerFile(path=path, name="layer", suffix=suffix, diff_id=digest)
        with RootWriter(root) as writer:
            writer.begin("layer", first=True)
            with pytest.raises(IntegrityError, match=r"^layer: "):
                apply_layer(writer, file, at=path, room=1000)


def test_files_are_read_as_the_image_sees_them(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"the host's")
    root = unpack(
        tmp_path,
        layer(
            member("real", b"the image's"),
            member("absolute", kind=LINK, target="/real"),
            member("up", kind=LINK, target="../../../../real"),
            member("out", kind=LINK, target=str(outside)),
            member("loop", kind=LINK, target="loop"),
            member("sub/up", kind=LINK, target="../real"),
            member("pipe", kind=tarfile.FIFOTYPE),
        ),
    )
    for path in ("real", "absolute", "up", "sub/up", "/sub/../real"):
        assert read_inside(root, path, most=100) == b"the image's", path
    for path in ("out", "loop", "nothing", "sub", "pipe", "real/x"):
        assert read_inside(root, path, most=100) is None, path
    assert resolve_inside(root, "absolute") == root / "real"


# Random layers against a model of the specification

NAMES = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map(tuple)
STEPS = st.lists(
    st.tuples(st.sampled_from(["file", "folder", "link", "hide", "opaque"]), NAMES, st.integers(0, 9)), max_size=7
)
State = dict[tuple[str, ...], tuple[str, ...]]


def model(layers: Sequence[list[tuple[str, tuple[str, ...], int]]]) -> State | None:
    """What the specification makes of layers: whiteouts first, for they are about lower layers; ``None``: refused."""
    state: State = {}
    for steps in layers:
        for kind, path, _ in steps:
            if kind in {"hide", "opaque"}:
                state = (
                    {
                        each: what
                        for each, what in state.items()
                        if each[: len(path)] != path
                        or (kind == "opaque" and (each == path or state[path][0] != "folder"))
                    }
                    if path in state
                    else state
                )
        for kind, path, value in steps:
            if kind in {"hide", "opaque"}:
                continue
            for size in range(1, len(path)):
                if state.setdefault(path[:size], ("folder",))[0] != "folder":
                    return None
            if kind != "folder" or state.get(path, ("",))[0] != "folder":
                state = {each: what for each, what in state.items() if each[: len(path)] != path}
                state[path] = {"file": ("file", str(value)), "folder": ("folder",), "link": ("link", str(value))}[kind]
    return state


def built(steps: list[tuple[str, tuple[str, ...], int]]) -> bytes:
    members = []
    for kind, path, value in steps:
        name = "/".join(path)
        above = "/".join(path[:-1])
        members.append(
            {
                "file": member(name, str(value).encode()),
                "folder": folder(name),
                "link": member(name, kind=LINK, target=str(value)),
                "hide": member(f"{above}/.wh.{path[-1]}".removeprefix("/")),
                "opaque": member(f"{name}/.wh..wh..opq"),
            }[kind]
        )
    return layer(*members)


@_FEW
@given(st.lists(STEPS, min_size=1, max_size=3))
def test_random_layers_become_what_the_specification_says(
    layers: list[list[tuple[str, tuple[str, ...], int]]],
) -> None:
    # Real layers have their whiteouts first in each folder: after an entry, they could only be about lower layers too.
    ordered = [sorted(steps, key=lambda step: step[0] not in {"hide", "opaque"}) for steps in layers]
    expected = model(ordered)
    with tempfile.TemporaryDirectory() as place:
        try:
            root = unpack(Path(place), *map(built, ordered))
        except IntegrityError:
            assert expected is None
            return
        found: State = {}
        for path, what in listing(root).items():
            inside = root / path
            text = (inside.read_text(),) if what[0] == "file" else (what[1],) if what[0] == "link" else ()
            found[tuple(path.split("/"))] = (what[0], *text)
    assert found == expected


@_FEW
@given(st.data())
def test_no_damage_to_a_layer_does_more_than_an_error(data: st.DataObject) -> None:
    content = bytearray(tiny_layer())
    for _ in range(data.draw(st.integers(1, 4))):
        # Headers are where it matters, and they are at multiples of 512.
        at = data.draw(st.integers(0, len(content) // 512 - 1)) * 512 + data.draw(st.integers(0, 511))
        content[at] = data.draw(st.integers(0, 255))
    fixed = bytes(content)
    if data.draw(st.booleans()):
        fixed = _with_checksums(content)
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "outside").mkdir()
        with suppress(IntegrityError):
            unpack(Path(place), fixed)
        assert sorted(path.name for path in Path(place).iterdir()) == ["layer-0", "outside", "root"]
        assert not any((Path(place) / "outside").iterdir())


def _with_checksums(content: bytearray) -> bytes:
    """Correct the checksum of each block that looks like a header, so that the damage is not found by that alone."""
    for at in range(0, len(content) - 511, 512):
        block = content[at : at + 512]
        if block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            content[at + 148 : at + 156] = b"%06o\0 " % sum(block)
    return bytes(content)
