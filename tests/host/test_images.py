"""Images in the store: from every form and back, as skopeo, umoci and podman have them; whole or absent, always."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.app.image_reports import export_image
from axletree.app.images import find_image, make_image
from axletree.core.errors import AxletreeError, HostError, IntegrityError, UsageError
from axletree.core.images import ImageRecord, OsRelease
from axletree.host.image.source import host_platform
from axletree.recipe.images import Image
from axletree.store import Store, du, gc, verify
from support.images import (
    folder,
    layer,
    listing,
    make_layout,
    member,
    need,
    podman,
    put_json,
    run_tool,
    tiny_layer,
    write_index,
)
from support.index_server import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from axletree.recipe.image_locks import LockedImage
    from support.index_server import Server

HIDING = layer(folder("usr"), folder("usr/bin"), member("usr/bin/.wh.same"), member("etc/new", b"new"))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def make(store: Store, source: str, place: Path, locked: LockedImage | None = None) -> tuple[ImageRecord, LockedImage]:
    return make_image(store, "x", Image(from_=source), locked, folder=place)


def root_of(store: Store, record: ImageRecord) -> Path:
    return store.image_path(record.id) / "root"


def leftovers(store: Store) -> list[str]:
    """What is in the area beside images that are whole, and what is left to be swept."""
    return [path.name for path in (*store.images.iterdir(), *store.scratches.iterdir())]


@pytest.fixture
def engine() -> Iterator[list[str | Path]]:
    """The start of podman's command line, with storage of its own. It takes no long path."""
    with tempfile.TemporaryDirectory(prefix="axl-", dir="/tmp") as place:
        yield podman(Path(place))


# Every form, and the peers


def test_one_root_has_one_id_in_every_form(store: Store, tmp_path: Path) -> None:
    need("skopeo")
    data = tiny_layer()
    for pack in ("gzip", "zstd", ""):
        make_layout(tmp_path / f"oci-{pack}", [data], env=["PATH=/usr/bin", "LANG=C"], pack=pack)
    (tmp_path / "root.tar").write_bytes(data)
    for tool in ("xz", "gzip", "bzip2"):
        run_tool("sh", "-c", f"{tool} -c root.tar > {tool}.tar", cwd=tmp_path)
    run_tool("skopeo", "copy", "oci:oci-gzip:latest", "docker-archive:saved.tar:tiny:1", cwd=tmp_path)
    run_tool("gzip", "-k", "saved.tar", cwd=tmp_path)
    sources = [f"oci:oci-{pack}" for pack in ("gzip", "zstd", "")]
    sources += [f"tar:{name}.tar" for name in ("root", "xz", "gzip", "bzip2")]
    sources += ["docker-archive:saved.tar:docker.io/library/tiny:1", "docker-archive:saved.tar.gz"]
    found = {source: make(store, source, tmp_path) for source in sources}
    assert len({record.id for record, _ in found.values()}) == 1
    record, _ = found["oci:oci-gzip"]
    assert record.layers == (hashlib.sha256(data).hexdigest(),)
    assert record.os_release == OsRelease(id="tiny", version_id="1", pretty_name="Tiny 1")
    assert record.variables == {"PATH": "/usr/bin", "LANG": "C"}
    assert found["tar:root.tar"][0].variables == {}
    assert found["tar:root.tar"][1].variables == {}, "a tar has none; those of an image are no part of its id"
    assert leftovers(store) == [record.id]


def test_layers_of_umoci_become_the_root_that_umoci_unpacks(store: Store, tmp_path: Path) -> None:
    need("umoci")
    make_layout(tmp_path / "oci", [tiny_layer()])
    (tmp_path / "new").mkdir()
    (tmp_path / "new/file").write_text("new")
    umoci = ["umoci", "insert", "--image", "oci:latest"]
    run_tool(*umoci, "new", "/opt/app", cwd=tmp_path)
    run_tool(*umoci, "--whiteout", "/usr/lib/os-release", cwd=tmp_path)
    run_tool(*umoci, "--opaque", "new", "/usr/bin", cwd=tmp_path)
    run_tool("umoci", "unpack", "--rootless", "--image", "oci:latest", "bundle", cwd=tmp_path)
    edited = tmp_path / "bundle/rootfs"
    (edited / "opt/app/file").unlink()
    (edited / "etc/os-release").unlink()
    (edited / "etc/os-release").mkdir()
    (edited / "etc/os-release/x").write_text("x")
    run_tool("umoci", "repack", "--image", "oci:edited", "bundle", cwd=tmp_path)
    shutil.rmtree(tmp_path / "bundle")
    run_tool("umoci", "unpack", "--rootless", "--image", "oci:edited", "bundle", cwd=tmp_path)
    record, _ = make(store, "oci:oci:edited", tmp_path)
    assert len(record.layers) == 5
    theirs = {path: what for path, what in listing(edited).items() if path != "dev/null"}  # rootless: an empty file
    theirs = {path: tuple(part.replace("4755", "755") for part in what) for path, what in theirs.items()}
    assert listing(root_of(store, record)) == theirs
    assert listing(edited)["etc/os-release/x"]
    assert "usr/bin/tool" not in theirs


def test_what_is_exported_is_read_by_skopeo_and_umoci(store: Store, tmp_path: Path) -> None:
    need("skopeo", "umoci")
    make_layout(tmp_path / "oci", [tiny_layer(), HIDING], env=["A=b"])
    record, _ = make(store, "oci:oci", tmp_path)
    export_image(store, record.id[:12], "oci:out:tag", folder=tmp_path)
    run_tool("umoci", "unpack", "--rootless", "--image", "out:tag", "bundle", cwd=tmp_path)
    theirs = listing(tmp_path / "bundle/rootfs")
    ours = listing(root_of(store, record))
    assert ours.keys() == theirs.keys() - {"dev/null"}
    run_tool("skopeo", "copy", "oci:out:tag", "oci:copied:tag", cwd=tmp_path)
    assert make(store, "oci:copied", tmp_path)[0].id == record.id
    for name in ("index.json", "oci-layout"):
        assert (tmp_path / "out" / name).exists()
    blobs = {path.name for path in (tmp_path / "oci/blobs/sha256").iterdir()}
    assert {path.name for path in (tmp_path / "out/blobs/sha256").iterdir()} == blobs, "the layers are as they came"


def test_podman_loads_what_is_exported_and_saves_what_we_read(
    store: Store, tmp_path: Path, engine: list[str | Path]
) -> None:
    make_layout(tmp_path / "oci", [tiny_layer(), HIDING], env=["A=b"])
    record, _ = make(store, "oci:oci", tmp_path)
    export_image(store, record.id, "docker-archive:out.tar:tiny:1", folder=tmp_path)
    run_tool(*engine, "load", "-i", tmp_path / "out.tar")
    details = json.loads(run_tool(*engine, "image", "inspect", "tiny:1"))[0]
    assert details["RootFS"]["Layers"] == [f"sha256:{each}" for each in record.layers]
    assert "A=b" in details["Config"]["Env"]
    run_tool(*engine, "save", "--format", "oci-archive", "-o", tmp_path / "saved.tar", "tiny:1")
    (tmp_path / "saved").mkdir()
    run_tool("tar", "-C", tmp_path / "saved", "-xf", tmp_path / "saved.tar")
    run_tool(*engine, "save", "--format", "docker-archive", "-o", tmp_path / "docker.tar", "tiny:1")
    for source in ("oci:saved", "docker-archive:docker.tar"):
        assert make(store, source, tmp_path)[1].id == record.id, source


def test_exports_are_the_same_bytes_and_come_back(store: Store, tmp_path: Path) -> None:
    make_layout(tmp_path / "oci", [tiny_layer(), HIDING])
    record, _ = make(store, "oci:oci", tmp_path)
    for form in ("docker-archive", "tar"):
        for name in ("one", "two"):
            export_image(store, record.id, f"{form}:{form}-{name}.tar", folder=tmp_path)
        one, two = ((tmp_path / f"{form}-{name}.tar").read_bytes() for name in ("one", "two"))
        assert one == two
    assert make(store, "docker-archive:docker-archive-one.tar", tmp_path)[0].id == record.id
    again, _ = make(store, "tar:tar-one.tar", tmp_path)  # one layer, so another image, with the same root
    assert again.id != record.id
    assert listing(root_of(store, again)) == listing(root_of(store, record))
    assert again.listing == record.listing
    with tarfile.open(tmp_path / "tar-one.tar") as tar:
        assert {(info.uid, info.gid) for info in tar} == {(0, 0)}


def test_a_root_with_one_layer_is_exported_as_it_came(store: Store, tmp_path: Path) -> None:
    (tmp_path / "in.tar").write_bytes(tiny_layer())
    record, _ = make(store, "tar:in.tar", tmp_path)
    export_image(store, record.id, "tar:out.tar", folder=tmp_path)
    assert (tmp_path / "out.tar").read_bytes() == tiny_layer()


@pytest.mark.parametrize("to", ["", "x", "dir:x", "tar:a:b", "oci:", "host"])
def test_places_that_are_none_are_refused(store: Store, tmp_path: Path, to: str) -> None:
    with pytest.raises(UsageError, match=r"--to: .* is not a valid export target"):
        export_image(store, "0" * 64, to, folder=tmp_path)


def test_an_export_replaces_no_folder(store: Store, tmp_path: Path) -> None:
    make_layout(tmp_path / "oci", [tiny_layer()])
    record, _ = make(store, "oci:oci", tmp_path)
    with pytest.raises(UsageError, match="the path exists, but is not an empty folder"):
        export_image(store, record.id, "oci:oci", folder=tmp_path)


# Registries


@pytest.fixture
def registry(isolated_home: Path) -> Iterator[Registry]:
    """A registry on this machine, which skopeo may ask without TLS."""
    need("skopeo")
    with serve() as server:
        found = Registry(server)
        conf = isolated_home / ".config/containers/registries.conf"
        conf.parent.mkdir(parents=True)
        conf.write_text(f'[[registry]]\nlocation = "{found.name}"\ninsecure = true\n')
        yield found


class Registry:
    """What skopeo asks a registry for when it only reads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.name = server.address.removeprefix("http://")
        server.files["/v2/"] = b"{}"

    def push(self, layout: Path, repository: str, tag: str) -> str:
        """Offer the first image of a layout, with all that it has; how it is called."""
        base = f"/v2/{repository}"
        for blob in (layout / "blobs/sha256").iterdir():
            data = blob.read_bytes()
            self._server.files[f"{base}/blobs/sha256:{blob.name}"] = data
            if data.startswith(b"{") and b'"mediaType"' in data:
                self._offer(f"{base}/manifests/sha256:{blob.name}", data)
        top = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
        self._offer(f"{base}/manifests/{tag}", self._server.files[f"{base}/blobs/{top}"])
        return f"{self.name}/{repository}:{tag}"

    def _offer(self, path: str, data: bytes) -> None:
        self._server.files[path] = data
        self._server.types[path] = json.loads(data)["mediaType"]


def test_an_image_of_a_registry_is_pinned_by_its_digest(store: Store, tmp_path: Path, registry: Registry) -> None:
    reference = registry.push(make_layout(tmp_path / "one", [tiny_layer()]), "some/tiny", "1")
    record, locked = make(store, reference, tmp_path)
    assert record.layers == (hashlib.sha256(tiny_layer()).hexdigest(),)
    registry.push(make_layout(tmp_path / "two", [HIDING]), "some/tiny", "1")
    store.remove_image(record.id)
    again, same = make(store, reference, tmp_path, locked)
    assert (again.id, same) == (record.id, locked), "the tag has moved, the lock has not"
    other, moved = make(store, reference, tmp_path)
    assert other.id != record.id
    assert make(store, f"{reference}@sha256:{locked.manifest}", tmp_path)[0].id == record.id
    store.remove_image(record.id)
    gone = msgspec.structs.replace(locked, manifest="0" * 64)
    with pytest.raises(HostError) as caught:
        make(store, reference, tmp_path, gone)
    assert f"(locked: sha256:{'0' * 64})" in str(caught.value)
    assert f"skopeo copy docker://{registry.name}/some/tiny@sha256:{'0' * 64} oci:DIR" in str(caught.value)
    assert moved.manifest != locked.manifest


def test_an_image_for_several_platforms_is_chosen_from(store: Store, tmp_path: Path, registry: Registry) -> None:
    one = make_layout(tmp_path / "all", [tiny_layer()])
    mine = json.loads((one / "index.json").read_text())["manifests"][0]
    make_layout(one, [HIDING], platform="linux/s390x")
    theirs = json.loads((one / "index.json").read_text())["manifests"][0]
    described = []
    for found, platform in ((theirs, "linux/s390x"), (mine, host_platform())):
        system, _, machine = platform.partition("/")
        described.append({**found, "annotations": {}, "platform": {"os": system, "architecture": machine}})
    index: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": described,
    }
    write_index(one, [{"mediaType": index["mediaType"], **put_json(one, index)}])
    record, local = make(store, "oci:all", tmp_path)
    assert record.layers == (hashlib.sha256(tiny_layer()).hexdigest(),)
    assert make(store, registry.push(one, "all", "1"), tmp_path)[1].manifest == local.manifest
    write_index(one, [theirs])
    with pytest.raises(UsageError, match=rf"is not built for {host_platform()}, but for linux/s390x"):
        make(store, "oci:all", tmp_path)


def test_a_registry_that_is_not_there_is_one_error(store: Store, tmp_path: Path) -> None:
    need("skopeo")
    with pytest.raises(HostError) as caught:
        make(store, "127.0.0.1:9/x/y:1", tmp_path)
    text = str(caught.value)
    assert text.startswith("cannot fetch the image 127.0.0.1:9/x/y:1: ")
    assert "skopeo copy docker://127.0.0.1:9/x/y:1 oci:DIR" in text
    assert 'from = "oci:DIR"' in text


def test_without_skopeo_the_error_names_its_package(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="apt-get install skopeo"):
        make(store, "quay.io/x/y:1", tmp_path)


# What is wrong with an image


def _blobs(layout: Path) -> list[Path]:
    """The layers, the largest first."""
    return sorted((layout / "blobs/sha256").iterdir(), key=lambda path: -path.stat().st_size)


def _flip(layout: Path) -> None:
    data = bytearray(_blobs(layout)[0].read_bytes())
    data[len(data) // 2] ^= 1
    _blobs(layout)[0].write_bytes(data)


def _cut(layout: Path) -> None:
    _blobs(layout)[0].write_bytes(_blobs(layout)[0].read_bytes()[:-9])


def _replace_layer(layout: Path) -> None:
    """A manifest with a right digest of a layer that the configuration does not name."""
    manifest = json.loads(_manifest(layout).read_text())
    made = make_layout(layout.parent / "other", [layer(member("evil", b"x"))])
    blob = _blobs(made)[-1]
    other = next(path for path in _blobs(made) if path.read_bytes()[:2] == b"\x1f\x8b")
    shutil.copy(other, layout / "blobs/sha256")
    manifest["layers"][0] |= {"digest": f"sha256:{other.name}", "size": other.stat().st_size}
    assert blob.exists()
    write_index(layout, [{"mediaType": manifest["mediaType"], **put_json(layout, manifest)}])


def _manifest(layout: Path) -> Path:
    digest: str = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
    return layout / "blobs/sha256" / digest.removeprefix("sha256:")


def _edit_manifest(layout: Path) -> None:
    _manifest(layout).write_text(_manifest(layout).read_text().replace("{", "{ ", 1))


def _hostile(layout: Path) -> None:
    make_layout(layout, [layer(member("../x", b"evil"))])


def _bomb(layout: Path) -> None:
    make_layout(layout, [layer(member("zeros", bytes(5 << 20)))])


def _many_layers(layout: Path) -> None:
    make_layout(layout, [tiny_layer()] * 501)


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped": (_flip, r"has sha256 [0-9a-f]{64}, but the manifest says"),
    "cut": (_cut, r"the layer is truncated: it has \d+ bytes, but the manifest says \d+"),
    "missing": (lambda layout: _blobs(layout)[0].unlink(), "the image needs this file, but it is missing"),
    "another layer": (_replace_layer, r"the layer's content has sha256 [0-9a-f]{64}, but the configuration says"),
    "no manifest": (lambda layout: _manifest(layout).unlink(), "the image needs this file, but it is missing"),
    "edited manifest": (_edit_manifest, r"has \d+ bytes and sha256"),
    "no index": (lambda layout: (layout / "index.json").unlink(), "is not an OCI layout"),
    "no JSON": (lambda layout: (layout / "index.json").write_text("{"), "is not a valid image index"),
    "empty": (lambda layout: write_index(layout, []), "contains no image"),
    "wrong platform": (lambda layout: make_layout(layout, [HIDING], platform="linux/s390x"), "is not built for"),
    "hostile": (_hostile, "leaves the image"),
    "bomb": (_bomb, r"would unpack to more than 4\.19 MB"),
    "too many layers": (_many_layers, "the image has 501 layers, more than the limit of 500"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_one_error_and_leaves_nothing(
    store: Store, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("axletree.host.project_tree._ALWAYS_ALLOWED", 4 << 20)  # a gibibyte would be written first
    change, message = FAULTS[name]
    change(make_layout(tmp_path / "oci", [tiny_layer()]))
    with pytest.raises((IntegrityError, UsageError), match=message) as caught:
        make(store, "oci:oci", tmp_path)
    assert str(caught.value).startswith("oci")
    assert leftovers(store) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("oci:none", "none: the folder does not exist"),
        ("tar:none", "none: the file does not exist"),
        ("docker-archive:folder", "folder: the path is not a file"),
        ("tar:text", "text: "),
        ("tar:empty", "text|empty: the file is empty"),
        ("docker-archive:root.tar", "the archive does not contain 'manifest.json'"),
        ("oci:oci:none", "the image index has no image with the tag 'none'"),
        ("host", "there is no image to make"),
    ],
)
def test_sources_that_are_none_are_errors(store: Store, tmp_path: Path, source: str, message: str) -> None:
    make_layout(tmp_path / "oci", [tiny_layer()])
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("x" * 2000)
    (tmp_path / "empty").touch()
    (tmp_path / "root.tar").write_bytes(layer(member("a", b"x")))
    with pytest.raises(AxletreeError, match=message):
        make(store, source, tmp_path)
    assert leftovers(store) == []


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([member("manifest.json", b"[]")], "contains no image"),
        ([member("manifest.json", b'[{"Config":"c","Layers":["l"]}]')], "the archive does not contain 'c'"),
        (
            [member("manifest.json", b'[{"Config":"../../etc/passwd","Layers":["l"]}]')],
            r"the archive does not contain '\.\./\.\./etc",
        ),
        (
            [member("manifest.json", kind=tarfile.SYMTYPE, target="/etc/passwd")],
            "is a link to a file that does not precede it",
        ),
        ([member("manifest.json", kind=tarfile.CHRTYPE)], "which packages cannot contain"),
    ],
)
def test_hostile_archives_are_refused(store: Store, tmp_path: Path, members: list[Any], message: str) -> None:
    (tmp_path / "a.tar").write_bytes(layer(*members))
    with pytest.raises((IntegrityError, UsageError), match=message):
        make(store, "docker-archive:a.tar", tmp_path)
    assert leftovers(store) == []


def test_an_image_that_is_not_the_locked_one_is_refused(store: Store, tmp_path: Path) -> None:
    make_layout(tmp_path / "oci", [tiny_layer()])
    record, locked = make(store, "oci:oci", tmp_path)
    store.remove_image(record.id)
    shutil.rmtree(tmp_path / "oci")
    make_layout(tmp_path / "oci", [HIDING])
    with pytest.raises(IntegrityError) as caught:
        make(store, "oci:oci", tmp_path, locked)
    assert "images.x: oci:oci has moved: the lock has sha256:" in str(caught.value)
    assert "axletree lock RECIPE --upgrade" in str(caught.value)
    with pytest.raises(IntegrityError, match="the id does not match the image's layers and platform"):
        make(store, "oci:oci", tmp_path, msgspec.structs.replace(locked, id="0" * 64))


# The store


def test_a_locked_image_in_the_store_needs_its_source_no_more(store: Store, tmp_path: Path) -> None:
    make_layout(tmp_path / "oci", [tiny_layer()])
    record, locked = make(store, "oci:oci", tmp_path)
    shutil.rmtree(tmp_path / "oci")
    assert make(store, "oci:oci", tmp_path, locked) == (record, locked)


def test_images_are_found_by_the_start_of_their_id(store: Store, tmp_path: Path) -> None:
    record, _ = make(store, f"oci:{make_layout(tmp_path / 'oci', [tiny_layer()])}", tmp_path)
    assert find_image(store, record.id[:8]).id == record.id
    for name in (record.id[:3], "", "0" * 64, "*"):
        with pytest.raises(UsageError, match="no image in the store has the id"):
            find_image(store, name)


def test_gc_removes_images_by_their_last_use(store: Store, tmp_path: Path) -> None:
    record, _ = make(store, f"oci:{make_layout(tmp_path / 'oci', [tiny_layer()])}", tmp_path)
    half = store.image_path("f" * 64)  # type: ignore[arg-type]
    half.mkdir()  # as a removal leaves it that was killed
    assert {kind.kind: kind.files for kind in du(store).kinds}["images"] > 5
    kept = gc(store, keep=3600, grace=0)
    assert kept.folders == ()
    later = time.time() + 7200
    planned = gc(store, keep=3600, grace=0, now=later, dry_run=True)
    assert set(planned.folders) == {f"images/{record.id}", f"images/{'f' * 64}"}
    assert store.get_image(record.id) is not None
    gone = gc(store, keep=3600, grace=0, now=later)
    assert (set(gone.folders), leftovers(store)) == (set(planned.folders), [])
    assert gone.freed > 4096


DAMAGES: dict[str, Callable[[Path], object]] = {
    "changed file": lambda image: (image / "root/usr/lib/os-release").write_text("x"),
    "new file": lambda image: (image / "root/x").touch(),
    "changed mode": lambda image: (image / "root/tmp").chmod(0o700),
    "lost record": lambda image: (image / "image.json").unlink(),
    "another record": lambda image: (image / "image.json").write_text("{}"),
    "lost root": lambda image: shutil.rmtree(image / "root"),
    "corrupt layer": lambda image: _flip(image / "oci"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_verify_removes_damaged_images(store: Store, tmp_path: Path, name: str) -> None:
    source = f"oci:{make_layout(tmp_path / 'oci', [tiny_layer()])}"
    record, _ = make(store, source, tmp_path)
    assert verify(store).sound
    DAMAGES[name](store.image_path(record.id))
    report = verify(store)
    assert (len(report.images), report.sound) == (1, False)
    assert report.images[0].startswith(f"{record.id[:12]}: ")
    assert store.list_images() == ()
    again, _ = make(store, source, tmp_path)
    assert (again, verify(store).sound) == (record, True)


# Processes: killed, without room, without rights


def axletree(store: Path, *words: str | Path) -> list[str]:
    return ["env", f"AXLETREE_STORE={store}", sys.executable, "-P", "-m", "axletree", *map(str, words)]


def large_layer() -> bytes:
    """Enough to be killed in the middle of."""
    content = random.Random(1).randbytes(20_000)
    return layer(*(member(f"d{number % 50}/f{number}", content[number:]) for number in range(1500)))


def test_a_killed_import_leaves_nothing_that_looks_like_an_image(tmp_path: Path) -> None:
    (tmp_path / "large.tar").write_bytes(large_layer())
    (tmp_path / "images.toml").write_text('[images.large]\nfrom = "tar:large.tar"\n')
    store = Store.open(tmp_path / "store")
    command = axletree(store.root, "image", "make", tmp_path / "images.toml")
    unpacking = 0
    for number in range(5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = 50 + 250 * number
        while process.poll() is None:
            parts = [each for each in store.images.iterdir() if each.is_dir()]
            if parts and sum(len(files) for _, _, files in os.walk(parts[0])) > wanted:
                break
        process.send_signal(signal.SIGKILL)
        process.wait()
        unpacking += any(each.is_dir() for each in store.images.iterdir())
        assert store.list_images() == ()
        assert verify(store).sound
    assert unpacking >= 4, "it was killed in the middle"
    subprocess.run(command, check=True, capture_output=True)
    (found,) = store.list_images()
    assert found.record.files == 1550
    assert leftovers(store) == [found.record.id]
    assert verify(store).sound


def test_a_full_disk_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    if subprocess.run(["unshare", "-Urm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs unshare, and permission to make user namespaces")
    make_layout(tmp_path / "oci", [large_layer()])
    (tmp_path / "images.toml").write_text('[images.large]\nfrom = "oci:oci"\n')
    (tmp_path / "disk").mkdir()
    inside = axletree(tmp_path / "disk/store", "image", "make", tmp_path / "images.toml")
    script = f'mount -t tmpfs -o size=20m tmpfs {tmp_path}/disk && "$@"'
    script += f"; code=$?; ls -A {tmp_path}/disk/store/images; exit $code"
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, "sh", *inside], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert f"no space left on {tmp_path}/disk" in done.stderr
    assert "axletree store gc" in done.stderr
    assert done.stdout == ""


def _runs(python: str, options: dict[str, Any]) -> bool:
    """Whether somebody may run an interpreter that has our packages."""
    command = [python, "-c", "import axletree.cli.image"]
    try:
        return subprocess.run(command, capture_output=True, check=False, **options).returncode == 0
    except (PermissionError, FileNotFoundError):
        return False


class Nobody:
    """A user without rights, with a home."""

    def __init__(self, place: Path) -> None:
        self.place, self.home = place, place / "home"
        place.chmod(0o755)
        home = self.home
        home.mkdir()
        os.chown(home, 65534, 65534)
        variables = {"HOME": str(home), "PATH": os.defpath, "PYTHONPATH": ":".join(path for path in sys.path if path)}
        self.options: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": (), "cwd": home}
        self.options["env"] = variables
        pythons = [each for each in (sys.executable, "/usr/bin/python3") if _runs(each, self.options)]
        if not pythons:
            pytest.skip("no interpreter that nobody may run has our packages")
        self.python = pythons[0]

    def run(self, store: Path, *words: str | Path) -> dict[str, Any]:
        """What a command reports."""
        options = self.options | {"env": self.options["env"] | {"AXLETREE_STORE": str(store)}}
        command = [self.python, "-m", "axletree", *words, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)["result"]
        return found


@pytest.fixture
def nobody() -> Iterator[Nobody]:
    """With a place where others can go; pytest's own are closed to them."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    with tempfile.TemporaryDirectory(prefix="axl-", dir="/tmp") as place:
        yield Nobody(Path(place))


def test_a_user_without_rights_makes_and_lists_images(nobody: Nobody) -> None:
    make_layout(nobody.place / "oci", [tiny_layer(), HIDING])
    (nobody.place / "images.toml").write_text('[images.tiny]\nfrom = "oci:oci"\n')
    own = nobody.home / "store"
    (made,) = nobody.run(own, "image", "make", nobody.place / "images.toml")["images"]
    (found,) = nobody.run(own, "image", "list")["images"]
    assert found["id"] == made["id"]
    assert (own / "images" / made["id"] / "root" / "root" / "secret").stat().st_uid == 65534
    nobody.run(own, "image", "export", made["id"], "--to", f"oci:{nobody.home}/out")
    root, _ = make(Store.open(nobody.place / "store"), f"oci:{nobody.home}/out", nobody.place)
    assert (root.id, root.listing) == (made["id"], Store(own).list_images()[0].record.listing)
    assert nobody.run(own, "image", "remove", made["id"])["images"][0]["id"] == made["id"]


def test_the_images_of_others_in_a_shared_store_are_used_and_left_alone(nobody: Nobody) -> None:
    make_layout(nobody.place / "oci", [tiny_layer()])
    (nobody.place / "images.toml").write_text('[images.tiny]\nfrom = "oci:oci"\n')
    before = os.umask(0)
    try:
        shared = Store.open(nobody.place / "shared")
        record, _ = make(shared, "oci:oci", nobody.place)
    finally:
        os.umask(before)
    (made,) = nobody.run(shared.root, "image", "make", nobody.place / "images.toml")["images"]
    assert made["id"] == record.id
    sizes = {kind["kind"]: kind["files"] for kind in nobody.run(shared.root, "store", "du")["kinds"]}
    assert sizes["images"] > 5
    assert nobody.run(shared.root, "store", "verify")["images"] == []
    assert nobody.run(shared.root, "store", "gc", "--keep", "0", "--grace", "0")["folders"] == []
    assert shared.list_images()[0].record == record
    assert verify(shared).sound
