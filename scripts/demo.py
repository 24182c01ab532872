#!/usr/bin/env python3
"""`make demo`: build a recipe with the Python that this environment has, and say which and why.

That is torch-scatter if PyTorch's CPU build exists for this Python, else kiwisolver, which needs none. The
recipe is built as it is where its locks fit; else a copy for this Python is locked in .cache/demo, so that the checkout
stays as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
import urllib3
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from axletree import registry
from axletree.app.lock import lock_recipe
from axletree.app.lock_context import LockContext
from axletree.app.recipes import load_recipe
from axletree.core.errors import AxletreeError, HostError
from axletree.core.values import Digest
from axletree.host.files import replace_file
from axletree.host.indexes import IndexSettings, local_path, read_indexes
from axletree.host.interpreters import find_interpreter
from axletree.host.resolve import wheel_tags
from axletree.host.settings import load_settings
from axletree.host.simple_api import list_files
from axletree.recipe.axes import expand
from axletree.recipe.defaults import DEFAULTS_LOCK
from axletree.recipe.locks import parse_lock
from axletree.recipe.target import resolve
from axletree.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from packaging.tags import Tag

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "recipes"
COPIES = ROOT / ".cache" / "demo"
WITH_TORCH, WITHOUT = "torch-scatter", "kiwisolver"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}" + (
    "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
)


def choose(copies: Path, environ: Mapping[str, str]) -> Path:
    """The recipe to build, locked; says first where it is not the one with PyTorch, and why.

    Raises:
        AxletreeError: neither can be had.
    """
    try:
        return fit(WITH_TORCH, copies, environ)
    except AxletreeError as error:
        reason = " ".join(error.problems[0].message.split())
        click.echo(f"demo: builds {WITHOUT} instead of {WITH_TORCH}: {reason}")
    return fit(WITHOUT, copies, environ)


def fit(name: str, copies: Path, environ: Mapping[str, str]) -> Path:
    """A shipped recipe where it is for this Python and its locks fit, else its copy that is.

    Raises:
        AxletreeError: what it needs can't be had.
    """
    shipped = RECIPES / f"{name}.toml"
    copy = copies / shipped.name
    text = shipped.read_text(encoding="utf-8")
    fitted = re.sub(r"^python = \[.*\]$", f'python = ["{PYTHON}"]', text, count=1, flags=re.MULTILINE)
    (copies / name).mkdir(parents=True, exist_ok=True)
    replace_file(copy, fitted.encode())
    for file in (RECIPES / name).iterdir():
        # A lock that was made here is kept.
        made_here = file.name.startswith("pylock.") or file.name == DEFAULTS_LOCK
        if file.is_file() and not (made_here and (copies / name / file.name).exists()):
            shutil.copyfile(file, copies / name / file.name)
    need_torch(copy, environ)
    settings = load_settings(environ, home=Path.home(), cwd=ROOT).settings
    here = LockContext(environ=environ, home=Path.home(), cwd=ROOT, settings=settings, store=Path(settings.store))
    locked = lock_recipe(str(copy), here, note=lambda text: click.echo(f"demo: {text}"))
    same = fitted == text and all(
        (RECIPES / name / Path(file.path).name).read_bytes() == Path(file.path).read_bytes() for file in locked
    )
    return shipped if same else copy


def need_torch(recipe: Path, environ: Mapping[str, str]) -> None:
    """Look for the PyTorch that a recipe needs, in its locks and the store, then wherever packages come from.

    Raises:
        HostError: no place has it for this Python; says what each of them answered.
    """
    loaded = load_recipe(recipe)
    (variant,) = expand(loaded.recipe)
    settings = load_settings(environ, home=Path.home(), cwd=ROOT).settings
    store = Store.open(Path(settings.store))
    values = variant.values
    if "torch" not in values:
        return
    wanted = Requirement(f"torch=={values['torch']}+{values['gpu']}")
    for environment in resolve(loaded.recipe, variant).environments:
        lock = loaded.places.companion / environment.lock
        if not (lock.exists() and _is_stored(lock, store)):
            interpreter = find_interpreter(environment.python, environ=environ)
            indexes = read_indexes(settings, environ, home=Path.home(), cwd=ROOT)
            backend = registry.backend_of(values["gpu"])
            further = [backend.torch_index(values["gpu"])] if backend is not None else []
            find_wheel(wanted, wheel_tags(interpreter), indexes, further=further)


def _is_stored(lock: Path, store: Store) -> bool:
    wheels = parse_lock(lock.read_text(encoding="utf-8"), file=str(lock)).wheels
    return all(store.has_blob(Digest(wheel.sha256)) for wheel in wheels if wheel.name == "torch")


def find_wheel(
    requirement: Requirement, tags: Iterable[Tag], settings: IndexSettings, *, further: Iterable[str]
) -> None:
    """Ask the user's own places for a wheel that fits, then further indexes; each once, without retries.

    Raises:
        HostError: none has it; says what each of them answered.
    """
    runs = set(tags)
    answers, without = [], []
    indexes = [*([settings.index_url] if settings.index_url else []), *settings.extra_index_urls]
    indexes += further if indexes else []  # who wants no index at all gets none
    places = [(place, IndexSettings(index_url=None, find_links=(place,))) for place in settings.find_links]
    places += [(place, IndexSettings(index_url=place)) for place in indexes]
    for place, only in sorted(places, key=lambda pair: local_path(pair[0]) is None):
        try:
            files = list_files(requirement.name, only, retry=urllib3.Retry(0))
        except HostError as error:
            answers.append(error.problems[0].message.partition(" (asked for ")[0])
            continue
        found = [offered for file in files if (offered := _tags(file.filename, requirement))]
        if any(offered & runs for offered in found):
            return
        pythons = sorted({tag.interpreter for offered in found for tag in offered})
        where = urlsplit(place).hostname or str(local_path(place))
        if pythons:
            answers.append(f"{where} has it for {', '.join(pythons)} only")
        else:
            without.append(where)
    answers += [f"not in {', '.join(without)}"] if without else []
    raise HostError(f"no {requirement} for Python {PYTHON} was found: {'; '.join(answers)}")


def _tags(filename: str, requirement: Requirement) -> frozenset[Tag]:
    """Tags of a wheel that meets a requirement; none of another file."""
    try:
        _, version, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return frozenset()
    return tags if requirement.specifier.contains(version, prereleases=True) else frozenset()


def main() -> None:
    """Choose, and build."""
    try:
        recipe = choose(COPIES, os.environ)
    except AxletreeError as error:
        click.echo(f"demo: {error}", err=True)
        sys.exit(error.exit_code)
    os.chdir(ROOT)
    command = [".venv/bin/axletree", "build", os.path.relpath(recipe), "--out", "dist"]
    click.echo(shlex.join(command))
    os.execv(command[0], command)  # noqa: S606 (the command that is shown)


if __name__ == "__main__":
    main()
