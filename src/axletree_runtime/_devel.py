"""The devel tree: the whole SDK in one folder, made of the devel package's payload and the files of other packages.

How it can't be caught half-way:

- RECORD gets a row for the tree's folder (``_record.py`` says why that is all), and while somebody works one for the
  folder in which things are made, before either has anything in it.
- A new tree is made in ``{root}.tmp/new`` and renamed to its place, with its mark and its listing in it
  (``_journal.py``). A tree without a mark does not count. What a killed process left is thrown away by the next.
- A tree that is there is brought in line with packages that came, went or were installed again member by member, each
  by a rename; the mark is written last.
- One process works, the others wait and look again (``_devel_lock.py``).
- The payload stays: ``repair`` needs it.

:func:`devel_root` is the only rule for where a tree is that counts: the one beside the package, else the one in the
user's cache. :func:`expand` gives the same answer, after it has made it true.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._devel_places import Place, cache_home, cache_place, is_writable, payload_digest, site_place
from ._journal import read_mark
from ._sdk import SdkError

if TYPE_CHECKING:
    from pathlib import Path

    from ._devel_state import State
    from ._sdk import Sdk


def devel_root(sdk: Sdk) -> Path | None:
    """The expanded tree, if it is what the installed packages ask for; None where :func:`expand` has something to do.

    Nothing is written.
    """
    found = find_tree(sdk)
    return found[0].root if found else None


def expand(sdk: Sdk, *, quiet: bool = True, link_mode: str | None = None) -> Path:
    """The tree, made or brought in line first where that is needed.

    Args:
        sdk: the SDK.
        quiet: say nothing on stderr but where files that somebody else made went.
        link_mode: how files of other packages get into it: ``auto``, ``hardlink``, ``symlink``, ``copy``, ``reflink``.
            None: what ``{PREFIX}_LINK_MODE`` says, else the tree's own, else ``auto``.

    Raises:
        ModuleNotFoundError: the devel package is not installed.
        SdkError: the payload or another package is damaged, there is no room, the link mode does not work here.
        ValueError: there is no such link mode.
    """
    asked = link_mode or sdk.setting("LINK_MODE")
    if (place := done_already(sdk, asked)) is not None:
        return place.root
    require_devel(sdk)
    from ._devel_update import update

    return update(sdk, asked=asked, quiet=quiet)


def repair(sdk: Sdk) -> tuple[str, ...]:
    """Make the tree whole again, whatever was done to it: its content is compared, too.

    Returns:
        What was done; empty where all was well.

    Raises:
        ModuleNotFoundError, SdkError: as :func:`expand`.
    """
    from ._devel_update import update_thoroughly

    require_devel(sdk)
    return update_thoroughly(sdk)


def deinit(sdk: Sdk) -> tuple[str, ...]:
    """Remove the tree and all that was made for it: beside the package, in RECORD and in the user's cache.

    It works after the devel package is gone, too.

    Returns:
        What was removed.

    Raises:
        SdkError: the folder is not a tree that was made here.
    """
    from ._devel_state import remove_all

    return remove_all(sdk)


def state(sdk: Sdk) -> State:
    """What there is of the tree, and what is wrong with it."""
    from ._devel_state import find_state

    return find_state(sdk)


def done_already(sdk: Sdk, asked: str) -> Place | None:
    """Where a tree lies for which nothing is to be done, in the link mode that is asked for; else None."""
    found = find_tree(sdk)
    if found is None or not found[1] or os.path.lexists(found[0].work):
        return None
    mark = read_mark(found[0].root)
    return found[0] if not asked or (mark and asked in {mark.asked, mark.mode}) else None


def require_devel(sdk: Sdk) -> None:
    """See that the devel package is installed.

    Raises:
        ModuleNotFoundError: it is not, or the SDK has none.
    """
    package = sdk.devel_package()
    if package is None:
        raise ModuleNotFoundError(f"{sdk.file.sdk} does not include a devel package")
    if sdk.devel_module() is None:
        raise ModuleNotFoundError(f"{package.dist} is not installed: {sdk.install_hint([package])}")


def place_for_new(sdk: Sdk) -> Place:
    """Where a tree is made that is not there yet: beside the devel package, else in the user's cache.

    Raises:
        SdkError: the user has no cache, or the payload is missing.
    """
    require_devel(sdk)
    package = sdk.devel_package()
    beside = site_place(sdk, package.folder if package else "")
    return beside if is_writable(sdk, beside) else _cache(sdk, beside)


def find_tree(sdk: Sdk) -> tuple[Place, bool] | None:
    """The tree that counts, and whether its mark says so; else each member was looked at, and is right."""
    package, module = sdk.devel_package(), sdk.devel_module()
    if package is None or module is None:
        return None
    place = site_place(sdk, package.folder)
    found = fits(sdk, place)
    if found is None and cache_home_exists(sdk):
        try:
            place = _cache(sdk, place)
        except SdkError:  # without the payload no tree in the cache can be known as its own
            return None
        found = fits(sdk, place)
    return None if found is None else (place, found)


def cache_home_exists(sdk: Sdk) -> bool:
    """Whether this user has ever had a tree in the cache."""
    try:
        return cache_home(sdk).is_dir()
    except (OSError, SdkError):
        return False


def _cache(sdk: Sdk, beside: Place) -> Place:
    from ._devel_plan import payload_facts

    package, module = sdk.devel_package(), sdk.devel_module()
    if package is None or module is None:
        raise SdkError("the devel package is not installed")
    version = sdk.shipped(package).version
    payload, size, mtime = payload_facts(module)
    digest = payload_digest(beside.site, package.dist, version, payload) or f"{size}-{mtime}"
    return cache_place(sdk, beside.site, package.folder, version, digest)


def fits(sdk: Sdk, place: Place) -> bool | None:
    """Whether a tree is what the installed packages ask for: by its mark, or only by its members (False); else None."""
    mark = read_mark(place.root)
    package, module = sdk.devel_package(), sdk.devel_module()
    if mark is None or package is None or module is None or mark.version != sdk.shipped(package).version:
        return None
    from ._devel_plan import payload_facts, stamps

    try:
        payload, size, mtime = payload_facts(module)
        same = (mark.size, mark.mtime) == (size, mtime)
        known = payload_digest(module.parent, package.dist, mark.version, payload) if not same else ""
    except SdkError:  # somebody removed it; the tree is whole all the same
        same, known = True, ""
    if same and mark.settled and mark.packages == stamps(sdk):
        return True
    if not same and (not known or mark.digest != known):
        return None
    from ._devel_update import differences

    return None if differences(sdk, place, mark) else False
