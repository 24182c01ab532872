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
    from collections.abc import Mapping, Sequence

COMMANDS: dict[str, tuple[str, str]] = {
    "audit": ("audit", "Check wheels: tags, RECORD, needed libraries, minimum platform, RPATH, GPU code."),
    "build": ("build", "Build, audit, index, install and test a recipe's variants."),
    "check": ("check", "Validate recipes and report all their errors at once."),
    "clean": ("clean", "Show or remove what builds and hipify left behind in a source tree."),
    "cmake-cache": ("cmake_cache", "Show, edit and check the cache of a configured CMake tree."),
    "dev": ("dev", "Make a source tree editable: what you edit and rebuild is what Python imports."),
    "diagnose": ("diagnose", "Find the root cause of failures in logs, and suggest a fix."),
    "doctor": ("doctor", "Check whether this host can build and run a recipe's variants, and suggest fixes."),
    "drift": ("drift", "Compare a recipe's dependencies with upstream's and with what channels offer."),
    "edit-elf": ("edit_elf", "Change the search path, SONAME and needed libraries of an ELF file."),
    "env": ("env", "Create, activate and verify environments with the search order that a variant needs."),
    "facts": ("facts", "Print all facts of this host that builds depend on."),
    "init": ("init", "Write a recipe for a project from an sdist, an archive, a folder or a git repository."),
    "ledger": (
        "ledger",
        "Show the state of each variant of a recipe: done, failed, interrupted, stale, never built.",
    ),
    "lock": ("lock", "Resolve a recipe's source and environments, and pin them by hash."),
    "matrix": ("matrix", "List a recipe's variants."),
    "pack": ("pack", "Pack a folder created by unpack into a wheel."),
    "plan": ("plan", "Show the stages of a build: what is shared, cached or run again, and why."),
    "rebuild": ("rebuild", "Rebuild what changed in an editable source tree: the current one, or DIR."),
    "recipes": ("recipes", "List the recipes that ship with Axletree."),
    "repair": (
        "repair",
        "Copy missing libraries into wheels, except those that other distributions provide, and retag them.",
    ),
    "retag": ("retag", "Change the tags, build tag or local version of wheels."),
    "rules": ("rules", "List the audit, build and doctor rules, or explain the rules you name."),
    "run-stage": ("run_stage", "Run one stage from its request in the store."),
    "schema": (
        "schema",
        "Print the JSON schema of recipes, data files, SDK manifests, events or reports.",
    ),
    "sdk": ("sdk", "Build Python packages from an SDK's install tree, such as ROCm's."),
    "settings": (
        "settings",
        "Show the settings, each with the file, variable or default that its value comes from.",
    ),
    "shell": ("shell", "Open a shell in a stage's folder and environment, or run a command there."),
    "sizes": ("sizes", "Show what takes up space: by folder, ELF section and GPU architecture."),
    "source": ("source", "Clone or update a recipe's git repositories."),
    "split": ("split", "Split a wheel into several distributions that install together."),
    "store": ("store", "Maintain the store: verify, gc, du."),
    "thin": ("thin", "Remove the code for unwanted GPUs from a wheel's libraries."),
    "unpack": ("unpack", "Unpack wheels and check them against their RECORD."),
    "wheel": ("wheel", "Build wheels of a project: init, lock and build in one step."),
}
"""Command -> module in ``axletree.cli``, one-line help."""
MOVED: dict[tuple[str, ...], str] = {("dev", "rebuild"): "rebuild"}
"""What was called otherwise in earlier versions -> its command."""

_COLOR, _WORDS = "axletree.color", "axletree.words"
_FORCING = ("FORCE_COLOR", "CLICOLOR_FORCE")
_WITHOUT_NOTES = frozenset({"run-stage", "shell"})
"""Commands that are somebody else's terminal, or that fork."""
_READER_GONE = 128 + 13  # SIGPIPE
_REFUSALS = frozenset(
    {errno.EACCES, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENAMETOOLONG, errno.ENOSPC, errno.EPERM, errno.EROFS}
)
"""What a machine may refuse anywhere; any other error of the system is a fault of ours, and shows where."""


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
        if (new := MOVED.get(tuple(args[:2]))) is not None:
            ctx.fail(f"{' '.join(args[:2])!r} is now a separate command: axletree {' '.join([new, *args[2:]])}")
        if name not in COMMANDS and not name.startswith("-"):
            import difflib  # noqa: PLC0415 (only on this error path: start-up time)

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
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
    help="Use colors on stdout and stderr; auto uses them on terminals.",
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
    sys.exit(code if isinstance(code, int) else 0)


def _tell(error: str, chosen: Mapping[str, bool | None]) -> None:
    from axletree.view.tables import printable  # noqa: PLC0415 (only on this error path: start-up time)

    head = click.style("error:", fg="red", bold=True)
    click.echo(f"{head} {printable(error)}", err=True, color=chosen.get(_COLOR))


if __name__ == "__main__":
    main()
