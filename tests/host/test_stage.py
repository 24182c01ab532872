"""One stage: its record is published once, a failure leaves folder and log, and a second process takes the result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from axletree.app.storekeeping import sweep_store
from axletree.core.errors import HostError, IntegrityError, StageError
from axletree.core.events import Event, MemorySampled, StageFinished, StageProgress
from axletree.core.findings import Finding
from axletree.core.records import Grant, LocalFacts
from axletree.core.setting import StageSetting
from axletree.disk import has_room_behind
from axletree.execute.context import Context, Outcome
from axletree.execute.process import check_program
from axletree.execute.stage import log_file, trim_logs, work_folder
from axletree.store.store import Store
from support.elfs import need
from support.requests import MadeUpContext, MadeUpFacts, MadeUpParameters, request_of, run_request
from support.store import damage, write_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


REQUEST = request_of(grant=Grant(jobs=3))


def make_file(context: Context) -> Outcome:
    """An action that makes one file."""
    context.log.say("making it")
    context.progress("half", done=1, total=2)
    write_files(context.work / "out", {"a.txt": b"content"})
    return Outcome(tree=context.store.ingest(context.work / "out", adopt=True), facts=MadeUpFacts(made=1))


def finish(events: list[Event]) -> StageFinished:
    last = events[-1]
    assert isinstance(last, StageFinished)
    return last


def test_a_record_is_published_with_what_was_made(store: Store) -> None:
    done, events = run_request(store, REQUEST, make_file)
    record = store.get_record(REQUEST.key)
    assert done
    assert record is not None
    assert (record.stage, record.key, record.facts) == ("lib[cpu]", REQUEST.key, {"made": 1})
    assert record.ingredients == REQUEST.ingredients
    assert [entry.path for entry in store.get_tree(record.tree).entries] == ["a.txt"]
    assert record.metrics.jobs == 3
    assert record.metrics.cpu > 0
    assert finish(events).status == "done"
    assert finish(events).tree == record.tree
    assert finish(events).log == str(log_file(store, REQUEST.key))


def test_what_it_says_is_in_the_log_and_the_events(store: Store) -> None:
    _, events = run_request(store, REQUEST, make_file)
    assert log_file(store, REQUEST.key).read_text() == "making it\n"
    (progress,) = [event for event in events if isinstance(event, StageProgress)]
    assert (progress.stage, progress.message, progress.done, progress.total) == ("lib[cpu]", "half", 1, 2)


def test_the_folder_is_gone_after_a_success_even_if_parts_are_read_only(store: Store) -> None:

    def action(context: Context) -> Outcome:
        folder = write_files(context.work / "deep" / "er", {"f": b"1"})
        folder.chmod(0o500)
        return make_file(context)

    run_request(store, REQUEST, action)
    assert not work_folder(store, REQUEST.key).exists()


def test_the_second_time_nothing_runs(store: Store) -> None:
    run_request(store, REQUEST, make_file)
    done, events = run_request(store, REQUEST, lambda _: pytest.fail("it ran again"))
    assert done
    assert finish(events).status == "cached"
    assert finish(events).log is None


def fail(context: MadeUpContext) -> Outcome:
    write_files(context.work, {"build/half.o": b"1"})
    context.log.write(b"x.cpp:1:1: error: no\n")
    context.log.write(b"ninja: build stopped: subcommand failed.\n")
    finding = Finding(rule="dist/x", severity="error", where="x", message="no")
    raise StageError("the build failed with exit code 1", findings=(finding,) if context.parameters.audit else ())


def test_a_failure_leaves_folder_and_log_and_no_record(store: Store) -> None:
    done, events = run_request(store, REQUEST, fail)
    assert not done
    assert store.get_record(REQUEST.key) is None
    assert (work_folder(store, REQUEST.key) / "build" / "half.o").exists()
    assert log_file(store, REQUEST.key).read_text().splitlines()[-1] == "error: the build failed with exit code 1"
    finished = finish(events)
    assert (finished.status, finished.exit_code) == ("failed", 1)
    assert finished.metrics is not None
    assert finished.metrics.wall > 0
    assert finished.metrics.cpu > 0
    assert finished.message == "the build failed with exit code 1"
    assert finished.cause == ("x.cpp:1:1: error: no",)


@pytest.mark.parametrize(
    ("line", "message", "killed"),
    [
        ("c++: fatal error: Killed signal terminated program cc1plus", "the build backend failed", True),
        ("collect2: fatal error: ld terminated with signal 9 [Killed]", "the build backend failed", True),
        ("clang++: error: unable to execute command: Killed", "the build backend failed", True),
        ("", "stage lib was killed (SIGKILL)", True),
        ("x.cpp:1:1: error: no member named 'Killed'", "the build backend failed", False),
    ],
)
def test_it_is_told_that_a_compiler_was_killed(store: Store, line: str, message: str, killed: bool) -> None:  # noqa: FBT001
    def action(context: Context) -> Outcome:
        context.log.say(line)
        raise StageError(message)

    _, events = run_request(store, REQUEST, action)
    assert finish(events).killed is killed


def test_a_log_that_speaks_of_a_full_disk_is_believed_only_if_the_disk_is_full(store: Store) -> None:
    def action(context: Context) -> Outcome:
        context.log.write(b"as: x.o: No space left on device\n")
        raise StageError("the build failed with exit code 1")

    status = os.statvfs(store.root)
    if status.f_bavail * status.f_frsize < max(1 << 29, status.f_blocks * status.f_frsize // 50):
        pytest.skip("the disk really is nearly full")
    _, events = run_request(store, REQUEST, action)
    assert (finish(events).message, finish(events).exit_code) == ("the build failed with exit code 1", 1)
    assert finish(events).cause == ("as: x.o: No space left on device",)


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Fills the disk of a folder to the last byte; the store's disk has 8 MB."""
    mount = tmp_path / "store"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", mount], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"mounting a small file system is not allowed here: {done.stderr.strip()}")

    def fill(folder: Path) -> None:
        with suppress(OSError), (folder / "filler").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))

    yield fill
    subprocess.run(["umount", mount], check=True)


@pytest.mark.parametrize("last", ["", "c++: fatal error: x.o: No space left on device\n", "Bus error\n"])
def test_a_full_disk_is_told_whatever_the_log_says_last(
    last: str, full: Callable[[Path], None], tmp_path: Path
) -> None:
    store = Store.open(tmp_path / "store")
    lines = [f"[{number}/4000] Building x{number}.o\n" for number in range(4000)]

    def action(context: Context) -> Outcome:
        for line in lines[:2000]:
            context.log.write(line.encode())
        full(context.work)
        for line in (*lines[2000:], last):
            context.log.write(line.encode())
        raise StageError("the build failed with exit code 1")

    done, events = run_request(store, REQUEST, action)
    told = finish(events)
    assert not done
    assert told.exit_code == 3
    free, taken = r"[\d.]+ k?B free", r"this stage's folder takes [78]\.\d+ MB"
    assert re.match(rf"no space left on {store.root}: {free}; {taken}\n", told.message or "")
    assert "axletree store gc" in (told.message or "")
    log = log_file(store, REQUEST.key)
    text = log.read_text()
    assert text.startswith("".join(lines) + last)
    assert "error: no space left on" in text[len("".join(lines)) :]
    status = log.stat()
    assert status.st_blocks * 512 < status.st_size + 8192  # the room that was kept is given back


@pytest.mark.parametrize("size", [600_000, 3_000_000])
def test_a_disk_that_fills_up_in_mid_compile_is_told_when_the_room_of_the_log_is_used_up(
    size: int, full: Callable[[Path], None], tmp_path: Path
) -> None:
    store = Store.open(tmp_path / "store")

    def action(context: Context) -> Outcome:
        full(context.work)
        script = f"yes 'cc -O2 -c one.c -o one.o' | head -c {size}"
        tell = {"log": context.log, "progress": context.progress, "what": "the build"}
        check_program(["sh", "-c", script], cwd=context.work, env={"PATH": os.environ["PATH"]}, **tell)  # type: ignore[arg-type]
        raise AssertionError("the log took more than the disk has")

    done, events = run_request(store, REQUEST, action)
    told = finish(events)
    assert not done
    assert told.exit_code == 3
    assert re.match(rf"no space left on {store.root}: ", told.message or ""), told.message
    assert log_file(store, REQUEST.key).read_text().count("cc -O2 -c one.c") > 1000, "what came before is kept"


def test_a_program_on_a_full_disk(full: Callable[[Path], None], tmp_path: Path) -> None:
    need("cc")
    store = Store.open(tmp_path / "store")

    def action(context: Context) -> Outcome:
        source = context.work / "x.c"
        source.write_text("int x(void) { return 1; }\n")
        full(context.work)
        environ = {"PATH": os.environ["PATH"], "TMPDIR": str(context.work)}
        check_program(
            ["cc", "-c", "x.c"],
            cwd=context.work,
            env=environ,
            log=context.log,
            progress=context.progress,
            what="the build",
        )
        return make_file(context)

    _, events = run_request(store, REQUEST, action)
    assert (finish(events).message or "").startswith(f"no space left on {store.root}: ")
    assert "No space left on device" in log_file(store, REQUEST.key).read_text()
    assert "No space left on device" in "".join(finish(events).cause)


def test_a_stage_that_fails_without_a_word_of_a_full_disk_is_believed(store: Store) -> None:
    def action(_context: Context) -> Outcome:
        raise StageError("the build failed with exit code 1")

    _, events = run_request(store, REQUEST, action)
    assert finish(events).message == "the build failed with exit code 1"


def test_what_to_do_is_said_in_words_of_the_recipe(store: Store) -> None:
    setting = StageSetting(recipe="r.toml", table="stages.lib", environment="build")
    request = request_of(local=LocalFacts(setting=setting))

    def action(context: Context) -> Outcome:
        context.log.write(b"curl: (6) Could not resolve host: example.org\n")
        raise StageError("stage lib failed with exit code 6")

    _, events = run_request(store, request, action)
    (found,) = finish(events).findings
    assert found.message == "A host name cannot be resolved"  # nothing here cut it off
    assert "export" not in (found.fix or "")


def test_what_is_told_of_a_step_is_cut(store: Store) -> None:
    def action(context: Context) -> Outcome:
        context.progress("ld " + "a.o " * 100_000)
        return make_file(context)

    _, events = run_request(store, REQUEST, action)
    assert max(len(event.message) for event in events if isinstance(event, StageProgress)) == 1000


def test_findings_of_a_failure_are_told(store: Store) -> None:
    _, events = run_request(store, request_of(parameters=MadeUpParameters(audit=True)), fail)
    assert [finding.rule for finding in finish(events).findings] == ["dist/x"]


def test_the_next_attempt_starts_with_an_empty_folder(store: Store) -> None:
    run_request(store, REQUEST, fail)

    def look(context: Context) -> Outcome:
        assert list(context.work.iterdir()) == []
        return make_file(context)

    done, _ = run_request(store, REQUEST, look)
    assert done
    assert "error" not in log_file(store, REQUEST.key).read_text()


@pytest.mark.parametrize(("error", "code"), [(HostError("no compiler"), 3), (IntegrityError("another file"), 2)])
def test_a_deliberate_error_keeps_its_exit_code(store: Store, error: Exception, code: int) -> None:
    def action(_context: Context) -> Outcome:
        raise error

    _, events = run_request(store, REQUEST, action)
    assert finish(events).exit_code == code
    assert finish(events).message == str(error)


def test_an_error_that_nobody_thought_of_is_a_failure_with_its_traceback_in_the_log(store: Store) -> None:
    def action(_context: Context) -> Outcome:
        raise ZeroDivisionError("oh")

    done, events = run_request(store, REQUEST, action)
    assert not done
    assert finish(events).message == "ZeroDivisionError: oh"
    assert "Traceback" in log_file(store, REQUEST.key).read_text()


def test_a_result_whose_content_is_gone_is_made_again(store: Store) -> None:
    run_request(store, REQUEST, make_file)
    record = store.get_record(REQUEST.key)
    assert record is not None
    (entry,) = store.get_tree(record.tree).entries
    assert entry.blob is not None
    store.blob_path(entry.blob).unlink()
    done, events = run_request(store, REQUEST, make_file)
    assert done
    assert finish(events).status == "done"
    assert store.read_blob(entry.blob) == b"content"


def test_a_damaged_input_is_told_so_that_the_driver_plans_again(store: Store, tmp_path: Path) -> None:
    tree = store.ingest(write_files(tmp_path / "in", {"a": b"some content"}))
    (entry,) = store.get_tree(tree).entries
    assert entry.blob is not None
    damage(store, entry.blob)

    def action(context: Context) -> Outcome:
        context.store.materialise(tree, context.work / "in")
        return make_file(context)

    _, events = run_request(store, REQUEST, action)
    assert (finish(events).message or "").startswith("corrupt input")


def test_secrets_reach_neither_log_nor_events(store: Store) -> None:
    def action(context: Context) -> Outcome:
        context.log.say("with s3cr3t-value")
        context.progress("fetching https://u:s3cr3t-value@h.example/x")
        raise StageError(f"not with {context.environ['MY_TOKEN']}")

    _, events = run_request(store, REQUEST, action, environ={"MY_TOKEN": "s3cr3t-value"})
    assert b"s3cr3t" not in log_file(store, REQUEST.key).read_bytes()
    assert not [event for event in events if "s3cr3t" in repr(event)]


def test_memory_of_all_processes_is_sampled(store: Store) -> None:
    """The peak is that of the whole family, at some moment at which it was looked at."""
    size = 96 * 1024**2
    sampled = threading.Event()

    def emit(event: Event) -> None:
        if isinstance(event, MemorySampled) and event.processes > 1 and event.memory > size:
            sampled.set()

    def action(context: Context) -> Outcome:
        script = f"data = b'x' * {size}; print('ready', flush=True); input()"
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen([sys.executable, "-c", script], **pipes) as child:
            assert sampled.wait(60)
            child.communicate(b"\n")
        return make_file(context)

    done, _ = run_request(store, REQUEST, action, emit=emit)
    assert done
    record = store.get_record(REQUEST.key)
    assert record is not None
    assert record.metrics.peak_memory > size
    assert record.metrics.peak_process > size


RACER = """
import os, sys, pathlib
from axletree.execute.context import Outcome
from axletree.execute.stage import run_stage
from axletree.store.store import Store
import msgspec
from axletree.core.records import StageRequest
from axletree.core.events import StageFinished
from axletree.plan.actions.spec import ActionSpec, Parameters
from axletree.recipe.settings import Settings
root, place = map(pathlib.Path, sys.argv[1:])
store = Store.open(root)
request = msgspec.json.decode((place / "request").read_bytes(), type=StageRequest)
spec = ActionSpec(module="none", revision=1, parameters=Parameters)
def action(context):
    with (place / "runs").open("a") as file:
        file.write("one\\n")
    print("running", flush=True)
    sys.stdin.readline()
    (context.work / "out").mkdir()
    (context.work / "out" / "a").write_text("content")
    return Outcome(tree=context.store.ingest(context.work / "out", adopt=True))
def emit(event):
    if isinstance(event, StageFinished):
        print(event.status, flush=True)
print("begun", flush=True)
sys.exit(0 if run_stage(store, request, spec, action, isolation={}, emit=emit, settings=Settings(), environ={}) else 1)
"""


@pytest.fixture
def racers(store: Store, tmp_path: Path) -> Any:
    """Start processes that all want one stage."""
    import msgspec

    (tmp_path / "request").write_bytes(msgspec.json.encode(REQUEST))
    started: list[subprocess.Popen[str]] = []

    def begin() -> subprocess.Popen[str]:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", RACER, str(store.root), str(tmp_path)], **pipes)
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_of_two_processes_one_runs_the_stage_and_both_have_it(racers: Any, tmp_path: Path) -> None:
    first = racers()
    assert [said(first), said(first)] == ["begun", "running"]
    second = racers()
    assert said(second) == "begun"
    assert first.communicate("go on\n", timeout=60)[0] == "done\n"
    assert second.communicate(timeout=60)[0] == "cached\n"
    assert (first.returncode, second.returncode) == (0, 0)
    assert (tmp_path / "runs").read_text() == "one\n"


def test_when_the_first_is_killed_the_second_takes_over(racers: Any, store: Store, tmp_path: Path) -> None:
    first = racers()
    assert [said(first), said(first)] == ["begun", "running"]
    second = racers()
    assert said(second) == "begun"
    first.kill()
    assert said(second) == "running"
    assert second.communicate("go on\n", timeout=60)[0] == "done\n"
    assert (tmp_path / "runs").read_text() == "one\none\n"
    assert store.get_record(REQUEST.key) is not None


def test_room_that_a_killed_stage_kept_behind_its_log_is_given_back(racers: Any, store: Store) -> None:
    store.put_request(REQUEST)
    log = log_file(store, REQUEST.key)
    running = racers()
    assert [said(running), said(running)] == ["begun", "running"]
    if not has_room_behind(log):
        pytest.skip("this file system keeps no room behind a file")
    assert trim_logs(store) == 0, "it is still being written"
    assert has_room_behind(log)
    running.kill()
    running.wait()
    before = log.read_bytes()
    sweep_store(store)
    assert not has_room_behind(log)
    assert log.read_bytes() == before
    assert trim_logs(store) == 0


def test_the_folder_has_the_same_path_on_each_attempt(store: Store) -> None:
    """So that what a compiler writes of paths is the same."""
    seen: list[str] = []

    def action(context: Context) -> Outcome:
        seen.append(os.fspath(context.work))
        raise StageError("no")

    for _ in range(2):
        run_request(store, REQUEST, action)
    assert len(set(seen)) == 1
