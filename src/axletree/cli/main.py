"""The ``axletree`` command: a group whose commands are imported only when they are called.

``--help`` must not pay for what it does not run, so the table below holds each command's one-line help; a test compares
it with the command's own.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from contextlib import redirect_stderr, suppress
from typing import TYPE_CHECKING, NoReturn

import click

from axletree import __version__
from axletree.core.errors import AxletreeError
from axletree.core.near import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: dict[str, str] = {
    "audit": "Check wheels: tags, RECORD, needed libraries, minimum platform, RPATH and GPU code.",
    "build": "Build, audit, index, install and test a recipe's variants.",
    "check": "Validate recipes and report all their errors at once.",
    "clean": "Show or remove what builds and hipify left behind in a source tree.",
    "cmake-cache": "Show, edit and check the cache of a configured CMake tree.",
    "completion": "Print the script that completes axletree's commands, options and recipes in a shell.",
    "dev": "Install a source tree in editable mode, so that Python imports what you edit and rebuild.",
    "diagnose": "Find the root cause of failures in logs, and suggest a fix.",
    "doctor": "Check whether this host can build and run a recipe's variants, and suggest fixes.",
    "drift": "Compare a recipe's dependencies with upstream's and with the versions that channels offer.",
    "edit-elf": "Change the search path, SONAME, needed libraries and interpreter of an ELF file.",
    "env": "Create, activate and verify environments with the search order that a variant needs.",
    "facts": "Print all facts about this host that builds depend on.",
    "image": "Make and manage images: the root file systems that stages run in.",
    "init": "Write a recipe for a project from an sdist, an archive, a folder or a git repository.",
    "ledger": "Show the state of each variant of a recipe: done, failed, interrupted, stale or never built.",
    "lock": "Resolve a recipe's source and environments, and pin them by hash.",
    "matrix": "List a recipe's variants.",
    "pack": "Create a wheel from a folder that `axletree unpack` created.",
    "plan": "Show the stages of a build: what is shared, cached or run again, and why.",
    "rebuild": "Rebuild what changed in an editable source tree: the current one, or DIR.",
    "recipes": "List the recipes that ship with Axletree.",
    "repair": "Copy missing libraries into wheels, unless another distribution provides them, and retag the wheels.",
    "retag": "Change the tags, build tag or local version of wheels.",
    "rules": "List the audit, build and doctor rules, or explain the rules you name.",
    "run-stage": "Run a single stage again, as an earlier build recorded it in the store.",
    "schema": "Print the JSON schema of recipes, data files, SDK manifests, events or reports.",
    "sdk": "Build Python packages from an SDK's install tree, such as ROCm's.",
    "settings": "Show all settings, and the file, variable or default that each value comes from.",
    "shell": "Open a shell in a stage's folder and environment, or run a command there.",
    "sizes": "Show what takes up space: by folder, ELF section and GPU architecture.",
    "source": "Clone or update a recipe's git repositories.",
    "split": "Split a wheel into several distributions that install together.",
    "store": "Maintain the store: verify, gc, du.",
    "thin": "Remove the code for unwanted GPUs from a wheel's libraries.",
    "unpack": "Unpack wheels and check them against their RECORD.",
    "wheel": "Build wheels of a project: init, lock and build in one step.",
}
"""Command -> one-line help. :func:`load` has the command itself."""
MOVED: dict[tuple[str, ...], str] = {("dev", "rebuild"): "rebuild"}
"""What was called otherwise in earlier versions -> its command."""

COMPLETE = "_AXLETREE_COMPLETE"
"""Variable by which a shell's completion script asks what may come next."""
_COLOR, _WORDS = "axletree.color", "axletree.words"
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
_WITHOUT_NOTES = frozenset({"run-stage", "shell"})
"""Commands that are somebody else's terminal, or that fork."""
_READER_GONE = 128 + 13  # SIGPIPE
_REFUSALS = frozenset(
    {errno.EACCES, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG, errno.ENOSPC, errno.EPERM, errno.EROFS}
)
"""What a machine may refuse anywhere; any other error of the system is a fault of ours, and shows where."""


def load(name: str) -> click.Command:
    """A command, from the module in ``axletree.cli`` that is called as it."""
    command: click.Command = importlib.import_module(f"axletree.cli.{name.replace('-', '_')}").command
    return command


class LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. Where the reader of its output is gone it ends with 141, as shells have it."""
        ctx.meta[_WORDS] = tuple(ctx.args)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # of which click would make exit code 1: the answer is no
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left is flushed at the end
            return _READER_GONE

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, sorted."""
        return sorted([*COMMANDS, *super().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return its ``command``."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        if COMPLETE in os.environ:
            from axletree.cli.outline import outlined  # noqa: PLC0415 (start-up time)

            return outlined(cmd_name)
        return load(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands from :data:`COMMANDS`."""
        visible = [(name, COMMANDS[name]) for name in self.list_commands(ctx) if name in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl(visible)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown one, name the nearest."""
        name = args[0]
        if (new := MOVED.get(tuple(args[:2]))) is not None:
            ctx.fail(f"{' '.join(args[:2])!r} is now a separate command: axletree {' '.join([new, *args[2:]])}")
        if name not in COMMANDS and not name.startswith("-"):
            near = nearest(name, COMMANDS)
            hint = f" Did you mean {near!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="axletree")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors and the result.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Whether to use colors on stdout and stderr; auto uses them only on terminals.",
)
@click.pass_context
def cli(ctx: click.Context, *, quiet: bool, color: str) -> None:
    """Take a native Python project from source to packages that are audited, indexed, installed and tested.

    Exit codes: 0 success; 1 a check or the work failed; 2 bad usage or input; 3 the host lacks something.
    """
    ctx.color = wants_color(color, os.environ)
    if ctx.obj is not None:
        ctx.obj[_COLOR] = ctx.color
    if ctx.invoked_subcommand not in _WITHOUT_NOTES:
        from axletree.cli.notes import speaking  # noqa: PLC0415 (--help says nothing: start-up time)

        # A path is fit to be told; other words may be secret.
        what = next((word for word in ctx.meta.get(_WORDS, ()) if os.path.exists(word)), "")  # noqa: PTH110
        ctx.with_resource(speaking(ctx.invoked_subcommand or "", quiet=quiet, what=what))


def wants_color(choice: str, environ: Mapping[str, str]) -> bool | None:
    """Whether there are to be colours; ``None`` leaves it to what each stream is.

    What is asked for by ``--color`` counts, then ``NO_COLOR`` (see no-color.org), then ``FORCE_COLOR`` and
    ``CLICOLOR_FORCE``.
    """
    if choice != "auto":
        return choice == "always"
    if environ.get("NO_COLOR"):
        return False
    return True if any(environ.get(name, "0") not in ("", "0") for name in _FORCING) else None


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: run the command line and exit with the code that design names for the outcome."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cancelled is cancelled, whoever asks for it
    chosen: dict[str, bool | None] = {}
    if COMPLETE in os.environ:
        _complete()
    try:
        code = cli.main(args=argv, prog_name="axletree", standalone_mode=False, obj=chosen)
    except AxletreeError as error:
        _tell(str(error), chosen)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        click.echo("cancelled", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        _tell(f"{place}{error.strerror}", chosen)
        sys.exit(3)
    finally:
        _end_interruption()
    sys.exit(code if isinstance(code, int) else 0)


def _end_interruption() -> None:
    """Have Python exit with our code, although it was interrupted.

    CPython notes an interruption that ends code given as a string, as what ``dataclass`` and ``namedtuple`` run during
    imports, and at its own end kills itself with SIGINT, although somebody caught it. The next such code clears the
    note (``run_eval_code_obj`` in Python/pythonrun.c).
    """
    exec("")  # noqa: S102


def _complete() -> NoReturn:
    """Answer a shell's completion script; a fault is no text in the middle of somebody's command line."""
    with suppress(Exception), open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stderr(nothing):  # noqa: PTH123
        cli.main(prog_name="axletree", complete_var=COMPLETE)
    sys.exit(0)


def _tell(error: str, chosen: Mapping[str, bool | None]) -> None:
    from axletree.view.tables import printable  # noqa: PLC0415 (only on this error path: start-up time)

    head = click.style("error:", fg="red", bold=True)
    click.echo(f"{head} {printable(error)}", err=True, color=chosen.get(_COLOR))


if __name__ == "__main__":
    main()
