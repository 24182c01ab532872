"""What commands begin with: the settings, and the store that they name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axletree.app.lock_context import LockContext
from axletree.core.errors import HostError
from axletree.host.settings import load_settings
from axletree.recipe.settings import from_options
from axletree.store.store import Store

if TYPE_CHECKING:
    from axletree.recipe.settings import Loaded, Settings


def loaded(**options: Any) -> Loaded:
    """The settings with where they come from; options are those of the command that are settings too.

    Raises:
        HostError: the working folder is not there any more.
    """
    try:
        cwd = Path.cwd()
    except FileNotFoundError as error:
        raise HostError("the working folder was removed", hint="change to an existing folder") from error
    return load_settings(os.environ, home=Path.home(), cwd=cwd, options=from_options(**options))


def settings(**options: Any) -> Settings:
    """The settings of this call: see :func:`loaded`."""
    return loaded(**options).settings


def lock_context(chosen: Settings) -> LockContext:
    """What locking needs of this machine."""
    return LockContext(
        environ=os.environ,
        home=Path.home(),
        cwd=Path.cwd(),
        settings=chosen,
        store=Path(chosen.store),
    )


def open_store(chosen: Settings | None = None) -> Store:
    """The user's store.

    Raises:
        StoreError: it cannot be used.
    """
    return Store.open(Path((chosen or settings()).store))
