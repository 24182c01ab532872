"""Git repositories of a test, with submodules, and a recipe that names them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from support.elfs import need

if TYPE_CHECKING:
    from pathlib import Path

_SETTINGS = ("user.name=t", "user.email=t@t.example", "protocol.file.allow=always", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return what it prints; skips the test where there is none."""
    need("git")
    options = [part for setting in _SETTINGS for part in ("-c", setting)]
    command = ["git", "-C", str(folder), *options, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


class Origin:
    """A repository that others clone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = folder.as_uri()
        if not folder.exists():
            folder.mkdir(parents=True)
            self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        return git(self.folder, *arguments)

    def write(self, **texts: str) -> None:
        """Write files; ``__`` stands for ``/``, and ``_dot_`` for a dot."""
        for name, text in texts.items():
            path = self.folder / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, tag: str | None = None, **texts: str) -> str:
        self.write(**texts)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "c", "--allow-empty")
        if tag is not None:
            self.git("tag", "-a", "-f", "-m", tag, tag)
        return self.git("rev-parse", "HEAD")

    def add_submodule(self, other: Origin, path: str) -> None:
        """Add it by a relative address, so that a copy of all origins is as good."""
        self.git("submodule", "--quiet", "add", f"../{other.folder.name}", path)

    def move_submodule(self, path: str, other: Origin) -> None:
        """Let a submodule's path name the newest commit of an origin."""
        git(self.folder / path, "fetch", "-q", "--no-recurse-submodules", other.url, "main")
        git(self.folder / path, "checkout", "-q", "FETCH_HEAD")


class Project:
    """A main repository with a submodule in a submodule, and a library at a pin: the shape of PyTorch."""

    def __init__(self, root: Path) -> None:
        self.inner, self.middle = Origin(root / "inner"), Origin(root / "middle")
        self.library, self.main = Origin(root / "vision"), Origin(root / "torch")
        self.recipe = root / "torch.toml"
        self.write_recipe()

    def first_release(self) -> None:
        self.inner.commit(deep="1")
        self.middle.add_submodule(self.inner, "deps/inner")
        self.middle.commit(code="1")
        pinned = self.library.commit(vision="1")
        self.main.add_submodule(self.middle, "third_party/middle")
        self.main.git("submodule", "--quiet", "update", "--init", "--recursive")
        self.main.commit("v1", setup="1", ci__vision_dot_txt=f"{pinned}\n", same="x" * 100)

    @property
    def first(self) -> str:
        return self.main.git("rev-parse", "v1^{commit}")

    @property
    def pinned(self) -> str:
        return self.main.git("show", "v1:ci/vision.txt")

    def write_recipe(self, ref: str = "v{version}", more: str = "") -> None:
        self.recipe.write_text(f"""name = "torch"
version = "1"
[source]
git = "{self.main.url}"
ref = "{ref}"
submodules = true
[checkouts.vision]
git = "{self.library.url}"
pin = "ci/vision.txt"
folder = "torch-vision"
{more}""")

    def advance(self) -> None:
        """A second release: everything has moved, the library's pin too; files came and went."""
        self.inner.commit(deep="2")
        self.middle.move_submodule("deps/inner", self.inner)
        self.middle.commit(code="2")
        self.main.move_submodule("third_party/middle", self.middle)
        self.moved = self.library.commit(vision="2")
        self.library.commit(vision="3")
        self.second = self.main.commit("v2", setup="2", added="2", ci__vision_dot_txt=f"{self.moved}\n")
