"""What completes the values of a command line: recipes, and the variants, stages and packages of the one it names.

A completion that finds nothing, of whatever reason, offers nothing: somebody is in the middle of typing.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from axletree.recipe.model import Recipe

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_RECIPES = ("recipe", "recipes", "place")
"""Arguments that name a recipe; the last may name a folder, too."""


def completer_of(name: str | None, *, option: bool) -> Completer | None:
    """What completes a parameter; ``None`` leaves it to its type."""
    if option:
        return _OPTIONS.get(name or "")
    return _recipes if name in _RECIPES else _stages_of_store if name in {"stage", "key"} else None


def _recipes(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What ships, then files: folders go on, and ``.toml`` files are recipes. Environments are for ``env`` alone."""
    # Each completer needs something else: start-up time.
    from axletree.app.shipped import recipes_folder, shipped_environments  # noqa: PLC0415

    found: list[CompletionItem] = []
    with suppress(OSError):
        folder = recipes_folder()
        names = sorted(path.stem for path in folder.glob("*.toml")) if folder is not None else []
        if ctx.parent is not None and ctx.parent.info_name == "env":
            names = [*shipped_environments(), *names]
        found += [CompletionItem(name) for name in names if name.startswith(incomplete)]
        head, slash, start = incomplete.rpartition("/")
        for path in sorted(Path(head + slash or ".").expanduser().iterdir()):
            if not path.name.startswith(start) or (path.name.startswith(".") and not start):
                continue
            if path.is_dir():
                found.append(CompletionItem(f"{head}{slash}{path.name}/"))
            elif path.suffix == ".toml" and _is_recipe(path.name):
                found.append(CompletionItem(f"{head}{slash}{path.name}"))
    return found


def _is_recipe(name: str) -> bool:
    return (
        not name.startswith("pylock.")
        and not name.endswith(".lock.toml")
        and name not in {"pyproject.toml", "axletree.toml"}
    )


def _recipe_of(ctx: click.Context) -> Recipe:
    """The recipe that the command line names."""
    from axletree.app.env_names import load_environments  # noqa: PLC0415 (start-up time)
    from axletree.app.recipes import load_recipe  # noqa: PLC0415 (start-up time)

    # An option that lacks its value, since that is being completed, keeps click from giving arguments their names.
    named = next(filter(None, [*map(ctx.params.get, ("recipe", "place")), *ctx.args]))
    load = load_environments if ctx.parent is not None and ctx.parent.info_name == "env" else load_recipe
    return load(named, tuple(ctx.params.get("sets") or ())).recipe


def _from_recipe(names: Callable[[Recipe], Iterable[str]]) -> Completer:
    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        with suppress(Exception):  # no recipe yet, or a faulty one
            return [CompletionItem(name) for name in names(_recipe_of(ctx)) if name.startswith(incomplete)]
        return []

    return complete


def _variant_ids(recipe: Recipe) -> Iterable[str]:
    from axletree.recipe.axes import expand  # noqa: PLC0415 (start-up time)

    return (variant.id for variant in expand(recipe))


def _stages_of_store(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Stages that the store has a request of."""
    with suppress(Exception):  # no store yet
        from axletree.app.shell import stage_names  # noqa: PLC0415 (start-up time)
        from axletree.cli.opening import open_store  # noqa: PLC0415

        return [CompletionItem(name) for name in stage_names(open_store()) if name.startswith(incomplete)]
    return []


_VARIANTS = _from_recipe(_variant_ids)
_OPTIONS: dict[str, Completer] = {
    "patterns": _VARIANTS,
    "variant": _VARIANTS,
    "skip": _VARIANTS,
    "stage": _from_recipe(lambda recipe: recipe.stages),
    "environment": _from_recipe(lambda recipe: recipe.environments),
    "packages": _from_recipe(lambda recipe: recipe.packages),
    "no_share": _from_recipe(lambda recipe: recipe.axes),
    "preset": _from_recipe(lambda recipe: recipe.presets),
}
