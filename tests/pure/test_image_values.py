"""Images as values: what names them, which one is meant, what layers may contain, what locks say."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from axletree.core.errors import IntegrityError, RecipeError, UsageError
from axletree.core.images import OsRelease
from axletree.core.values import Digest
from axletree.package.conda.untar import TarEntry
from axletree.package.image.apt import acquire_options, archive_line
from axletree.package.image.choice import for_platform, tagged
from axletree.package.image.documents import (
    Config,
    Descriptor,
    Index,
    Manifest,
    Platform,
    bare_digest,
    checked_layers,
    decode,
    layer_suffix,
)
from axletree.package.image.identity import chain_id, image_id
from axletree.package.image.layer import LONGEST_PATH, MOST_PARTS, LayerEntry, layer_entry
from axletree.package.image.layout import config_document, index_document, manifest_document
from axletree.package.image.system import glibc_version, parse_os_release
from axletree.recipe.image_locks import LockedDeb, LockedImage, check_image_lock, parse_image_lock, render_image_lock
from axletree.recipe.images import Image, parse_image_file, split_from

A, B, C = (Digest(hashlib.sha256(text).hexdigest()) for text in (b"a", b"b", b"c"))
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def entry(path: str, kind: Any = "file", **fields: Any) -> TarEntry:
    return TarEntry(path=path, kind=kind, size=fields.pop("size", 0), mode=fields.pop("mode", 0o644), mtime=0, **fields)


def read(path: str, kind: str = "file", **fields: Any) -> LayerEntry:
    return layer_entry(entry(path, kind, **fields), layer="layer")


# Identity


def test_the_chain_id_is_that_of_the_specification() -> None:
    two = hashlib.sha256(f"sha256:{A} sha256:{B}".encode()).hexdigest()
    assert chain_id([A]) == A
    assert chain_id([A, B]) == two
    assert chain_id([A, B, C]) == hashlib.sha256(f"sha256:{two} sha256:{C}".encode()).hexdigest()


def test_layers_their_order_and_the_platform_name_an_image() -> None:
    names = {image_id(layers, "linux/amd64") for layers in ([A], [A, B], [B, A])}
    assert len(names | {image_id([A], "linux/arm64")}) == 4


# Entries of layers


def test_entries_keep_what_matters() -> None:
    assert read("./usr/bin/sudo", mode=0o6755) == LayerEntry(kind="file", path=("usr", "bin", "sudo"), mode=0o755)
    assert read("tmp", "folder", mode=0o1777).mode == 0o1777
    assert read("srv", "folder", mode=0o2000).mode == 0o700
    assert read("etc/shadow", mode=0).mode == 0o400
    assert read("bin", "link", target="/usr/bin").text == "/usr/bin"
    assert read("b", "hardlink", target="./usr/a").target == ("usr", "a")
    assert read(r"lib/system-a\x2db.slice").path == ("lib", r"system-a\x2db.slice")


@pytest.mark.parametrize("path", [".", "./", "", "/"])
def test_the_root_itself_is_no_entry(path: str) -> None:
    assert read(path, "folder").kind == "nothing"


def test_devices_in_dev_and_pipes_are_left_out() -> None:
    assert read("dev/null", "device").kind == "nothing"
    assert read("run/initctl", "pipe").kind == "nothing"


def test_whiteouts() -> None:
    assert read("a/.wh.b") == LayerEntry(kind="whiteout", path=("a", "b"))
    assert read("a/.wh..wh..opq") == LayerEntry(kind="opaque", path=("a",))
    assert read(".wh..wh..opq") == LayerEntry(kind="opaque", path=())
    assert read(".wh..wh.plnk").kind == "nothing"


@pytest.mark.parametrize(
    ("path", "kind", "fields", "message"),
    [
        ("/etc/passwd", "file", {}, "has an absolute path"),
        ("//etc", "file", {}, "has an absolute path"),
        ("../x", "file", {}, "leaves the image"),
        ("a/../../x", "folder", {}, "leaves the image"),
        ("a/..", "link", {"target": "x"}, "leaves the image"),
        ("a//b", "file", {}, "empty component"),
        ("a/./b", "file", {}, "empty component"),
        ("", "file", {}, "empty name"),
        ("sda", "device", {}, "device outside /dev"),
        ("device/null", "device", {}, "device outside /dev"),
        ("a", "hardlink", {"target": "/etc/passwd"}, "has an absolute path"),
        ("a", "hardlink", {"target": "../etc/passwd"}, "leaves the image"),
        ("a", "hardlink", {"target": "."}, "hard link without a target"),
        ("a", "link", {"target": ""}, "link without a target"),
        (".wh.", "file", {}, "whiteout without a name"),
        (".wh...", "file", {}, "whiteout without a name"),
        (".wh.x", "link", {"target": "y"}, "reserved for whiteouts"),
        (".wh.x", "file", {"size": 1}, "reserved for whiteouts"),
        (".wh.x/y", "file", {}, "reserved for whiteouts"),
        ("n" * 256, "file", {}, "too long"),
        ("ő" * 128, "file", {}, "too long"),
        ("a/" * MOST_PARTS + "a", "file", {}, "too deep"),
        (("n" * 200 + "/") * (LONGEST_PATH // 200) + "a", "file", {}, "too long"),
    ],
)
def test_what_leads_out_or_is_ambiguous_is_refused(path: str, kind: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(IntegrityError, match=message):
        read(path, kind, **fields)


# Documents


def descriptor(
    digest: str = A, platform: str | None = None, tag: str | None = None, kind: str = MANIFEST
) -> Descriptor:
    system, _, machine = (platform or "").partition("/")
    return Descriptor(
        media_type=kind,
        digest=f"sha256:{digest}",
        size=1,
        platform=Platform(os=system, architecture=machine) if platform else None,
        annotations={"org.opencontainers.image.ref.name": tag} if tag else None,
    )


def test_a_platform_is_chosen() -> None:
    found = [descriptor(A, "linux/amd64"), descriptor(B, "linux/arm64"), descriptor(C, "unknown/unknown")]
    assert for_platform(found, "linux/arm64", file="x").digest == f"sha256:{B}"
    with pytest.raises(UsageError, match=r"not built for linux/s390x, but for linux/amd64, linux/arm64\n"):
        for_platform(found, "linux/s390x", file="x")
    assert for_platform([descriptor(A), descriptor(A)], "linux/s390x", file="x").digest == f"sha256:{A}"
    with pytest.raises(UsageError, match="has 2 images"):
        for_platform([descriptor(A), descriptor(B)], "linux/amd64", file="x")


def test_a_tag_is_chosen() -> None:
    found = [descriptor(A, tag="one"), descriptor(B, tag="two"), descriptor(C, kind="text/plain")]
    assert tagged(found, "two", file="x") == (found[1],)
    assert tagged(found[:1], None, file="x") == (found[0],)
    with pytest.raises(UsageError, match=r"add one of them, such as `:one`"):
        tagged(found, None, file="x")
    with pytest.raises(UsageError, match="no image with the tag 'three'"):
        tagged(found, "three", file="x")
    with pytest.raises(UsageError, match="contains no image"):
        tagged(found[2:], None, file="x")


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"manifests": 1}', b"\xff", b"[" * 100_000])
def test_documents_that_are_none_are_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"f: the file is not a valid image index"):
        decode(data, Index, file="f", what="image index")
    with pytest.raises(IntegrityError, match="larger than the limit"):
        decode(b" " * (5 << 20), Index, file="f", what="image index")


def test_only_sha256_and_known_layers_are_read() -> None:
    with pytest.raises(IntegrityError, match="not a SHA-256 digest"):
        bare_digest("sha512:" + "0" * 128, file="f")
    with pytest.raises(IntegrityError, match="not a SHA-256 digest"):
        bare_digest("sha256:../../etc/passwd", file="f")
    kinds = {
        "application/vnd.oci.image.layer.v1.tar": "",
        "application/vnd.oci.image.layer.v1.tar+gzip": "gz",
        "application/vnd.oci.image.layer.v1.tar+zstd": "zst",
        "application/vnd.docker.image.rootfs.diff.tar.gzip": "gz",
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip": "gz",
    }
    assert {kind: layer_suffix(descriptor(kind=kind), file="f") for kind in kinds} == kinds
    with pytest.raises(IntegrityError, match="only tar, gzip and zstd"):
        layer_suffix(descriptor(kind="application/vnd.oci.image.layer.v1.tar+gzip+encrypted"), file="f")


def test_configuration_and_manifest_must_agree() -> None:
    config = decode(config_document("linux/amd64", [A, B], {"PATH": "/bin"}), Config, file="f", what="configuration")
    assert (config.platform, config.variables) == ("linux/amd64", {"PATH": "/bin"})
    assert checked_layers(config, 2, file="f") == (A, B)
    for count in (0, 1, 1000):
        with pytest.raises(IntegrityError, match="layers"):
            checked_layers(config, count, file="f")


def test_what_is_written_is_read_back() -> None:
    config, layers = descriptor(A), [descriptor(B), descriptor(C)]
    manifest = decode(manifest_document(config, layers), Manifest, file="f", what="image manifest")
    assert (manifest.config, list(manifest.layers)) == (config, layers)
    index = decode(index_document(descriptor(A), "x"), Index, file="f", what="image index")
    assert index.manifests[0].tag == "x"
    assert b'"schemaVersion":2' in index_document(descriptor(A), None)


# The system in a root


def test_os_release_is_read() -> None:
    text = "# c\nID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME='Debian \\x1b[31m12'\nBAD='\nX\n"
    assert parse_os_release(text) == OsRelease(id="debian", version_id="12", pretty_name="Debian \\x1b[31m12")
    assert parse_os_release('PRETTY_NAME="a\x1bb"').pretty_name == "ab"


def test_the_version_of_glibc_is_read() -> None:
    text = b"\0GNU C Library (Debian GLIBC 2.31-13+deb11u11) stable release version 2.31.\nCopyright"
    assert glibc_version(text) == "2.31"
    assert glibc_version(b"musl libc") is None


# apt


def test_the_first_archive_of_apt_is_found() -> None:
    sources = "# c\n\nTypes: deb-src\nURIs: http://no\n\nEnabled: no\nTypes: deb\nURIs: http://no\n\n"
    sources += "Types: deb\nURIs: http://a http://b\nSuites: x\nSigned-By: /k.gpg\n"
    assert archive_line([("x.sources", sources)]) == "[signed-by=/k.gpg] http://a"
    assert archive_line([("x.sources", "Types: deb\nURIs: http://a\nSigned-By:\n -----BEGIN\n")]) == "http://a"
    assert archive_line([("a.list", "#deb no\ndeb [arch=amd64 signed-by=/k] http://c x main\n")]) == (
        "[arch=amd64 signed-by=/k] http://c"
    )
    assert archive_line([("a.list", "deb http://c x main\n")]) == "http://c"
    assert archive_line([("a.list", "deb-src http://c x main\n"), ("b.sources", "")]) is None


def test_apts_ways_to_archives_are_handed_on() -> None:
    dump = 'APT "";\nAcquire::Check-Date "false";\nAcquire::http::Proxy "http://p:1";\nAcquire::Languages "none";\n'
    assert acquire_options(dump) == ('Acquire::Check-Date "false";', 'Acquire::http::Proxy "http://p:1";')


# Recipes and locks


def test_from_is_taken_apart() -> None:
    assert split_from("oci:a/b:t") == ("oci", "a/b", "t")
    assert split_from("docker-archive:f.tar:n/m:t") == ("docker-archive", "f.tar", "n/m:t")
    assert split_from("tar:f.tar.xz") == ("tar", "f.tar.xz", None)
    assert split_from("docker://quay.io/a/b:t") == ("registry", "quay.io/a/b:t", None)
    assert split_from("host")[0] == "host"


def test_a_file_of_images_is_read() -> None:
    text = (
        '[images.a]\nfrom = "localhost:5000/x/y:1"\n[images.b]\ndebian = { suite = "bookworm", packages = ["g++"] }\n'
    )
    images = parse_image_file(text, filename="f")
    assert {name: (each.kind, each.reference) for name, each in images.items()} == {
        "a": ("registry", "localhost:5000/x/y:1"),
        "b": ("debian", "debian bookworm g++"),
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "exactly one of from and debian is required, found neither"),
        ('from = "a"\ndebian = { suite = "b" }', "found both"),
        ('from = "oci:"', "expected a path after 'oci:'"),
        ('from = "tar:a:b"', "expected a path without a colon after 'tar:'"),
        ('from = "host"', "an image cannot be made from this machine"),
        ('from = "containers-storage:x"', "is not a valid image"),
        ('from = "Not A Name"', "is not a valid image"),
        ('from = "--flag"', "is not a valid image"),
        ('debian = { suite = "--x" }', "is not a valid suite"),
        ('debian = { suite = "b", packages = ["-y", "ok"] }', "'-y' is not a valid package name"),
        ('debian = { suite = "b", packages = ["a,b"] }', "is not a valid package name"),
        ('debian = { suite = "b", mirror = "x" }', "is neither a URL nor a deb line"),
        ('debian = { suite = "b", mirror = "https://me:secret@x/debian" }', "contains a user name or password"),
        ('debian = { suite = "b", mirror = "deb https://me:secret@x/debian b main" }', "contains a user name"),
        ('form = "a"', "did you mean"),
    ],
)
def test_faults_of_images_have_their_line(table: str, message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        parse_image_file(f"[images.a]\n{table}\n", filename="f.toml")
    assert all(problem.line for problem in caught.value.problems)
    assert "secret" not in str(caught.value)


LOCKED = LockedImage(
    name="b",
    kind="debian",
    reference="debian bookworm g++",
    id=A,
    platform="linux/amd64",
    layers=(B, C),
    variables={"PATH": "/bin"},
    debs=(LockedDeb(name="g++", version="4:12", architecture="amd64", sha256=A),),
)


def test_locks_are_read_back() -> None:
    other = LockedImage(name="a", kind="oci", reference="oci:x", id=B, platform="linux/amd64", layers=(A,), manifest=C)
    text = render_image_lock([LOCKED, other])
    assert text == render_image_lock([other, LOCKED])
    assert parse_image_lock(text, file="f") == {"a": other, "b": LOCKED}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("lock-version = 1", "lock-version = 2"), "newer version of Axletree"),
        (('kind = "debian"', 'kind = "host"'), "not a lock created by"),
        (("[[images]]", "[[images"), "the file is not valid TOML"),
        ((A, "x"), "not a lock created by"),
    ],
)
def test_damaged_locks_are_refused(change: tuple[str, str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        parse_image_lock(render_image_lock([LOCKED]).replace(*change), file="f")


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(RecipeError, match="lists an image twice: b"):
        parse_image_lock(render_image_lock([LOCKED, LOCKED]), file="f")


def test_what_no_longer_fits_a_lock_is_named() -> None:
    images = {"n": Image(from_="oci:x"), "b": Image(from_="host"), "h": Image(from_="host")}
    problems = check_image_lock({"b": LOCKED}, images, file="f")
    assert [problem.message.partition(": ")[2] for problem in problems] == ["image n added", "image b removed"]
    changed = check_image_lock({"b": LOCKED}, {"b": Image(from_="oci:x")}, file="f")
    assert "image b is oci:x, was debian bookworm g++" in changed[0].message
