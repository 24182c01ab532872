"""The event stream of a run of many variants."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from axletree.core.events import Event, Published
from axletree.core.values import digest_of
from axletree.plan.actions.pack import PackedWheel
from axletree.plan.actions.spec import Facts
from axletree.plan.actions.test import ClientTestFacts
from support.events import AUDIT, CAUSE, Script, changed, play, v

if TYPE_CHECKING:
    from axletree.core.events import Status


def matrix_scripts(variants: int) -> tuple[Script, ...]:
    """Many variants: a shared fetch, then five stages each on 8 lanes; one build fails, every fifth is in the store."""
    names = tuple(f"py{310 + i % 5}-cu{118 + i // 5}-mkl" for i in range(variants))
    scripts = [Script("fetch", "fetch", (), 0.0, 2.0, variants=names)]
    free = [2.0] * 8
    for number, name in enumerate(names):
        lane = min(range(8), key=lambda index: free[index])
        begin = free[lane]
        build = 30.0 + 25.0 * abs(math.sin(number * 1.7))
        broken = number == 7
        chain = (
            ("environment:build", "environment", (), 6.0, 300_000_000),
            ("build", "build", ("fetch", f"environment:build[{name}]"), build, 2_400_000_000),
            ("pack:demo", "pack", (f"build[{name}]",), 0.8, 60_000_000),
            ("audit:demo", "audit", (f"pack:demo[{name}]",), 0.5, 60_000_000),
            ("test:demo:uv", "test", (f"audit:demo[{name}]",), 9.0, 500_000_000),
        )
        for step, action, needs, wall, peak in chain:
            status: Status = "cached" if number % 5 == 4 else "done"
            if broken and action != "environment":
                status = "failed" if action == "build" else "blocked"
            facts = _facts(action, name) if status in ("done", "cached") else Facts()
            script = Script(
                v(step, name), action, needs, begin, wall, peak, 4, status=status, variants=(name,), facts=facts
            )
            if status == "cached":
                script = changed(script, begin=0.2, wall=0.0, why=())
            elif status == "failed":
                script = changed(script, message="the compiler reports 1 error", cause=CAUSE)
            elif status == "blocked":
                script = changed(script, wall=0.0, message=f"build[{name}] failed")
            elif action == "audit" and number % 2:
                script = changed(script, findings=AUDIT)
            scripts.append(script)
            begin += script.wall
        free[lane] = max(free[lane], begin)
    return tuple(scripts)


def _facts(action: str, name: str) -> Facts:
    if action == "pack":
        file = f"demo-1.0+{name.replace('-', '.')}-cp{name[2:5]}-cp{name[2:5]}-manylinux_2_28_x86_64.whl"
        size = 1_000_000 + 90_000 * (len(name) + int(name[-5:-4] == "m")) + int(name[2:5]) * 4_000
        return PackedWheel(filename=file, size=size, sha256=digest_of(file.encode()))
    if action == "test":
        return ClientTestFacts(installer="uv", installed={}, passed=12, failed=0, skipped=0)
    return Facts()


def matrix_run(variants: int) -> tuple[Event, ...]:
    scripts = matrix_scripts(variants)
    names = tuple(name for name in scripts[0].variants)
    events = play(scripts, recipe="demo", variants=names)
    files = [s.facts for s in scripts if isinstance(s.facts, PackedWheel)]
    out = [
        Published(
            time=events[-1].time,
            path=f"simple/demo/{file.filename}",
            size=file.size,
            sha256=file.sha256,
            fresh=number % 5 != 4,
        )
        for number, file in enumerate(files)
    ]
    return (*events[:-1], *out, events[-1])
