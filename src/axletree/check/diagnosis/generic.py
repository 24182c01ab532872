"""Kinds that no table knows closer: what the shell, the kernel, Python or a test says, and what that always means."""

from __future__ import annotations

from axletree.check.diagnosis.kind import Kind

GENERIC_KINDS: tuple[Kind, ...] = (
    Kind(
        id="env/command-not-found",
        stage="env",
        specific=18,
        title="Command {command} not found",
        patterns=(
            r"^\S*(?:bash|zsh|ksh|sh): (?:line )?\d+: (?P<command>[^\s:]+): (?:command )?not found$",
            r"^(?:[\w./-]*sh: )?(?P<command>[\w.+/-]+): command not found$",
            r"FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<command>[\w+.-]+)'$",
            r"make(?:\[\d+\])?: (?P<command>[\w.+/-]+): (?:No such file or directory|Command not found)$",
            r"/usr/bin/env: '?(?P<command>[\w.+-]+)'?: No such file or directory",
        ),
        cause="{command} is not in any folder on PATH. Either it is not installed, or its environment is not active in "
        "the process that runs it.",
        fix="Check whether it is installed, then install it or put its folder first on PATH:\n"
        "$ type -a {command}\n"
        "$ find / -name '{command}' -perm /111 -not -path '/proc/*' 2>/dev/null",
        fix_in_stage="Install the package that provides it:\n$ apt-file search -x '/bin/{command}$'\n$ tools {command}",
        samples=("/bin/sh: 1: swig: not found\nninja: build stopped: subcommand failed.\n",),
        silent=("-- Could NOT find swig (missing: SWIG_EXECUTABLE)\n-- Configuring done\n",),
    ),
    Kind(
        id="runtime/crashed",
        stage="runtime",
        specific=16,
        title="A process crashed",
        patterns=(
            r"^(?:[^\n]*line \d+: +\d+ )?(?:Segmentation fault|Bus error|Illegal instruction)\b[^\n]*$",
            r"^(?:[^\n]*line \d+: +\d+ )?Floating point exception\b[^\n]*$",
            r"^Fatal Python error: (?P<what>[^\n]+)",
            r"died with <Signals\.(?P<signal>SIG(?:SEGV|BUS|ILL|ABRT|FPE)): \d+>",
            r"^terminate called (?:after|without)[^\n]*",
            r"^\S+: \S+:\d+: [^\n]*Assertion [`'][^\n]*' failed",
        ),
        cause="Native code accessed invalid memory, used an instruction that this CPU does not support, or failed a "
        "check. Usually two versions of the same library are loaded, or the code was built for a different CPU.",
        fix="Find the library that crashed:\n"
        "$ python -X faulthandler -c 'import MODULE'\n"
        "$ gdb -batch -ex run -ex bt --args COMMAND",
        samples=("a.out: a.c:3: main: Assertion `x == 3' failed.\nAborted (core dumped)\n",),
        silent=("test_handles_segmentation_fault ... ok\n\nRan 1 test in 0.001s\n\nOK\n",),
    ),
    Kind(
        id="runtime/test-failed",
        stage="runtime",
        specific=9,
        title="The test {test} failed",
        patterns=(
            r"^(?:FAILED|ERROR) (?P<test>\S+::\S+|\S+\.py)(?: - [^\n]+)?$",
            r"^(?P<test>\S+::\S+) (?:FAILED|ERROR) ",
            r"^(?:FAIL|ERROR): (?P<test>\w+) \([\w.]+\)",
            r"^\[  FAILED  \] (?P<test>[A-Z]\w*[./]\w\S*)",
            r"^\s*\d+ - (?P<test>\S+) \((?:Failed|SEGFAULT|Timeout|Subprocess aborted|ILLEGAL|Not Run)\)",
        ),
        cause="The test ran, but its result was not the expected one. Its own message is above.",
        fix="Run only this test:\n$ python -m pytest -x -vv {test}",
        samples=(
            (
                "E       assert 3 == 4\n\ntests/test_sum.py:4: AssertionError\n"
                "=========================== short test summary info ============================\n"
                "FAILED tests/test_sum.py::test_sum - assert 3 == 4\n"
                "========================= 1 failed, 2 passed in 0.05s ==========================\n"
            ),
        ),
        silent=("tests/test_sum.py::test_sum XFAIL\n1 xfailed in 0.10s\n",),
    ),
    Kind(
        id="runtime/exception",
        stage="runtime",
        specific=5,
        title="A Python program ended with {error}",
        patterns=(
            r"^Traceback \(most recent call last\):\n(?:[ \t]+[^\n]*\n)+?(?P<error>[A-Za-z_][\w.]*)(?::[^\n]*)?$",
        ),
        cause="Nothing in the program handled the exception. The last line of the traceback shows what happened, and "
        "the lines above it show where.",
        fix="",
        samples=(
            (
                "Traceback (most recent call last):\n"
                '  File "gen.py", line 9, in <module>\n'
                "    main()\n"
                "ValueError: shape (3,) expected\n"
            ),
        ),
        silent=("Traceback through the stack is on\n1 passed in 0.1s\n",),
    ),
)
"""Behind all others."""
