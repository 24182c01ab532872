"""``axletree env``: environments that put headers and libraries in the order that a variant needs, and prove it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from axletree.app import environments
from axletree.app.environments import EnvironmentRequest
from axletree.cli.notes import say_aside
from axletree.cli.opening import open_store, settings
from axletree.cli.reporting import ReportCommand, Reported
from axletree.core.errors import UsageError
from axletree.core.findings import worst
from axletree.environment.apply import ENV
from axletree.environment.delta import Activation
from axletree.environment.export import FORMATS
from axletree.environment.shells import SHELLS, activation_text, undoing_text
from axletree.report.environment import VerifiedEnvironment
from axletree.report.environments import CreatedEnvironment, Deactivation, ExportedEnvironment
from axletree.view.environment import created_text, verified_lines
from axletree.view.tables import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.environment.description import Description
    from axletree.environment.export import Format
    from axletree.environment.shells import Shell

_BEHIND = "axletree.env.command"
_NOT_FOUND, _NOT_RUNNABLE = 127, 126
"""How shells say that a command is not there, or can't be run."""


def _choosing(command: Callable[..., object]) -> Callable[..., object]:
    """The options that say which environment of a recipe is meant."""
    for option in (
        click.option("--environment", metavar="NAME", help="Environment of the recipe, if it has several."),
        click.option("--stage", metavar="NAME", help="Use the environment of this stage."),
        click.option("-v", "--variant", metavar="PATTERN", help="Variant; not needed if the recipe has only one."),
    ):
        command = option(command)
    return command


def _shell_option(command: Callable[..., object]) -> Callable[..., object]:
    return click.option(
        "--shell", type=click.Choice(SHELLS), help="Shell to print code for; your login shell by default."
    )(command)


@click.group(help="Create, activate and verify environments with the search order that a variant needs.")
def command() -> None:
    """Create, activate, verify and export environments, and run commands in them."""


@command.command(cls=ReportCommand, report=CreatedEnvironment)
@click.argument("recipe")
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path, file_okay=False))
@_choosing
@click.option("--toolkit", metavar="DIR", help="Root folder of the GPU toolkit; detected by default.")
@click.option("--upgrade", is_flag=True, help="Resolve conda packages again instead of using the lock.")
def create(
    *,
    recipe: str,
    folder: Path | None,
    variant: str | None,
    stage: str | None,
    environment: str | None,
    toolkit: str | None,
    upgrade: bool,
) -> Reported:
    """Create an environment for a recipe's variant, replacing any earlier one.

    DIR is .axletree/env/NAME-VARIANT by default.
    """
    chosen = settings()
    created = environments.create(
        EnvironmentRequest(recipe=recipe, variant=variant, stage=stage, environment=environment),
        folder,
        store=open_store(chosen),
        settings=chosen,
        environ=environments.without_activation(os.environ),
        toolkit=toolkit,
        upgrade=upgrade,
        say=say_aside,
    )
    return Reported(created, lambda: created_text(created.description))


@command.command(cls=ReportCommand, report=Activation)
@click.argument("place", metavar="[DIR|RECIPE]", required=False)
@_choosing
@_shell_option
def activate(
    *, place: str | None, variant: str | None, stage: str | None, environment: str | None, shell: str | None
) -> Reported:
    """Print shell code that activates an environment: eval "$(axletree env activate ...)".

    In fish: axletree env activate ... --shell fish | source
    """
    environ = {name: value for name, value in os.environ.items() if name != ENV}
    activation = _find(place, variant, stage, environment, environ=environ).activation
    return Reported(activation, lambda: os.fsencode(activation_text(activation, _shell(shell))))


@command.command(cls=ReportCommand, report=Deactivation)
@_shell_option
def deactivate(*, shell: str | None) -> Reported:
    """Print shell code that undoes the last activation: eval "$(axletree env deactivate)"."""
    undone = environments.deactivate(os.environ)
    return Reported(undone, lambda: os.fsencode(undoing_text(undone.changes, _shell(shell))))


class _Behind(click.Command):
    """A command that leaves what is behind ``--`` alone: it belongs to somebody else."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ours, and note the rest."""
        if "--" in args:
            split = args.index("--")
            args, ctx.meta[_BEHIND] = args[:split], tuple(args[split + 1 :])
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if _BEHIND in ctx.meta:
                raise
            message = f"{error.format_message().rstrip('.')}; put the command after --: axletree env run DIR -- COMMAND"
            raise click.UsageError(message, ctx) from error


@command.command(cls=_Behind, options_metavar="[OPTIONS]")
@click.argument("place", metavar="[DIR|RECIPE] -- COMMAND...", required=False)
@_choosing
@click.pass_context
def run(
    ctx: click.Context,
    *,
    place: str | None,
    variant: str | None,
    stage: str | None,
    environment: str | None,
) -> None:
    """Run a command in an environment, and exit with its exit code: env run [DIR|RECIPE] -- COMMAND."""
    argv: tuple[str, ...] = ctx.meta.get(_BEHIND, ())
    if not argv:
        raise UsageError("no command to run", hint="axletree env run DIR -- COMMAND")
    if not argv[0]:
        click.echo("axletree: '' is not a program name", err=True)
        sys.exit(_NOT_FOUND)
    description = _find(place, variant, stage, environment)
    variables = environments.variables(description, os.environ)
    sys.stdout.flush()
    try:
        os.execvpe(argv[0], argv, variables)  # noqa: S606 (the user's own command)
    except OSError as error:
        click.echo(f"axletree: {printable(argv[0])}: {error.strerror}", err=True)
        sys.exit(_NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUNNABLE)


@command.command(cls=ReportCommand, report=VerifiedEnvironment)
@click.argument("place", metavar="[DIR|RECIPE]", required=False)
@_choosing
@click.option("--system", is_flag=True, help="Check this shell without an environment.")
@click.option("--compiler", "compilers", metavar="NAME", multiple=True, help="Check only this compiler. Repeatable.")
@click.option("--all", "everything", is_flag=True, help="Show every folder, header and library.")
def verify(
    *,
    place: str | None,
    variant: str | None,
    stage: str | None,
    environment: str | None,
    system: bool,
    compilers: tuple[str, ...],
    everything: bool,
) -> Reported:
    """Verify the search order: compile, link and run a probe with each compiler, and check which files it uses.

    The exit code is 1 if a compiler uses a file from outside the environment, or if a probe fails.
    """
    if system and place is not None:
        raise UsageError(f"--system checks without an environment, so {place} cannot be given")
    description = None if system else _find(place, variant, stage, environment)
    report = environments.verify(
        description,
        os.environ,
        compilers=compilers,
        note=say_aside,
    )
    return Reported(
        report,
        lambda: verified_lines(report, everything=everything, style=click.style),
        int(worst(report.findings) == "error"),
    )


@command.command(cls=ReportCommand, report=ExportedEnvironment)
@click.argument("place", metavar="[DIR|RECIPE]", required=False)
@_choosing
@click.option("--format", "form", type=click.Choice(FORMATS), default=FORMATS[0], show_default=True)
@click.option("--unlocked", is_flag=True, help="Print the recipe's requirements instead of the installed versions.")
def export(
    *,
    place: str | None,
    variant: str | None,
    stage: str | None,
    environment: str | None,
    form: str,
    unlocked: bool,
) -> Reported:
    """Print the environment as a conda or pixi file."""
    description = _find(place, variant, stage, environment)
    exported = environments.export(description, cast("Format", form), locked=not unlocked)
    return Reported(exported, lambda: os.fsencode(exported.text))


def _find(
    place: str | None,
    variant: str | None,
    stage: str | None,
    environment: str | None,
    *,
    environ: dict[str, str] | None = None,
) -> Description:
    wanted = EnvironmentRequest(recipe=place or "", variant=variant, stage=stage, environment=environment)
    if place is None and (variant or stage or environment):
        raise UsageError("-v, --stage and --environment need a recipe")
    return environments.find(place, wanted, os.environ if environ is None else environ)


def _shell(given: str | None) -> Shell:
    name = given or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise UsageError(f"unknown shell: {name or 'SHELL is not set'}", hint=f"--shell {', '.join(SHELLS)}")
    return name
