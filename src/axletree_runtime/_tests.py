"""The SDK's self tests, ``rocm-sdk test``: what is installed is tested, as the manifests in its packages say it is.

No list of an SDK's libraries is in here: an SDK of which a part is installed passes. Nothing uses a GPU.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from ._cli import Parser
from ._sdk import SdkError, write_text
from ._test_closure import closure_cases
from ._test_cmake import cmake_cases
from ._test_commands import command_cases
from ._test_devel import devel_cases
from ._test_gpu import gpu_cases
from ._test_install import install_cases
from ._test_load import load_cases, preload_cases, version_cases
from ._test_report import Result, as_json, as_junit, as_text
from ._testing import Bench, Case, Outcome, timed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._sdk import Sdk

GROUPS = ("install", "closure", "load", "gpu", "command", "preload", "version", "devel", "cmake")


def main(argv: Sequence[str], sdk: Sdk) -> int:
    """Run the tests.

    Returns:
        1 where one failed.

    Raises:
        ValueError: nothing is selected.
        SdkError: the SDK's own files can't be read, so that there is nothing to go by; or a report can't be written.
    """
    options = _parser(sdk).parse_args(list(argv))
    start = time.monotonic()
    bench = Bench(sdk, timeout=options.timeout)
    if not bench.present:
        wanted = [each for each in sdk.file.packages if each.kind == "core"] or list(sdk.file.packages[:1])
        raise SdkError(f"no package of {sdk.file.sdk} is installed: {sdk.install_hint(wanted)}")
    cases = select(all_cases(bench), options.select, sdk)
    if options.list:
        sys.stdout.write("".join(f"{case.name}\n" for case in cases))
        return 0
    results = run(bench, cases, options.jobs, verbose=options.verbose and not options.json)
    seconds = time.monotonic() - start
    if options.junit:
        write_text(options.junit, as_junit(sdk, results, seconds))
    if options.json:
        sys.stdout.write(json.dumps(as_json(sdk, results, seconds), indent=1) + "\n")
    else:
        sys.stdout.write(as_text(sdk, results, seconds))
    return int(any(each.status == "failed" for each in results))


def _parser(sdk: Sdk) -> argparse.ArgumentParser:
    text = "Test the installed packages, without using a GPU."
    end = (
        "EXPR is a comma-separated list of groups (load), packages (rocm-sdk-core or core) and name patterns "
        "('load/*/roc*'); a leading ! excludes."
    )
    parser = Parser(prog=f"{sdk.file.command} test", description=text, epilog=end, allow_abbrev=False)
    parser.add_argument("--select", action="append", default=[], metavar="EXPR", help="run only these tests")
    parser.add_argument("--list", action="store_true", help="print the names of the tests instead of running them")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="also write a JUnit report")
    parser.add_argument(
        "--jobs", type=_at_least_one, default=_processors(), metavar="N", help="number of tests to run in parallel"
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=300.0,
        metavar="S",
        help="time limit for each process, in seconds; default: 300",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print a line as each test ends")
    return parser


def _at_least_one(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid number of tests")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid number of seconds")
    return value


def _processors() -> int:
    usable = getattr(os, "sched_getaffinity", None)
    return min(8, len(usable(0)) if usable else os.cpu_count() or 1)


def all_cases(bench: Bench) -> list[Case]:
    """The tests of what is installed."""
    makers = (
        *(install_cases, closure_cases, load_cases, gpu_cases, command_cases, preload_cases, version_cases),
        *(devel_cases, cmake_cases),
    )
    return [case for make in makers for case in make(bench)]


def select(cases: Sequence[Case], expressions: Iterable[str], sdk: Sdk) -> list[Case]:
    """The tests that somebody asked for.

    Raises:
        ValueError: a part of an expression means none.
    """
    terms = [term for text in expressions for term in (part.strip() for part in text.split(",")) if term]
    dists = [name for each in sdk.file.packages for name in (each.dist, each.package)]
    wanted: list[list[Case]] = []
    unwanted: list[list[Case]] = []
    for term in terms:
        found = [case for case in cases if _means(term.lstrip("!").strip(), case, sdk)]
        if not found and term.lstrip("!").strip() not in (*GROUPS, *dists):
            known = sorted({*GROUPS, *dists, *(case.name for case in cases)})
            near = difflib.get_close_matches(term.lstrip("!"), known, n=3)
            hint = f" (near: {', '.join(near)})" if near else ""
            raise ValueError(f"--select {term}: no test, group or package matches{hint}; --list prints them all")
        (unwanted if term[:1] == "!" else wanted).append(found)
    chosen = {case.name for found in wanted for case in found} if wanted else {case.name for case in cases}
    chosen -= {case.name for found in unwanted for case in found}
    if not chosen:
        raise ValueError(f"--select {','.join(terms)} does not select any tests; --list prints them all")
    return [case for case in cases if case.name in chosen]


def _means(term: str, case: Case, sdk: Sdk) -> bool:
    """Whether a word is a test's group, its package by either name, its name, or a pattern of one of those."""
    packages = {case.dist, *(each.package for each in sdk.file.packages if each.dist == case.dist)}
    return any(fnmatch.fnmatchcase(name, term) for name in (case.group, case.name, case.subject, *packages))


def run(bench: Bench, cases: Sequence[Case], jobs: int, *, verbose: bool) -> list[Result]:
    """Run tests, several at once; their results in the order of the tests."""
    bench.prepare()
    results: dict[int, Result] = {}
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        waiting = {pool.submit(timed, case): number for number, case in enumerate(cases)}
        for done in as_completed(waiting):
            number = waiting[done]
            outcome, seconds = done.result()
            results[number] = _result(cases[number], outcome, seconds)
            if verbose:
                sys.stdout.write(f"{results[number].line()} ({seconds:.1f} s)\n")
                sys.stdout.flush()
    finally:
        bench.stop()
        for each in waiting:
            each.cancel()
        pool.shutdown()
    return [results[number] for number in range(len(cases))]


def _result(case: Case, outcome: Outcome, seconds: float) -> Result:
    return Result(case.name, case.group, case.dist, outcome.status, outcome.text, outcome.hint, seconds)
