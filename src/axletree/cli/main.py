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
from typing import TYPE_CHECKING

import click

from axletree import __version__
from axletree.core.errors import AxletreeError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS: dict[str, tuple[str, str]] = {
    "audit": ("audit", "Check wheels: tags, RECORD, libraries they need, platform floor, RPATH, GPU code."),
    "build": ("build", "Build, audit, index, install and test a recipe's variants."),
    "check": ("check", "Validate recipes and report all their errors at once."),
    "clean": ("clean", "Show what builds and hipify left in a source tree, and remove it."),
    "cmake-cache": ("cmake_cache", "Show, edit and check the cache of a configured CMake tree."),
    "dev": ("dev", "Make a source tree editable, and rebuild what changed: dev RECIPE, dev rebuild [DIR]."),
    "diagnose": ("diagnose", "Find the root cause in logs, and say what to do."),
    "doctor": ("doctor", "Examine this host: can it build and run a recipe's variants, and what is to be changed?"),
    "drift": ("drift", "Compare a recipe's dependencies with upstream's, and with what can be had."),
    "edit-elf": ("edit_elf", "Change search path, SONAME and needed libraries of an ELF file."),
    "env": ("env", "Make environments with the search order that a variant needs, activate them, and prove the order."),
    "facts": ("facts", "Print all facts of this host that builds depend on, as JSON."),
    "init": ("init", "Write a recipe for a project: of a package index, an archive, a folder or a git repository."),
    "ledger": (
        "ledger",
        "Show what became of each variant of a recipe: done, failed, interrupted, stale, never built.",
    ),
    "lock": ("lock", "Resolve a recipe's source and environments, and pin them by hash."),
    "matrix": ("matrix", "List a recipe's variants."),
    "pack": ("pack", "Pack a folder, such as unpack makes it, into a wheel."),
    "plan": ("plan", "Show the stages of a build: what is shared, cached, run again and why."),
    "recipes": ("recipes", "List the recipes that ship with Axletree."),
    "repair": ("repair", "Take missing libraries into wheels, leave what others bring, retag them."),
    "retag": ("retag", "Give wheels other tags, another build tag or another local version."),
    "rules": ("rules", "List the rules of audits, builds and the doctor; of those that are named, why and what to do."),
    "run-stage": ("run_stage", "Run one stage from its request in the store."),
    "schema": (
        "schema",
        "Print the JSON schema of recipes, of their data files, of SDK manifests or of the event stream.",
    ),
    "sdk": ("sdk", "Make Python packages of an SDK's install tree, such as ROCm's."),
    "shell": ("shell", "Open a shell in a stage's folder and environment, or run a command there."),
    "sizes": ("sizes", "Say where the bytes are: by folder, ELF section and GPU architecture."),
    "source": ("source", "Have a recipe's git repositories on disk: sync."),
    "split": ("split", "Split a wheel into several distributions that install together."),
    "store": ("store", "Look after the store: verify, gc, du."),
    "thin": ("thin", "Drop the code of GPUs that are not wanted from a wheel's libraries."),
    "unpack": ("unpack", "Unpack wheels, checked against their RECORD."),
    "wheel": ("wheel", "Make wheels of a project: init, lock and build in one go."),
}
"""Command -> module in ``axletree.cli``, one-line help."""

_READER_GONE = 128 + 13  # SIGPIPE
_REFUSALS = frozenset(
    {errno.EACCES, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG, errno.ENOSPC, errno.EPERM, errno.EROFS}
)
"""What a machine may refuse anywhere; any other error of the system is a fault of ours, and shows where."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. Where the reader of its output is gone it ends with 141, as shells have it."""
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
        module = importlib.import_module(f"axletree.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands from :data:`COMMANDS`."""
        visible = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx) if name in COMMANDS]
        with formatter.section("Commands"):
            formatter.write_dl(visible)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; for an unknown one, name the nearest."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            import difflib  # noqa: PLC0415 (only on this error path: start-up time)

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="axletree")
def cli() -> None:
    """Take a native Python project from source to packages that are audited, indexed, installed and tested.

    Exit codes: 0 done; 1 the work was done and the answer is no; 2 bad usage or input; 3 the host lacks something.
    """


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: run the command line and exit with the code that design names for the outcome."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cancelled is cancelled, whoever asks for it
    try:
        code = cli.main(args=argv, prog_name="axletree", standalone_mode=False)
    except AxletreeError as error:
        from axletree.view.tables import printable  # noqa: PLC0415 (only on this error path: start-up time)

        click.secho("error: ", fg="red", nl=False, err=True)
        click.echo(printable(str(error)), err=True)
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
        from axletree.view.tables import printable  # noqa: PLC0415 (only on this error path: start-up time)

        place = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        click.secho("error: ", fg="red", nl=False, err=True)
        click.echo(printable(f"{place}{error.strerror}"), err=True)
        sys.exit(3)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
