"""Diagnosis of logs: how they end, what is the root cause among many errors, and what CI systems do to lines."""

from __future__ import annotations

import itertools
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.check.diagnosis.bringers import BRINGERS, decode_bringers
from axletree.check.diagnosis.decode import FAILURE_KINDS, decode_kinds
from axletree.check.diagnosis.engine import Diagnosis, Engine
from axletree.check.diagnosis.generic import GENERIC_KINDS
from axletree.check.diagnosis.literals import required_texts
from axletree.check.diagnosis.log import BinaryLogError, read_blocks
from axletree.core.errors import IntegrityError
from axletree.core.findings import worst
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.report.diagnosis import LogReport
from axletree.view.diagnosis import diagnosis_text
from support.logs import good_log

if TYPE_CHECKING:
    from collections.abc import Iterator

HEADER = "src/io.c:3:10: fatal error: zstd.h: No such file or directory"
NINJA = f"""\
[1/3] Building C object io.c.o
FAILED: io.c.o
/usr/bin/cc -c src/io.c -o io.c.o
{HEADER}
    3 | #include <zstd.h>
      |          ^~~~~~~~
compilation terminated.
[2/3] Building C object error.c.o
ninja: build stopped: subcommand failed.
"""


@cache
def engine() -> Engine:
    return Engine(
        read_shipped(FAILURE_KINDS), providers=read_shipped(LIBRARY_PROVIDERS), bringers=read_shipped(BRINGERS)
    )


def diagnose(text: str | bytes) -> Diagnosis:
    return engine().diagnose([text.encode() if isinstance(text, str) else text])


def report(text: str | bytes, name: str = "log") -> LogReport:
    found = engine().diagnose([text.encode() if isinstance(text, str) else text], name)
    return LogReport(name=name, outcome=found.outcome, findings=found.findings)


def rules(text: str | bytes) -> list[str]:
    return [finding.rule for finding in diagnose(text).findings]


# How it ends


def test_a_successful_log_has_no_finding() -> None:
    before, after = good_log()
    diagnosis = diagnose("\n".join([*before, *after, ""]))
    assert diagnosis.outcome.ending == "succeeded"
    assert not diagnosis.findings


@pytest.mark.parametrize(
    "text",
    [
        "make: [Makefile:3: clean] Error 1 (ignored)\n[100%] Built target x\n",
        "-- Performing Test HAVE_ERROR - Failed\n-- Build files have been written to: /b\n",
        "_configtest.c:1:10: fatal error: altivec.h: No such file or directory\nSuccessfully built numpy\n",
        "ModuleNotFoundError: No module named 'yaml', falling back to json\nSuccessfully installed tool-1.0\n",
        "fatal: not a git repository (or any of the parent directories): .git\n[9/9] Linking CXX shared library x\n",
        "test_a.py::test_error XFAIL\n=== 3 passed, 1 xfailed in 0.10s ===\n",
        "1/1 Test #1: error_test .....   Passed    0.01 sec\n\n100% tests passed, 0 tests failed out of 1\n",
        "E0101 00:00:00 probe.cc:1] retrying\nFinished: SUCCESS\n",
        "0 errors, 0 warnings\nJob succeeded\n",
    ],
)
def test_words_alone_are_no_error(text: str) -> None:
    diagnosis = diagnose(text)
    assert diagnosis.outcome.ending == "succeeded"
    assert [finding.rule for finding in diagnosis.findings if finding.severity == "error"] == []


def test_a_package_that_pip_made_in_the_end_did_not_fail() -> None:
    text = "  ERROR: Failed building wheel for tiny\nSuccessfully built tiny\nSuccessfully installed tiny-1.0\n"
    assert diagnose(text).outcome.ending == "succeeded"
    assert diagnose("  ERROR: Failed building wheel for tiny\nSuccessfully built other\n").outcome.ending == "failed"


@pytest.mark.parametrize(
    "last",
    [
        "/usr/bin/as: build/x.o: No space left on device",
        "OSError: [Errno 28] No space left on device",
        "src/x.c:3:1: error: unknown type name 'foo'",
        "ERROR: Could not write the archive",
        "fatal: the remote end hung up",
        "error: cannot write x\nsee the manual",
        "ValueError: no\n  more of it",
    ],
)
def test_a_log_whose_last_words_are_an_error_did_not_end_well(last: str) -> None:
    good = "[100%] Built target x\n" + "copying\n" * 9
    assert diagnose(good).outcome.ending == "succeeded"
    found = report(f"{good}{last}\n")
    assert found.outcome.ending == "unknown"
    assert "nothing failed" not in "\n".join(diagnosis_text([found], width=100))
    assert diagnose(f"{last}\n{good}").outcome.ending == "succeeded"


def test_a_version_that_pip_gave_up_for_another_did_not_fail() -> None:
    gave_up = (
        "  error: subprocess-exited-with-error\n\n  x Getting requirements to build wheel did not run successfully.\n"
        "  exit code: 1\n      Traceback (most recent call last):\n"
        "      ModuleNotFoundError: No module named 'torch'\n      [end of output]\n"
    )
    assert rules(gave_up)[0] == "env/module-missing-in-build"
    went_on = (
        gave_up + "WARNING: Discarding foo-2.0.tar.gz. Requirement cannot be installed\nSuccessfully installed foo-1\n"
    )
    assert diagnose(went_on).outcome.ending == "succeeded"
    assert rules(went_on) == []


def test_a_log_that_stops_in_the_middle_is_said_to_be_one() -> None:
    diagnosis = diagnose("[1/30] Building C object a.c.o\n[2/30] Building C object error.c.o\n")
    assert diagnosis.outcome.ending == "unfinished"
    assert [(finding.rule, finding.severity) for finding in diagnosis.findings] == [("log/unfinished", "warning")]
    assert diagnose("[29/30] Building\n[30/30] Linking\n").outcome.ending == "succeeded"


def test_an_unknown_failure_is_called_one_with_its_likeliest_lines() -> None:
    noise = [f"step {number} of the frobnicator" for number in range(300)]
    text = "\n".join(
        [*noise, "frob: error: the gizmo is not calibrated: 7", *noise, "make: *** [Makefile:9: frob] Error 4"]
    )
    found = diagnose(text).findings
    assert [finding.rule for finding in found] == ["log/unknown"]
    assert found[0].severity == "error"
    assert (found[0].lines[0].line, found[0].lines[0].text) == (
        301,
        "frob: error: the gizmo is not calibrated: 7",
    )


# Which is the root


def test_the_cause_comes_before_what_passes_it_on() -> None:
    found = diagnose(NINJA).findings
    assert found[0].rule == "compile/header-missing"
    assert found[0].lines[0].line == 4
    assert "libzstd-dev" in (found[0].fix or "")
    wrapped = NINJA + (
        "Traceback (most recent call last):\n"
        '  File "setup.py", line 9, in <module>\n'
        "    build()\n"
        "subprocess.CalledProcessError: Command '['ninja']' returned non-zero exit status 1.\n"
        "  ERROR: Failed building wheel for x\n"
    )
    assert rules(wrapped)[0] == "compile/header-missing"


def test_the_first_of_two_commands_that_failed_is_the_root() -> None:
    text = (
        "[1/9] Building C object a.c.o\nFAILED: a.c.o\ncc -c a.c\n"
        "a.c:7:5: error: 'frob' undeclared (first use in this function)\n"
        f"[2/9] Building C object b.c.o\nFAILED: b.c.o\ncc -c b.c\n{HEADER}\ncompilation terminated.\n"
        "ninja: build stopped: subcommand failed.\n"
    )
    assert rules(text)[0] == "compile/error"


def test_warnings_come_after_errors() -> None:
    text = "-- MAGMA not found. Compiling without MAGMA support\n-- Configuring done\n" + NINJA
    severities = [finding.severity for finding in diagnose(text).findings]
    assert severities == sorted(severities)
    assert severities[-1] == "warning"


def test_a_silent_downgrade_alone_is_a_warning() -> None:
    text = "CMake Warning at cmake/Dependencies.cmake:9 (message):\n  MKL could not be found.  Defaulting to Eigen\n"
    diagnosis = diagnose(text + "-- Configuring done\n-- Build files have been written to: /b\n")
    assert [finding.severity for finding in diagnosis.findings] == ["warning"]
    assert worst(diagnosis.findings) != "error"


# What surrounds lines

SURROUNDINGS = {
    "GitHub": lambda number, line: f"2026-01-01T10:00:{number % 60:02d}.1234567Z {line}",
    "gh run view": lambda number, line: f"build\tCompile\t2026-01-01T10:00:{number % 60:02d}.1234567Z {line}",
    "GitLab": lambda number, line: f"2026-01-01T10:00:00.000000Z 01O {line}",
    "Jenkins": lambda number, line: f"[2026-01-01T10:00:00.000Z] {line}",
    "Jenkins, elapsed": lambda number, line: f"00:01:{number % 60:02d}.345  {line}",
    "buildx": lambda number, line: f"#12 {number}.50 {line}",
    "GitHub and buildx": lambda number, line: f"2026-01-01T10:00:00.1234567Z #12 {number}.50 {line}",
    "rattler-build": lambda number, line: f" \N{BOX DRAWINGS LIGHT VERTICAL} \N{BOX DRAWINGS LIGHT VERTICAL} {line}",
    "pip": lambda number, line: f"      {line}",
    "colours": lambda number, line: f"\x1b[1m\x1b[31m{line}\x1b[0m\x1b[K",
    "CRLF": lambda number, line: f"{line}\r",
    "progress written over": lambda number, line: f" 10%\r 50%\r{line}",
    "torchrun": lambda number, line: f"[rank0]: {line}",
    "typographic": lambda number, line: re.sub(
        r"'(\w+)'", "\N{LEFT SINGLE QUOTATION MARK}\\1\N{RIGHT SINGLE QUOTATION MARK}", line
    ),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_surrounds_a_line_does_not_matter(name: str) -> None:
    lines = [SURROUNDINGS[name](number, line) for number, line in enumerate(NINJA.split("\n"))]
    found = diagnose("\n".join(lines)).findings
    assert found[0].rule == "compile/header-missing"
    assert found[0].lines[0].line == 4
    assert found[0].lines[0].text.strip() == HEADER


@given(st.data())
def test_the_pieces_in_which_a_log_comes_do_not_matter(data: st.DataObject) -> None:
    raw = (
        "".join(
            f"line {number} \N{LEFT SINGLE QUOTATION MARK}a\N{RIGHT SINGLE QUOTATION MARK}\r\n" for number in range(9)
        )
        + NINJA
    ).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=8)))
    pieces = [raw[low:high] for low, high in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert [block.lines for block in read_blocks(pieces)] == [block.lines for block in read_blocks([raw])]


def test_numbers_are_those_of_the_file_in_logs_of_many_blocks() -> None:
    before = [f"[{number}/99999] Building CXX object {'x' * 300}.o" for number in range(1, 12001)]
    found = diagnose("\n".join([*before, NINJA])).findings
    assert found[0].lines[0].line == 12004


def test_a_match_may_lie_across_the_border_of_two_blocks() -> None:
    message = (
        b"CMake Error at x.cmake:1 (find_package):\n  Compatibility with CMake < 3.5 has been\n  removed from CMake.\n"
    )
    for cut in range(1, len(message), 5):
        filler = b"x" * ((1 << 20) - cut - 1) + b"\n"
        found = diagnose(filler + message + b"-- Configuring incomplete, errors occurred!\n").findings
        assert found[0].rule == "configure/cmake-policy-removed", cut


def test_a_line_of_megabytes_is_one_line() -> None:
    found = diagnose("x" * (5 << 20) + "\n" + NINJA).findings
    assert (found[0].rule, found[0].lines[0].line) == ("compile/header-missing", 5)


def test_utf_16_is_read() -> None:
    assert rules(NINJA.encode("utf-16"))[0] == "compile/header-missing"


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"\x1f\x8b\x08\x00", "zcat"),
        (b"\x7fELF\x02", "ELF"),
        (b"\x28\xb5\x2f\xfd", "zstdcat"),
        (b"\x00\x01" * 99, "a binary file"),
    ],
)
def test_what_is_no_text_is_refused(start: bytes, words: str) -> None:
    with pytest.raises(BinaryLogError, match=words):
        diagnose(start)


# What is said of names


def test_a_library_says_who_brings_it() -> None:
    found = diagnose(
        "ImportError: libcufile.so.0: cannot open shared object file: No such file or directory\n"
    ).findings
    assert "libcufile.so.0" in found[0].cause
    plain = diagnose(
        "./x: error while loading shared libraries: libsnappy9.so.1: "
        "cannot open shared object file: No such file or directory\n"
    )
    assert "libsnappy9.so.1" in plain.findings[0].cause


def test_a_mangled_symbol_is_made_readable_and_its_string_told() -> None:
    symbol = "_ZN3lib4openERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
    found = diagnose(f"ImportError: /e/lib.so: undefined symbol: {symbol}\n").findings
    assert "lib::open(std::__cxx11::basic_string<char" in found[0].cause
    assert "C++11 ABI" in found[0].cause


def test_where_the_users_code_asks_for_a_template_is_shown() -> None:
    text = (
        "/usr/include/c++/12/bits/stl_map.h:529:32:   required from 'std::map<K, int>'\n"
        "t.cpp:2:48:   required from here\n"
        "/usr/include/c++/12/bits/stl_function.h:408:20: error: no match for 'operator<'\n"
        "make: *** [t.o] Error 1\n"
    )
    assert [line.line for line in diagnose(text).findings[0].lines] == [2, 3]


# Text and JSON


def test_findings_say_where_in_which_log() -> None:
    root = report(NINJA, "b.log").findings[0]
    assert root.where == "b.log:4"
    assert [(line.line, line.text) for line in root.lines[:1]] == [(4, HEADER)]
    unknown = report("frob: error: the gizmo is gone\nmake: *** [frob] Error 4\n", "b.log").findings[0]
    assert unknown.where == "b.log"


def test_the_text_has_the_root_first() -> None:
    lines = list(diagnosis_text([report(NINJA, "a.log")], width=80))
    assert lines[0].startswith("a.log: something failed (line 2 of 9: FAILED")
    assert lines[2].startswith("error a.log:4: ")
    assert lines[2].endswith(" [compile/header-missing]")
    assert f"      4 | {HEADER}" in lines
    assert "           $ apt-get install libzstd-dev" in lines
    assert all(len(line) <= 80 for line in lines if "$" not in line and "|" not in line and "[" not in line)


def test_text_of_a_log_can_not_steer_the_terminal() -> None:
    found = report(f"a\x1b]0;owned\x07b\x9b31m{HEADER}\nmake: *** [x] Error 1\n", "\x1b[2Jx")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", "\n".join(diagnosis_text([found], width=80)))


# Kinds


def test_generic_kinds_are_found_and_silent() -> None:
    for kind in GENERIC_KINDS:
        for text in kind.samples:
            assert kind.id in rules(text), kind.id
        for text in kind.silent:
            assert kind.id not in rules(text), kind.id


def test_all_that_is_wrong_with_kinds_is_told_at_once() -> None:
    kind = """
[[kind]]
id = "link/x"
stage = "compile"
title = "x"
patterns = ['(', 'a.b']
cause = "x"
fix = "{gone}"
samples = ["x"]
"""
    with pytest.raises(IntegrityError) as caught:
        decode_kinds((kind + kind.replace("'(', ", "")).encode(), file="link.toml")
    assert len(caught.value.problems) == 7


@pytest.mark.parametrize(
    "text", ['headers = { "zlib.h" = ["zlib1g-dev"] }', 'symbols = [["(", "torch"]]', "packages = {}"]
)
def test_a_table_of_packages_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(IntegrityError, match=r"the file is not a valid table of packages") as caught:
        decode_bringers(text.encode(), file="bringers.toml")
    assert caught.value.problems[0].file == "bringers.toml"


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("abc", (("abc",),)),
        (r"abc\.d", (("abc.d",),)),
        ("ab?cde", (("cde",),)),
        ("abc+de", (("abc",),)),
        ("(?:abc|defg)xyzw", (("xyzw",), ("abc", "defg"))),
        ("abc|de", ()),
        ("(?P<name>long text) x", (("long text",),)),
        (r"[]abc]def\s+ghi", (("ghi",), ("def",))),
        ("(abc)?", ()),
        ("(?!no)yes(?=later)", (("yes",),)),
        (r"(?i:WORD)\b", (("WORD",),)),
        ("(a{2,3}bcd){0,1}xyz", (("xyz",),)),
    ],
)
def test_texts_that_a_match_must_hold(pattern: str, texts: tuple[tuple[str, ...], ...]) -> None:
    re.compile(pattern)
    assert required_texts(pattern) == texts


@given(st.data())
def test_a_match_holds_the_texts_that_it_must(data: st.DataObject) -> None:
    patterns = [
        pattern
        for kind in read_shipped(FAILURE_KINDS)
        for pattern in kind.patterns
        if "(?" not in pattern.replace("(?:", "(")
    ]
    pattern = data.draw(st.sampled_from(patterns))
    text = data.draw(st.from_regex(re.compile(pattern)))
    assert all(any(word in text for word in choice) for choice in required_texts(pattern))


def test_a_last_word_of_an_error_outweighs_what_went_well_before() -> None:
    text = "Successfully built x-1.0-py3-none-any.whl\nchecking files\nerror: cmake/x.cmake:7: is no CMake file\n"
    diagnosis = diagnose(f"{text}  hint: see the log\n")
    assert diagnosis.outcome.ending == "unknown"
    assert diagnosis.findings[0].lines[0].text == "error: cmake/x.cmake:7: is no CMake file"
    assert not diagnose(f"error: x is no CMake file\n{text.partition('checking')[0]}").findings


@pytest.mark.parametrize(
    ("line", "library"),
    [
        ("/usr/bin/ld.bfd: cannot find -lzork: No such file or directory", "zork"),
        ("/usr/bin/ld.bfd: cannot find -l:libzork.so.1: No such file or directory", "libzork.so.1"),
        ("/usr/bin/ld: cannot find -lzork", "zork"),
        ("/usr/bin/ld.bfd: cannot find /x/libzork.a: No such file or directory", "/x/libzork.a"),
        ("/usr/bin/ld.gold: error: cannot find -lzork", "zork"),
        ("/usr/bin/ld.gold: error: cannot find libzork.so.1", "libzork.so.1"),
        ("/usr/bin/ld.gold: error: cannot open /x/libzork.a: No such file or directory", "/x/libzork.a"),
        ("ld.lld: error: unable to find library -lzork", "zork"),
        ("ld.lld: error: unable to find library -l:libzork.so.1", "libzork.so.1"),
        ("ld.lld: error: cannot open zork.o: No such file or directory", "zork.o"),
        ("mold: fatal: library not found: zork", "zork"),
        ("mold: fatal: cannot open /x/libzork.a: No such file or directory", "/x/libzork.a"),
        ("ld: library not found for -lzork", "zork"),
    ],
)
def test_the_library_that_a_linker_misses(line: str, library: str) -> None:
    root = diagnose(f"{line}\ncollect2: error: ld returned 1 exit status\n").findings[0]
    assert root.rule == "link/library-not-found"
    assert root.cause.startswith(f"The library {library} is not in any folder that the linker searches")


LISTS = re.compile(r"(?:ldd|ls|grep|find|readelf|nm|type|ldconfig -p|cat|strings|env|python -m pip (?:list|show)) ")
PURPOSE = re.compile(r"(?i)\b(?:to|if|check|find|look|search|then) [^.]*:$")


def advice() -> Iterator[tuple[str, str, list[str]]]:
    """(kind, line of text, the commands that follow it) of all fixes."""
    for kind in read_shipped(FAILURE_KINDS):
        lines = kind.fix.strip().splitlines()
        for number, line in enumerate(lines):
            commands = list(itertools.takewhile(lambda each: each.startswith("$ "), lines[number + 1 :]))
            if commands and not line.startswith("$ "):
                yield kind.id, line, [each.removeprefix("$ ") for each in commands]


def test_commands_that_only_list_are_called_that() -> None:
    wrong = [
        (kind, line)
        for kind, line, commands in advice()
        if all(LISTS.match(each) and "xargs" not in each and "-exec" not in each for each in commands)
        and not PURPOSE.search(line.rpartition(". ")[2])
    ]
    assert wrong == []


def test_another_torch_replaces_the_one_that_is_installed() -> None:
    installs = [each for _, _, commands in advice() for each in commands if "pip install" in each and "/whl/" in each]
    assert len(installs) > 5
    assert [each for each in installs if "--force-reinstall" not in each] == []


@pytest.mark.parametrize(
    "kind", ["configure/tool-entry-broken", "configure/cmake-missing", "configure/build-program-missing"]
)
def test_tools_are_installed_where_an_isolated_build_finds_them(kind: str) -> None:
    fix = next(each.fix for each in read_shipped(FAILURE_KINDS) if each.id == kind)
    assert "`requires` in [build-system]" in fix.partition("$ ")[0]


def test_an_old_driver_gets_a_build_that_it_can_run() -> None:
    fix = next(
        each.fix for each in read_shipped(FAILURE_KINDS) if "cudaGetDeviceCount returned 35" in "".join(each.samples)
    ).splitlines()
    assert any("only CUDA 11" in line and "/whl/cu118" in follows for line, follows in itertools.pairwise(fix))
