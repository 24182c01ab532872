"""What hipify makes of a tree as it was committed: the only exact answer to whether a change is hipify's.

Its tables have thousands of names, and each release has its own; so the tree's own script is run in a copy.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.pytorch.hipified import COMPILERS, SCRIPT
from axletree.host.obstacles import changed_files
from axletree.host.run import finish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.host.worktree import Worktree


@contextmanager
def hipified_copies(git: Worktree, trees: Sequence[Worktree]) -> Iterator[tuple[Path, ...]]:
    """Copies of what was committed, in which the script has run: for each compiler that makes a difference to it.

    None where nothing was changed or added, or the tree has no such script. One in which it fails is left out.

    Args:
        git: the repository.
        trees: it and its submodules. Of those only changed files are in the copies.

    Raises:
        HostError: git failed.
    """
    changed = {tree.folder: changed_files(tree) for tree in trees}
    others = git.run("ls-files", "--others", "-z")
    if not (others or any(changed.values())) or git.attempt("cat-file", "-e", f"HEAD:{SCRIPT}").code != 0:
        yield ()
        return
    with tempfile.TemporaryDirectory(prefix="axletree-hipify-") as name:
        scratch = Path(name)
        copies = []
        for number, compiler in enumerate(COMPILERS):
            copy = scratch / str(number)
            for tree in trees:
                inner = copy / tree.folder.relative_to(git.folder)
                _export(tree, inner, scratch / "index", None if tree is trees[0] else changed[tree.folder])
            info = scratch / f"hip{number}" / "lib" / ".hipInfo"
            info.parent.mkdir(parents=True)
            info.write_text(compiler)
            command = [sys.executable, SCRIPT]
            environ = {**git.environ, "HIP_PATH": str(info.parent.parent), "PYTHONDONTWRITEBYTECODE": "1"}
            if finish(command, cwd=copy, environ=environ).code == 0:
                copies.append(copy)
        yield tuple(copies)


def _export(git: Worktree, dest: Path, index: Path, names: Sequence[str] | None) -> None:
    """Write files of HEAD, all or some."""
    if names is not None and not names:
        return
    aside = msgspec.structs.replace(git, environ={**git.environ, "GIT_INDEX_FILE": str(index)})
    aside.run("read-tree", "HEAD")
    options = ("checkout-index", "--force", "--quiet", f"--prefix={dest}/")
    if names is None:
        aside.run(*options, "--all")
    else:
        aside.attempt(*options, "-z", "--stdin", stdin="\0".join(names))  # those that HEAD does not have are told
    index.unlink()
