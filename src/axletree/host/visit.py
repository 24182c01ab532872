"""Programs with the terminal, where a stage's programs were or an image's are: for whoever looks around there."""

from __future__ import annotations

import os
import subprocess
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import AxletreeError, HostError, UsageError
from axletree.host.room import NO_NAMESPACES, STORE, entrance, kept_at_one_place, prepare_image
from axletree.host.sandbox import run_isolated

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.host.sandbox import Isolation


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What a program sees."""

    store: Path
    """Folder of the machine that is at :data:`axletree.host.room.STORE`."""
    folder: Path
    """Where it starts, as it sees that."""
    workspace: str | None = None
    """Folder of the store that is at :data:`axletree.host.room.WORKSPACE`."""
    image: str | None = None
    """Folder of the store with the root file system; ``None`` for the host's."""
    gpus: bool = False
    """Whether it may use the GPUs of this machine in the image."""


def visit(view: View, argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a program, and return its exit code; 128 + n if signal n ended it.

    Raises:
        UsageError: there is no such program.
        HostError: this host does not allow what it is to see.
    """
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as said:  # noqa: PTH123 (a descriptor)
        try:
            body = partial(_visit, view, argv, environ, told=writing)
            code = run_isolated(body, network=True, store=view.store)
        finally:
            os.close(writing)
        problem = said.read()
    if problem:
        raise HostError(problem, hint=NO_NAMESPACES) if code == HostError.exit_code else UsageError(problem)
    return code


def run_here(argv: Sequence[str], folder: Path, environ: Mapping[str, str]) -> int:
    """Run a program in a folder of what this process sees, and return its exit code.

    Raises:
        UsageError: there is no such program.
    """
    enter = entrance(folder)
    try:
        code = subprocess.run(
            argv,
            cwd=None if enter else folder,
            env=dict(environ),
            preexec_fn=enter,
            check=False,
        ).returncode
    except OSError as error:
        raise UsageError(f"cannot run {argv[0]}: {error.strerror}") from error
    return code if code >= 0 else 128 - code


def _visit(view: View, argv: Sequence[str], environ: Mapping[str, str], isolation: Isolation, *, told: int) -> int:
    """The same in the process that sees it; what is wrong goes to the descriptor ``told``."""
    try:
        if not isolation.paths:
            raise HostError("this host does not allow mount namespaces")
        if view.image is not None:
            prepare_image(STORE / view.image, gpus=view.gpus)
        with kept_at_one_place(STORE / view.workspace) if view.workspace else nullcontext():
            return run_here(argv, view.folder, environ)
    except AxletreeError as error:
        os.write(told, error.problems[0].message.encode())
        return error.exit_code
