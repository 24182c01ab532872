"""``axletree image``: what it says, and the images that a command line names."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.image_names import find_images, shipped_images
from axletree.app.images import make_image
from axletree.cli.main import cli
from axletree.core.errors import AxletreeError, LockError, RecipeError, UsageError
from axletree.recipe.image_locks import IMAGE_LOCK, render_image_lock
from axletree.recipe.images import Image, parse_image_file
from axletree.store import Store
from support.images import layer, make_layout, member, tiny_layer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

IMAGES = '[images.tiny]\nfrom = "oci:oci"\n\n[images.other]\nfrom = "tar:other.tar"\n'
RECIPE = f'name = "small"\nversion = "1"\n\n[source]\npath = "src"\n\n{IMAGES}'
RECIPE += '\n[stages.lib]\naction = "run"\ncommands = ["true"]\n'


@pytest.fixture
def here(tmp_path: Path, isolated_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two images, a file of them, and a recipe with the same."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    make_layout(folder / "oci", [tiny_layer()], env=["PATH=/usr/bin"])
    (folder / "other.tar").write_bytes(layer(member("x", b"x")))
    (folder / "images.toml").write_text(IMAGES)
    (folder / "small.toml").write_text(RECIPE)
    monkeypatch.chdir(folder)
    return folder


def run(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli, list(words))
    if isinstance(done.exception, AxletreeError):
        assert done.exception.exit_code == code, done.exception
        return str(done.exception)
    assert done.exit_code == code, (done.output, done.exception)
    return done.stdout


def test_images_are_made_listed_exported_and_removed(here: Path, golden: Callable[[str, str], None]) -> None:
    said = run("image", "make", "images.toml")
    said += run("image", "make", "small.toml:tiny")
    store = Store.open(here.parent / "home/store")
    made = [each.record for each in store.list_images()]
    tiny, other = sorted(made, key=lambda record: record.made_from)
    listed = run("image", "list")
    assert listed.splitlines()[0].split() == ["ID", "SYSTEM", "SIZE", "USED", "MADE", "FROM"]
    assert f"{tiny.id[:12]}  Tiny 1" in listed
    said += run("image", "export", tiny.id[:8], "--to", "docker-archive:out.tar:tiny:1")
    said += run("image", "remove", other.id, tiny.id[:12])
    said += run("image", "list")
    for text, name in ((str(here.parent), "/srv"), (tiny.id, "TINY"), (other.id, "OTHER")):
        said = said.replace(text, name).replace(text[:12], name[:5]) if name != "/srv" else said.replace(text, name)
    golden("image/commands.txt", "\n".join(_without_disk(line) for line in said.splitlines()) + "\n")
    assert store.list_images() == ()


def _without_disk(line: str) -> str:
    """How much is freed depends on the file system."""
    return f"{line.rpartition(': ')[0]}: ..." if line.startswith("removed") else line


def test_an_image_is_named_alone_and_with_its_recipe(here: Path) -> None:
    assert list(find_images("images.toml").images) == ["tiny", "other"]
    assert list(find_images("images.toml:other").images) == ["other"]
    assert list(find_images("small.toml:tiny").images) == ["tiny"]
    assert find_images("bookworm").images["bookworm"].kind == "debian"
    with pytest.raises(
        UsageError, match=r"images.toml: the file defines no image called 'tny'\n  hint: did you mean 'tiny'\?"
    ):
        find_images("images.toml:tny")
    with pytest.raises(UsageError, match="the image 'bookworm' ships with Axletree"):
        find_images("bokworm")
    with pytest.raises(UsageError, match="the file defines no images"):
        find_images("kiwisolver")
    (here / "bad.toml").write_text('[images.a]\nfrm = "x"\n')
    with pytest.raises(RecipeError, match=r"bad\.toml:2: images\.a\.frm"):
        find_images("bad.toml")
    (here / "small.toml").write_text(RECIPE.replace("oci:oci", "oci:"))
    with pytest.raises(RecipeError, match=r"small\.toml:8: images\.tiny\.from: expected a path after 'oci:'"):
        find_images("small.toml")


def test_a_lock_decides_which_image_it_is(here: Path) -> None:
    store = Store.open(here.parent / "home/store")
    locked = [
        make_image(store, name, Image(from_=text), None, folder=here)[1]
        for name, text in (("tiny", "oci:oci"), ("other", "tar:other.tar"))
    ]
    (here / "small").mkdir()
    (here / "small" / IMAGE_LOCK).write_text(render_image_lock(locked))
    run("image", "make", "small.toml")
    for each in store.list_images():
        store.remove_image(each.record.id)
    (here / "other.tar").write_bytes(layer(member("x", b"changed")))
    message = run("image", "make", "small.toml", code=2)
    assert "images.other: tar:other.tar is not the image that the lock pins: the lock has" in message
    (here / "small.toml").write_text(RECIPE.replace("other.tar", "another.tar"))
    with pytest.raises(LockError, match=r"image other is tar:another\.tar, was tar:other\.tar"):
        find_images("small.toml")


def test_every_shipped_image_is_sound() -> None:
    shipped = shipped_images()
    assert set(shipped) == {"bullseye", "bookworm", "trixie", "manylinux_2_28", "manylinux_2_34"}
    for name, path in shipped.items():
        assert list(parse_image_file(path.read_text(), filename=name)) == [name]
        assert tomllib.loads(path.read_text())


def test_help_names_every_shipped_image() -> None:
    said = run("image", "make", "--help")
    assert all(name in said for name in shipped_images())
