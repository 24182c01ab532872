"""``axletree env``: environments that put headers and libraries in the order that a variant needs, and prove it."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from axletree.app import environments
from axletree.app.environments import EnvironmentRequest
from axletree.cli.env_import import import_command
from axletree.cli.notes import say_aside
from axletree.cli.opening import open_store, settings
from axletree.cli.options import FOLDER_PATH
from axletree.cli.recipe_options import set_option
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
    from collections.abc import Callable, Mapping

    from axletree.environment.description import Description
    from axletree.environment.export import Format
    from axletree.environment.shells import Shell

_BEHIND = "axletree.env.command"
_NOT_FOUND, _NOT_RUNNABLE = 127, 126
"""How shells say that a command is not there, or can't be run."""


def _choosing(command: Callable[..., object]) -> Callable[..., object]:
    """The options that say which environment of a recipe is meant; the command gets what they ask for."""

    @functools.wraps(command)
    def chosen(
        *args: object,
        place: str | None,
        sets: tuple[str, ...],
        variant: str | None,
        stage: str | None,
        environment: str | None,
        **more: object,
    ) -> object:
        wanted = EnvironmentRequest(
            recipe=place or "", sets=sets, variant=variant, stage=stage, environment=environment
        )
        return command(*args, wanted=wanted, **more)

    for option in (
        click.option(
            "--environment",
            metavar="NAME",
            help="Use this environment of the recipe; needed only if the recipe has several.",
        ),
        click.option("--stage", metavar="NAME", help="Use the environment of this stage."),
        click.option(
            "-v",
            "--variant",
            metavar="PATTERN",
            help="Variant to use, such as 'py311-cpu'; not needed if the recipe has only one.",
        ),
        set_option,
    ):
        chosen = option(chosen)
    return chosen


def _shell_option(command: Callable[..., object]) -> Callable[..., object]:
    return click.option(
        "--shell", type=click.Choice(SHELLS), help="Shell to print code for; your login shell by default."
    )(command)


@click.group(help="Create, activate and verify environments with the search order that a variant needs.")
def command() -> None:
    """Create, activate, verify and export environments, and run commands in them."""


@command.command(cls=ReportCommand, report=CreatedEnvironment)
@click.argument("place", metavar="RECIPE")
@click.argument("folder", metavar="[DIR]", required=False, type=FOLDER_PATH)
@_choosing
@click.option(
    "--toolkit", metavar="DIR", help="Root folder of the GPU toolkit, such as /opt/rocm; detected by default."
)
@click.option("--upgrade", is_flag=True, help="Choose the newest conda packages again, instead of those in the lock.")
def create(*, wanted: EnvironmentRequest, folder: Path | None, toolkit: str | None, upgrade: bool) -> Reported:
    """Create an environment for a recipe's variant, replacing any earlier one.

    RECIPE is a .toml file, or the name of a recipe or environment that ships with Axletree: pytorch-cuda and
    pytorch-rocm have what is needed to compile PyTorch.

    DIR is .axletree/env/NAME-VARIANT by default.
    """
    chosen = settings()
    created = environments.create(
        wanted,
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
def activate(*, wanted: EnvironmentRequest, shell: str | None) -> Reported:
    """Print shell code that activates an environment: eval "$(axletree env activate ...)".

    In fish: axletree env activate ... --shell fish | source
    """
    environ = {name: value for name, value in os.environ.items() if name != ENV}
    activation = _find(wanted, environ).activation
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
def run(ctx: click.Context, *, wanted: EnvironmentRequest) -> None:
    """Run a command in an environment, and exit with its exit code: env run [DIR|RECIPE] -- COMMAND."""
    argv: tuple[str, ...] = ctx.meta.get(_BEHIND, ())
    if not argv:
        raise UsageError("no command to run", hint="axletree env run DIR -- COMMAND")
    if not argv[0]:
        click.echo("axletree: '' is not a program name", err=True)
        sys.exit(_NOT_FOUND)
    description = _find(wanted, os.environ)
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
@click.option("--system", is_flag=True, help="Check the compilers on this shell's PATH instead of an environment's.")
@click.option("--compiler", "compilers", metavar="NAME", multiple=True, help="Check only this compiler. Repeatable.")
@click.option(
    "--all", "everything", is_flag=True, help="Show all folders, headers and libraries, not only unexpected ones."
)
def verify(*, wanted: EnvironmentRequest, system: bool, compilers: tuple[str, ...], everything: bool) -> Reported:
    """Verify the search order: compile, link and run a probe with each compiler, and check which files it uses.

    The exit code is 1 if a compiler uses a file from outside the environment, or if a probe fails.
    """
    if system and wanted.recipe:
        raise UsageError(f"--system checks without an environment, so {wanted.recipe} cannot be given")
    description = None if system else _find(wanted, os.environ)
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
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default=FORMATS[0],
    show_default=True,
    help="Format of the file to print.",
)
@click.option(
    "--unlocked",
    is_flag=True,
    help="Print the requirements that the recipe states, instead of the installed versions.",
)
def export(*, wanted: EnvironmentRequest, form: str, unlocked: bool) -> Reported:
    """Print the environment as a conda or pixi file."""
    description = _find(wanted, os.environ)
    exported = environments.export(description, cast("Format", form), locked=not unlocked)
    return Reported(exported, lambda: os.fsencode(exported.text))


command.add_command(import_command)


def _find(wanted: EnvironmentRequest, environ: Mapping[str, str]) -> Description:
    if not wanted.recipe and (wanted.sets or wanted.variant or wanted.stage or wanted.environment):
        raise UsageError("--set, -v, --stage and --environment need a recipe")
    return environments.find(wanted.recipe or None, wanted, environ)


def _shell(given: str | None) -> Shell:
    name = given or Path(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        raise UsageError(f"unknown shell: {name or 'SHELL is not set'}", hint=f"--shell {', '.join(SHELLS)}")
    return name
