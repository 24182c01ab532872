"""The SDK's command, ``rocm-sdk``: where it lies, what it is, what to install, what a build needs."""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ._detect import is_on, split_list
from ._environment import SHELLS, build_environment, render
from ._sdk import SdkError, find_root, this_sdk, write_text
from ._selection import stale_selection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._sdk import Sdk
    from ._select import Selection

LINK_MODES = ("auto", "hardlink", "symlink", "copy", "reflink")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; what is wrong becomes one line on stderr and exit code 1, wrong usage 2."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        sdk = this_sdk()
        stale = stale_selection(sdk)
        if stale:
            _note(sdk, f"warning: {stale}")
        if words[:1] in (["test"], ["doctor"]):  # they have options of their own
            return _other_main(words[0])(words[1:], sdk)
        options = _parser(sdk).parse_args(words)
        options.run(sdk, options)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    except (SdkError, ImportError, OSError, RuntimeError, ValueError) as error:
        return _report(error)
    return 0


def _report(error: Exception) -> int:
    try:
        sdk = this_sdk()
        name, verbose = sdk.file.command, is_on(sdk.setting("VERBOSE"))
    except SdkError:
        name, verbose = Path(__file__).parent.name, False
    if verbose:
        traceback.print_exc(file=sys.stderr)
    text = " ".join(str(error).split()) or type(error).__name__
    sys.stderr.write(f"{name}: {text}\n")
    return 2 if isinstance(error, ValueError) else 1


def _other_main(name: str) -> Callable[[list[str], Sdk], int]:
    if name == "test":
        from ._tests import main as run
    else:
        from ._doctor import main as run
    return run


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line; ``--help`` says more."""

    def error(self, message: str) -> NoReturn:
        """Say it and end with 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser(sdk: Sdk) -> argparse.ArgumentParser:
    about = f"{sdk.file.sdk} {sdk.file.version}, installed as Python packages."
    parser = Parser(prog=sdk.file.command, description=about, allow_abbrev=False)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name: str, run: Callable[[Sdk, argparse.Namespace], int | None], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        made.set_defaults(run=run)
        return made

    path = add("path", _path, "Print the path of an SDK folder; expands the devel package if it is installed.")
    which = path.add_mutually_exclusive_group(required=True)
    which.add_argument("--root", action="store_const", const="root", dest="which", help="the SDK's root")
    which.add_argument("--bin", action="store_const", const="bin", dest="which", help="the folder with programs")
    which.add_argument(
        "--cmake", action="store_const", const="cmake", dest="which", help="the folder for CMAKE_PREFIX_PATH"
    )
    init = add("init", _init, "Expand the devel package.")
    init.add_argument("--quiet", action="store_true", help="print nothing")
    init.add_argument(
        "--link-mode", choices=LINK_MODES, help="how to link its files to the files of the other packages"
    )
    add("repair", _repair, "Repair the expanded devel tree.")
    add("deinit", _deinit, "Remove the expanded devel tree.")
    commands.add_parser("test", help="Test the installed packages.", add_help=False)
    commands.add_parser("doctor", help="Report problems with this host.", add_help=False)
    add("targets", _targets, "Print the GPU targets that the installed packages support.")
    add("version", _version, "Print the SDK's version.")
    env = add("env", _env, "Print the environment variables for building against the SDK.")
    env.add_argument("--shell", choices=SHELLS, default="sh", help="default: sh")
    _add_select(add("select", _select, "Print the requirements to install on this host."))
    text = "Commands for projects that are built against the SDK."
    _add_framework(commands.add_parser("framework", help=text, description=text, allow_abbrev=False))
    return parser


def _add_select(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("extras", nargs="*", default=["libraries"], help="such as libraries and devel")
    parser.add_argument(
        "--for", action="append", dest="named", metavar="GPU", help="family or target to use instead of this host's"
    )
    parser.add_argument("--json", action="store_true", help="print all details as JSON")
    parser.add_argument("--explain", action="store_true", help="explain the choice on stderr")
    parser.add_argument("--lock", type=Path, metavar="FILE", help="write requirements with hashes, or pylock.toml")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--find-links", type=Path, metavar="DIR", help="folder that contains the files to lock")
    source.add_argument("--index-url", metavar="URL", help="simple index that contains the files to lock")


def _add_framework(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    init = actions.add_parser("init-file", help="Write a module that initializes the process.", allow_abbrev=False)
    init.add_argument("path", type=Path, help="file to write, or the folder of the project's package")
    init.add_argument(
        "--preload", metavar="A,B", help="short names of the libraries that the project needs; default: all"
    )
    init.add_argument(
        "--check-version", metavar="7.*", help="SDK version that the project needs; default: the installed version"
    )
    init.add_argument(
        "--fail-on-version-mismatch", action="store_true", help="raise an error instead of issuing a warning"
    )
    init.set_defaults(run=_init_file)
    text = "Print the requirements for the project's packages (PYTORCH_EXTRA_INSTALL_REQUIREMENTS)."
    required = actions.add_parser("requirement", help=text, description=text, allow_abbrev=False)
    required.add_argument("--extra", action="append", help="default: libraries")
    required.set_defaults(run=_requirement)


def _say(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def _note(sdk: Sdk, text: str) -> None:
    sys.stderr.write(f"{sdk.file.command}: {text}\n")


def _build_root(sdk: Sdk, *, needs_devel: bool = False) -> Path:
    """The root for a build: the devel tree, expanded if its package is installed; else the root package's folder."""
    from ._devel import expand

    devel = sdk.devel_package()
    if devel is not None and sdk.devel_module() is not None:
        return expand(sdk, quiet=True)
    hint = f": {sdk.install_hint([devel])}" if devel else ""
    if needs_devel:
        raise ModuleNotFoundError(f"the devel package, which provides the CMake files, is not installed{hint}")
    root, package = find_root(sdk)
    if devel is not None and package != "devel":
        _note(
            sdk,
            f"{devel.dist} is not installed, so this is the folder of {package}, which does not contain headers{hint}",
        )
    return root


def _path(sdk: Sdk, options: argparse.Namespace) -> None:
    below = {"root": "", "bin": sdk.file.bin, "cmake": sdk.file.cmake}[options.which]
    has_devel = sdk.devel_package() is not None
    _say(str(_build_root(sdk, needs_devel=options.which == "cmake" and has_devel) / below))


def _init(sdk: Sdk, options: argparse.Namespace) -> None:
    from ._devel import expand

    if options.link_mode:
        os.environ[sdk.variable("LINK_MODE")] = options.link_mode
    root = expand(sdk, quiet=options.quiet)
    if not options.quiet:
        _say(f"devel tree: {root}")


def _repair(sdk: Sdk, _options: argparse.Namespace) -> None:
    from ._devel import repair

    for each in repair(sdk) or ("no problems found",):
        _say(each)


def _deinit(sdk: Sdk, _options: argparse.Namespace) -> None:
    from ._devel import deinit

    for each in deinit(sdk) or ("no devel tree exists",):
        _say(each)


def _targets(sdk: Sdk, _options: argparse.Namespace) -> None:
    found = {target for package in sdk.installed() for target in package.targets}
    if not found:
        found = {target for targets in sdk.file.families.values() for target in targets}
        if found:
            _note(sdk, "no package with GPU code is installed; these are the targets for which packages exist")
    _say(";".join(sorted(found, key=lambda target: (len(target), target))))


def _version(sdk: Sdk, _options: argparse.Namespace) -> None:
    _say(sdk.file.version)


def _env(sdk: Sdk, options: argparse.Namespace) -> None:
    _say(render(build_environment(sdk, _build_root(sdk)), options.shell))


def _select(sdk: Sdk, options: argparse.Namespace) -> None:
    from ._select import select

    named = [name for text in options.named or () for name in split_list(text)]
    selection = select(sdk, options.extras, named=named)
    if options.explain:
        for reason in selection.reasons:
            _note(sdk, reason)
    if options.lock:
        _say(f"{_lock(sdk, options, selection)}: {len(selection.dists)} packages")
    elif options.find_links or options.index_url:
        raise ValueError("--find-links and --index-url need --lock")
    else:
        _say(json.dumps(selection.as_json(), indent=1) if options.json else selection.requirement)


def _lock(sdk: Sdk, options: argparse.Namespace, selection: Selection) -> Path:
    from . import _lock as locking

    place: Path = options.lock
    locking.check_lock_name(place)
    if options.find_links:
        files = locking.files_of_folder(options.find_links, selection.dists, sdk.file.version)
        source = f"--find-links {options.find_links.absolute()}"
    elif options.index_url:
        files = locking.files_of_index(options.index_url, selection.dists, sdk.file.version)
        source = f"--index-url {locking.without_password(options.index_url)}"
    else:
        raise ValueError("--lock needs --find-links DIR or --index-url URL")
    command = sdk.file.command
    if place.suffix == ".toml":
        text = locking.render_pylock(sdk.file.version, files, folder=place.absolute().parent, command=command)
    else:
        version, asked = sdk.file.version, selection.requirement
        text = locking.render_requirements(asked, version, files, source=source, command=command)
    return write_text(place, text)


def _init_file(sdk: Sdk, options: argparse.Namespace) -> None:
    from ._framework import init_module, place_of

    preload = split_list(options.preload) if options.preload is not None else list(sdk.file.preload_order)
    version = options.check_version or sdk.file.version
    text = init_module(sdk, preload, version, fail=options.fail_on_version_mismatch)
    _say(str(write_text(place_of(sdk, options.path), text)))


def _requirement(sdk: Sdk, options: argparse.Namespace) -> None:
    from ._framework import requirement

    _say(requirement(sdk, options.extra or ["libraries"]))
