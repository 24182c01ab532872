"""The lines of a log that name the root cause, in failures as real tools tell them and real builds wrap them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Engine, cause_lines, error_line
from axletree.check.diagnosis.log import BinaryLogError
from axletree.host.shipped_data import read_shipped

if TYPE_CHECKING:
    from collections.abc import Iterable

GXX = """\
In file included from csrc/scatter.cpp:2:
csrc/scatter.h:1:21: error: 'undefined_t' does not name a type
    1 | struct A { int f(); undefined_t y; };
      |                     ^~~~~~~~~~~
csrc/scatter.cpp: In function 'int main()':
csrc/scatter.cpp:3:35: error: 'class std::vector<int>' has no member named 'push_bak'; did you mean 'push_back'?
    3 | int main(){ std::vector<int> v; v.push_bak(1); return x; }
      |                                   ^~~~~~~~
"""
GXX_CAUSE = (
    "csrc/scatter.h:1:21: error: 'undefined_t' does not name a type",
    "    1 | struct A { int f(); undefined_t y; };",
    "      |                     ^~~~~~~~~~~",
    "csrc/scatter.cpp: In function 'int main()':",
    "csrc/scatter.cpp:3:35: error: 'class std::vector<int>' has no member named 'push_bak'; did you mean 'push_back'?",
    "    3 | int main(){ std::vector<int> v; v.push_bak(1); return x; }",
)

LOGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "g++ behind ninja, torch's extension builder, setuptools and PEP 517": (
        f"""\
running bdist_wheel
/venv/lib/setuptools/_distutils/cmd.py:90: SetuptoolsDeprecationWarning: setup.py install is deprecated.
SetuptoolsDeprecationWarning: setup.py install is deprecated.
!!
        Please avoid running ``setup.py`` directly.
!!
  self.initialize_options()
building 'torch_scatter._scatter_cpu' extension
[1/3] c++ -MMD -c csrc/version.cpp -o build/version.o -Werror=return-type
csrc/version.cpp:9: warning: unused variable 'error' [-Wunused-variable]
[2/3] c++ -MMD -c csrc/scatter.cpp -o build/scatter.o
FAILED: build/scatter.o
c++ -MMD -c csrc/scatter.cpp -o build/scatter.o
{GXX}[3/3] c++ -c csrc/other.cpp -o build/other.o
ninja: build stopped: subcommand failed.
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 2595, in _run_ninja_build
    subprocess.run(
  File "/usr/lib/python3.11/subprocess.py", line 571, in run
    raise CalledProcessError(retcode, process.args,
subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/pyproject_hooks/_in_process/_in_process.py", line 389, in <module>
    main()
RuntimeError: Error compiling objects for extension
error: the build backend failed with exit code 1
""",
        GXX_CAUSE,
    ),
    "g++ behind plain setuptools": (
        f"g++ -fPIC -c csrc/scatter.cpp\n{GXX}error: command '/usr/bin/g++' failed with exit code 1\n",
        GXX_CAUSE,
    ),
    "g++ inside pip's frame": (
        """\
  error: subprocess-exited-with-error

  \u00d7 Building wheel for x (pyproject.toml) did not run successfully.
  \u2502 exit code: 1
  \u2570\u2500> [14 lines of output]
      running build_ext
      g++ -c x.cpp -o x.o
      x.cpp:2:10: fatal error: torch/extension.h: No such file or directory
          2 | #include <torch/extension.h>
            |          ^~~~~~~~~~~~~~~~~~~
      compilation terminated.
      error: command '/usr/bin/g++' failed with exit code 1
      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for x
ERROR: Failed to build installable wheels for some pyproject.toml based projects (x)
""",
        (
            "      x.cpp:2:10: fatal error: torch/extension.h: No such file or directory",
            "          2 | #include <torch/extension.h>",
            "            |          ^~~~~~~~~~~~~~~~~~~",
        ),
    ),
    "a warning that is an error": (
        """\
x.cpp:3:7: error: unused variable 'n' [-Werror=unused-variable]
x.cpp:3:9: error: unused variable 'm' [-Werror=unused-variable]
cc1plus: all warnings being treated as errors
make[2]: *** [CMakeFiles/x.dir/build.make:76: CMakeFiles/x.dir/x.cpp.o] Error 1
make[1]: *** [CMakeFiles/Makefile2:83: CMakeFiles/x.dir/all] Error 2
make: *** [Makefile:91: all] Error 2
""",
        (
            "x.cpp:3:7: error: unused variable 'n' [-Werror=unused-variable]",
            "x.cpp:3:9: error: unused variable 'm' [-Werror=unused-variable]",
            "cc1plus: all warnings being treated as errors",
        ),
    ),
    "a compiler that does not know an option": (
        "cc1plus: error: bad value 'znver9' for '-march=' switch\nerror: command 'c++' failed with exit code 1\n",
        ("cc1plus: error: bad value 'znver9' for '-march=' switch",),
    ),
    "a missing compiler": (
        "building 'x' extension\ng++ -c x.c\nerror: command 'g++' failed: No such file or directory\n",
        ("error: command 'g++' failed: No such file or directory",),
    ),
    "the linker: undefined reference": (
        """\
[2/2] Linking CXX executable app
FAILED: app
: && /usr/bin/c++ main.o -o app && :
/usr/bin/ld: main.o: in function `main':
main.cpp:(.text+0x5): undefined reference to `scatter(int)'
collect2: error: ld returned 1 exit status
ninja: build stopped: subcommand failed.
""",
        ("main.cpp:(.text+0x5): undefined reference to `scatter(int)'",),
    ),
    "the linker: no such library": (
        "/usr/bin/ld: cannot find -lnosuch: No such file or directory\ncollect2: error: ld returned 1 exit status\n",
        ("/usr/bin/ld: cannot find -lnosuch: No such file or directory",),
    ),
    "lld": (
        """\
ld.lld: error: undefined symbol: scatter(int)
>>> referenced by main.cpp
clang++: error: linker command failed with exit code 1 (use -v to see invocation)
""",
        ("ld.lld: error: undefined symbol: scatter(int)", ">>> referenced by main.cpp"),
    ),
    "CMake": (
        """\
-- The CXX compiler identification is GNU 14.2.0
-- Performing Test HAS_ERROR_ATTRIBUTE - Failed
CMake Error at CMakeLists.txt:3 (find_package):
  By not providing "FindTorch.cmake" in CMAKE_MODULE_PATH this project has
  asked CMake to find a package configuration file provided by "Torch", but
  CMake did not find one.

  Could not find a package configuration file provided by "Torch" with any
-- Configuring incomplete, errors occurred!

*** CMake configuration failed
""",
        (
            "CMake Error at CMakeLists.txt:3 (find_package):",
            '  By not providing "FindTorch.cmake" in CMAKE_MODULE_PATH this project has',
            '  asked CMake to find a package configuration file provided by "Torch", but',
            "  CMake did not find one.",
        ),
    ),
    "make: nothing makes a file": (
        "make[1]: *** No rule to make target 'x.c', needed by 'x.o'.  Stop.\nmake: *** [Makefile:2: all] Error 2\n",
        ("make[1]: *** No rule to make target 'x.c', needed by 'x.o'.  Stop.",),
    ),
    "nvcc": (
        """\
[1/2] nvcc -c csrc/scatter.cu
FAILED: csrc/scatter.o
csrc/scatter.cu(12): error: identifier "atomAdd" is undefined
      atomAdd(out, 1.0);
      ^

1 error detected in the compilation of "csrc/scatter.cu".
ninja: build stopped: subcommand failed.
""",
        (
            'csrc/scatter.cu(12): error: identifier "atomAdd" is undefined',
            "      atomAdd(out, 1.0);",
            "      ^",
        ),
    ),
    "nvcc: architecture": (
        "nvcc fatal   : Unsupported gpu architecture 'compute_20'\nninja: build stopped: subcommand failed.\n",
        ("nvcc fatal   : Unsupported gpu architecture 'compute_20'",),
    ),
    "ptxas": (
        "ptxas fatal   : Unresolved extern function '_Z3foov'\nerror: command 'nvcc' failed with exit code 255\n",
        ("ptxas fatal   : Unresolved extern function '_Z3foov'",),
    ),
    "rustc": (
        "error[E0432]: unresolved import `pyo3`\n --> src/lib.rs:1:5\n\nerror: aborting due to 1 previous error\n",
        ("error[E0432]: unresolved import `pyo3`", " --> src/lib.rs:1:5"),
    ),
    "pytest": (
        """\
$ /bin/bash -euo pipefail -c python -m pytest -q test_x.py
.F                                                                       [100%]
=================================== FAILURES ===================================
__________________________________ test_sum ____________________________________

    def test_sum():
>       assert scatter_sum(x) == 42
E       assert 41 == 42
E        +  where 41 = scatter_sum(tensor([1]))

test_x.py:9: AssertionError
=========================== short test summary info ============================
FAILED test_x.py::test_sum - assert 41 == 42
1 failed, 1 passed in 0.02s
error: the commands of the test failed with exit code 1
""",
        (
            "E       assert 41 == 42",
            "E        +  where 41 = scatter_sum(tensor([1]))",
            "FAILED test_x.py::test_sum - assert 41 == 42",
        ),
    ),
    "pytest: an extension that does not load": (
        """\
ImportError while importing test module '/w/test_x.py'.
test_x.py:1: in <module>
    import torch_scatter
E   ImportError: /v/_scatter_cpu.so: undefined symbol: _ZN3c105ErrorE
=========================== short test summary info ============================
ERROR test_x.py
""",
        ("E   ImportError: /v/_scatter_cpu.so: undefined symbol: _ZN3c105ErrorE",),
    ),
    "pytest: a module that a test file needs": (
        """\
==================================== ERRORS ====================================
_______________________ ERROR collecting tests/test_x.py _______________________
ImportError while importing test module '/w/tests/test_x.py'.
tests/test_x.py:1: in <module>
    import einops
E   ModuleNotFoundError: No module named 'einops'
=========================== short test summary info ============================
ERROR tests/test_x.py
!!!!!!!!!!!!!!!!!!!! Interrupted: 1 error during collection !!!!!!!!!!!!!!!!!!!!
=============================== 1 error in 0.10s ===============================
""",
        ("E   ModuleNotFoundError: No module named 'einops'", "ERROR tests/test_x.py"),
    ),
    "pytest: a file that it cannot read": (
        """\
==================================== ERRORS ====================================
__________________________ ERROR collecting test_c.py __________________________
E     File "/w/test_c.py", line 1
E       x = (
E           ^
E   SyntaxError: '(' was never closed
=========================== short test summary info ============================
ERROR test_c.py
=============================== 1 error in 9.38s ===============================
""",
        (
            'E     File "/w/test_c.py", line 1',
            "E       x = (",
            "E           ^",
            "E   SyntaxError: '(' was never closed",
            "ERROR test_c.py",
        ),
    ),
    "pytest: the setup of a test": (
        """\
==================================== ERRORS ====================================
_________________________ ERROR at setup of Some.test_a ________________________
file /w/test_a.py, line 1
  def test_a(nofix):
E       fixture 'nofix' not found
>       use 'pytest --fixtures [testpath]' for help on them.

/w/test_a.py:1
=========================== short test summary info ============================
ERROR test_a.py::Some::test_a[1-2]
=============================== 1 error in 9.00s ===============================
""",
        ("E       fixture 'nofix' not found", "ERROR test_a.py::Some::test_a[1-2]"),
    ),
    "unittest": (
        """\
======================================================================
FAIL: test_sum (test_x.Sums.test_sum)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/w/test_x.py", line 5, in test_sum
    self.assertEqual(scatter_sum(x), 42)
AssertionError: 41 != 42
""",
        (
            "FAIL: test_sum (test_x.Sums.test_sum)",
            '  File "/w/test_x.py", line 5, in test_sum',
            "    self.assertEqual(scatter_sum(x), 42)",
            "AssertionError: 41 != 42",
        ),
    ),
    "a crash": (
        "Fatal Python error: Segmentation fault\n\nThread 0x00007f (most recent call first):\n",
        ("Fatal Python error: Segmentation fault",),
    ),
    "a Python traceback": (
        """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/w/setup.py", line 3, in <module>
    import torch
ModuleNotFoundError: No module named 'torch'
error: the build backend failed with exit code 1
""",
        ("ModuleNotFoundError: No module named 'torch'",),
    ),
    "an exception behind another": (
        """\
KeyError: 'CUDA_HOME'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
OSError: CUDA_HOME environment variable is not set.
""",
        ("OSError: CUDA_HOME environment variable is not set.",),
    ),
    "an exception behind another that nothing is known of": (
        """Traceback (most recent call last):
  File "/w/setup.py", line 3, in <module>
    flavour = table["flavour"]
KeyError: 'flavour'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/w/setup.py", line 5, in <module>
    raise ValueError("no flavour")
ValueError: no flavour
error: the build backend failed with exit code 1
""",
        ("KeyError: 'flavour'",),
    ),
    "a compiler that was killed for its memory": (
        """\
[1/9] c++ -c a.cpp
a.cpp:1:1: error: 'x' does not name a type
[2/9] c++ -c b.cpp
c++: fatal error: Killed signal terminated program cc1plus
compilation terminated.
ninja: build stopped: subcommand failed.
""",
        ("c++: fatal error: Killed signal terminated program cc1plus",),
    ),
    "a linker that was killed for its memory": (
        "collect2: fatal error: ld terminated with signal 9 [Killed]\ncompilation terminated.\n",
        ("collect2: fatal error: ld terminated with signal 9 [Killed]",),
    ),
    "clang that was killed for its memory": (
        "clang++: error: unable to execute command: Killed\nclang++: error: clang frontend command failed\n",
        (
            "clang++: error: unable to execute command: Killed",
            "clang++: error: clang frontend command failed",
        ),
    ),
    "a GPU without memory": (
        "E   torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB.\n",
        ("E   torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB.",),
    ),
    "a full disk": (
        """\
x.cpp:1:1: error: something else
/tmp/ccXyz.s: Assembler messages:
/tmp/ccXyz.s: Fatal error: can't write 12 bytes to section .text: 'No space left on device'
OSError: [Errno 28] No space left on device: 'build/lib'
""",
        (
            "/tmp/ccXyz.s: Fatal error: can't write 12 bytes to section .text: 'No space left on device'",
            "OSError: [Errno 28] No space left on device: 'build/lib'",
        ),
    ),
    "a patch that does not fit": (
        """\
$ /usr/bin/patch -p1 --batch --forward --fuzz=0 --input=/w/0001.patch
patching file setup.py
patching file csrc/scatter.cpp
Hunk #2 FAILED at 41.
1 out of 2 hunks FAILED
--- csrc/scatter.cpp
+++ csrc/scatter.cpp
@@ -41,1 +41,1 @@
error: patch fix.patch does not apply
""",
        (
            "patching file csrc/scatter.cpp",
            "Hunk #2 FAILED at 41.",
            "1 out of 2 hunks FAILED",
            "--- csrc/scatter.cpp",
            "+++ csrc/scatter.cpp",
            "@@ -41,1 +41,1 @@",
        ),
    ),
    "pip: no such version": (
        """\
Looking in indexes: https://files.example/simple
ERROR: Could not find a version that satisfies the requirement torch==9.9 (from versions: 2.12.0, 2.13.0)
ERROR: No matching distribution found for torch==9.9
""",
        (
            "ERROR: Could not find a version that satisfies the requirement torch==9.9 (from versions: 2.12.0, 2.13.0)",
            "ERROR: No matching distribution found for torch==9.9",
        ),
    ),
    "pip: requirements that contradict": (
        """\
ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.

The conflict is caused by:
    a 1 depends on c==1
    b 2 depends on c==2

To fix this you could try to:
""",
        (
            "ERROR: Cannot install a==1 and b==2 because these package versions have conflicting dependencies.",
            "The conflict is caused by:",
            "    a 1 depends on c==1",
            "    b 2 depends on c==2",
        ),
    ),
    "uv": (
        """\
Using Python 3.11.7 environment at: /venv
  \u00d7 No solution found when resolving dependencies:
  \u2570\u2500\u25b6 Because there is no version of torch==9.9 and you require torch==9.9,
      we can conclude that your requirements are unsatisfiable.
""",
        (
            "  \u00d7 No solution found when resolving dependencies:",
            "  \u2570\u2500\u25b6 Because there is no version of torch==9.9 and you require torch==9.9,",
            "      we can conclude that your requirements are unsatisfiable.",
        ),
    ),
    "the shell": (
        "$ /bin/bash -c make\n/bin/bash: line 1: make: command not found\nerror: stage x failed with exit code 127\n",
        ("/bin/bash: line 1: make: command not found",),
    ),
    "configure": (
        "checking for gcc... no\nconfigure: error: in '/w':\nconfigure: error: no acceptable C compiler found\n",
        ("configure: error: in '/w':", "configure: error: no acceptable C compiler found"),
    ),
}

GOOD = """\
$ /bin/bash -euo pipefail -c cmake --build .
-- Looking for pthread.h - not found
-- Performing Test COMPILER_SUPPORTS_ERROR_FLAG - Failed
[1/2] c++ -Werror -c csrc/error.cpp -o error.o
csrc/error.cpp:3:5: warning: 'void error()' is deprecated [-Wdeprecated-declarations]
[2/2] Linking CXX shared library liberror.so
DeprecationWarning: this is only a warning
test_errors.py::test_error_message PASSED
test_errors.py::test_out_of_memory PASSED
36 passed, 0 failed, 0 errors in 3.2s
Successfully built x-1.0-py3-none-any.whl
"""


@cache
def engine() -> Engine:
    return Engine(read_shipped(FAILURE_KINDS))


def root_cause(lines: Iterable[str]) -> tuple[str, ...]:
    text = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    try:
        return cause_lines(engine().diagnose([text.encode()]))
    except BinaryLogError:
        return ()


@pytest.mark.parametrize("name", LOGS)
def test_the_line_that_names_the_cause(name: str) -> None:
    log, cause = LOGS[name]
    assert root_cause(log.splitlines(keepends=True)) == cause


@pytest.mark.parametrize("name", LOGS)
def test_lines_may_end_as_on_windows(name: str) -> None:
    log, cause = LOGS[name]
    assert root_cause(line + "\r\n" for line in log.splitlines()) == cause


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("a\nx.c:3:10: fatal error: mkl.h: No such file or directory\nmake: *** [x.o] Error 1\n", "x.c:3:10: fatal "),
        ("a\nb\ngizmo: error: no gizmo\nc\n", "gizmo: error: no gizmo"),
        ("checking for missing files\ngizmo: error: no gizmo\nFAILED: gizmo\n", "gizmo: error: no gizmo"),
        ("a\nb\nc\n", None),
    ],
)
def test_the_one_line_that_names_the_error(log: str, line: str | None) -> None:
    found = error_line(engine().diagnose([log.encode()]))
    assert found == line if line is None else (found or "").startswith(line)


def test_a_log_of_something_that_works_has_none() -> None:
    assert root_cause(GOOD.splitlines(keepends=True)) == ()
    assert root_cause([]) == ()


def test_colours_and_links_are_left_out() -> None:
    log = [
        "\x1b[01m\x1b[Kx.h:1:21:\x1b[m\x1b[K \x1b[01;31m\x1b[Kerror: \x1b[m\x1b[Kunknown \x1b[01m\x1b[Kt\x1b[m\x1b[K\n",
        "  cause \x1b]8;;https://gcc.example/-Wall\x1b\\-Wall\x1b]8;;\x1b\\ and \x1b]8;;x\x07y\x1b]8;;\x07\n",
    ]
    assert root_cause(log) == ("x.h:1:21: error: unknown t", "  cause -Wall and y")


def test_of_a_line_that_was_written_over_the_last_state_counts() -> None:
    assert root_cause(["10%\r55%\rerror: the connection was lost\r\n"]) == ("error: the connection was lost",)


def test_a_command_is_no_cause() -> None:
    command = "bash -c test -e gizmo || { echo 'x.cpp:1:1: error: no gizmo'; exit 1; }"
    for mark in ("$ ", "+ "):
        assert root_cause([mark + command, "x.cpp:1:1: error: no gizmo"]) == ("x.cpp:1:1: error: no gizmo",)
    assert root_cause(["$ " + command, "5 tests left out"]) == ()


def test_of_several_the_first_counts() -> None:
    log = ["a.cpp:1:1: error: first", "ninja: build stopped: x", "b.cpp:2:2: error: second"]
    assert root_cause(log) == ("a.cpp:1:1: error: first",)


def test_what_is_shown_is_short() -> None:
    cause = root_cause(["x.cpp:1:1: error: " + "very long " * 1000, *(f"  line {number}" for number in range(100))])
    assert len(cause) == 6
    assert max(map(len, cause)) == 400


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=80)))
def test_any_text_is_read(lines: list[str]) -> None:
    cause = root_cause(lines)
    assert len(cause) <= 6
    assert not [letter for line in cause for letter in line if letter != "\t" and category(letter) == "Cc"]


def test_nothing_in_a_log_can_steer_the_terminal() -> None:
    assert root_cause(["error: a\x1b[\x9b2Jb\x07c\td\x00\n"]) == ("error: a[2Jbc\td",)


@given(st.lists(st.sampled_from([line for log, _ in LOGS.values() for line in log.splitlines()]), max_size=40))
def test_mixed_logs_give_lines_of_the_log(lines: list[str]) -> None:
    cause = root_cause(lines)
    assert len(cause) <= 6
    assert set(cause) <= {line.rstrip() for line in lines}
