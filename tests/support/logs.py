"""Logs of builds that went well, as the tools print them, with every word that looks like trouble and is none."""

from __future__ import annotations

_CONFIGURE = """\
-- The CXX compiler identification is GNU 12.2.0
-- Detecting CXX compiler ABI info - done
-- Performing Test HAVE_STDERR_FAILED
-- Performing Test HAVE_STDERR_FAILED - Failed
-- Performing Test CMAKE_HAVE_LIBC_PTHREAD - Success
-- Looking for include file sys/error.h - not found
-- Looking for pthread_create in pthreads - not found
-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)
-- Checking whether the error handler is fatal: no
fatal: not a git repository (or any of the parent directories): .git
CMake Warning (dev) at CMakeLists.txt:12 (message):
  errors are treated as warnings
This warning is for project developers.  Use -Wno-dev to suppress it.

-- Configuring done (3.1s)
-- Generating done (0.2s)
-- Build files have been written to: /src/build""".splitlines()

_NOTES = (
    "../src/error.h:3:7: warning: unused variable 'error' [-Wunused-variable]",
    "    3 |   int error = 0;",
    "      |       ^~~~~",
    "In file included from ../src/fatal_error.cpp:1:",
    "../src/error.h:9:1: note: previous declaration is here",
    "ptxas info    : 0 bytes gmem, 0 errors",
    "/usr/bin/ld: warning: type and size of dynamic symbol `fatal' are not defined",
)

_INSTALL = """\
-- Installing: /out/include/errors.hpp
  Created wheel for errorbars: filename=errorbars-1.0-py3-none-any.whl size=1201 sha256=0a
Successfully built errorbars
Installing collected packages: exceptiongroup, errorbars
Successfully installed errorbars-1.0 exceptiongroup-1.2.2
tests/test_errors.py::test_fatal_error_is_raised PASSED                   [ 50%]
tests/test_errors.py::test_failed XFAIL (known failure)                   [100%]
========================= 1 passed, 1 xfailed in 0.02s =========================""".splitlines()


def good_log(lines: int = 5000) -> tuple[list[str], list[str]]:
    """A successful log in two halves."""
    steps: list[str] = []
    total = lines - len(_CONFIGURE) - len(_INSTALL)
    for number in range(1, total + 1):
        if number % 97 == 0:
            steps.append(_NOTES[number // 97 % len(_NOTES)])
            continue
        flags = "-O2 -Wall -Werror -Wno-error=deprecated -fno-exceptions" if number % 5 == 0 else ""
        name = ("error", "kernel", "fatal_error", "failed_assert")[number % 4]
        command = f"Building CXX object src/CMakeFiles/core.dir/{name}_{number}.cpp.o {flags}".rstrip()
        steps.append(f"[{number}/{total}] {command}")
    log = [*_CONFIGURE, *steps, *_INSTALL]
    return log[: lines // 2], log[lines // 2 :]
