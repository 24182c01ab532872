"""Report data made from the sample event streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.values import digest_of
from axletree.recipe.locks import LockedWheel, PyLock
from axletree.view.report import InstallCommand, ReportData, report_data
from support import events, matrix_events
from support.events import fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.core.events import Event

HOST = {"machine": "x86_64, 2 cores, 25.2 GB", "system": "Debian GNU/Linux 12, glibc 2.36"}
TOOLCHAIN = {"c++": "g++ 12.2.0", "ninja": "1.13.0", "ccache": "4.12.1", "axletree": "0.1.0"}


def _wheel(name: str, version: str, size: int) -> LockedWheel:
    filename = f"{name}-{version}-py3-none-any.whl"
    return LockedWheel(name=name, version=version, filename=filename, size=size, sha256=digest_of(filename.encode()))


WHEELS = (
    _wheel("filelock", "3.20.0", 16_054),
    _wheel("numpy", "2.3.5", 16_812_004),
    _wheel("setuptools", "80.9.0", 1_201_486),
    _wheel("sympy", "1.14.0", 6_299_353),
    _wheel("torch", "2.13.0+cpu", 190_318_226),
)
ENVIRONMENTS = {
    f"pylock.{name}-{events.VARIANT}.toml": PyLock(
        requires=("torch==2.13.0+cpu", "numpy"),
        python="3.11",
        platform="x86_64-unknown-linux-gnu",
        wheels=(*WHEELS, *([_wheel("pytest", "9.0.1", 373_668)] if name == "test" else [])),
    )
    for name in ("build", "test")
}
WANTED = "'torch-scatter @ file:///home/me/dist/torch-2.13/cpu/torch_scatter-2.1.2-py3-none-any.whl'"
INSTALL = tuple(
    InstallCommand(tool=tool, what="torch 2.13, CPU", command=f"{tool if tool == 'pip' else 'uv pip'} install {WANTED}")
    for tool in ("pip", "uv")
)


def scatter(stream: tuple[Event, ...], scripts: tuple[events.Script, ...], *, works: bool) -> ReportData:
    return report_data(
        fold(stream),
        records=events.records(scripts),
        parameters=events.parameters(scripts),
        recipe_name="torch-scatter",
        recipe_version="2.1.2",
        host=HOST,
        toolchain=TOOLCHAIN,
        environments=ENVIRONMENTS,
        install=INSTALL if works else (),
    )


def green() -> ReportData:
    return scatter(events.green_run(), events.GREEN, works=True)


def noop() -> ReportData:
    return scatter(events.noop_run(), events.GREEN, works=True)


def failing() -> ReportData:
    return scatter(events.failing_run(), events.failing_scripts(), works=False)


def cancelled() -> ReportData:
    return scatter(events.cancelled_run(), (), works=False)


def big(variants: int = 200) -> ReportData:
    scripts = matrix_events.matrix_scripts(variants)
    return report_data(
        fold(matrix_events.matrix_run(variants)),
        records=events.records(scripts),
        parameters=events.parameters(scripts),
        recipe_name="demo",
        recipe_version="1.0",
        host=HOST,
        toolchain=TOOLCHAIN,
    )


def single() -> ReportData:
    scripts = events.GREEN[:1]
    return report_data(
        fold(events.play(scripts)),
        records=events.records(scripts),
        parameters=events.parameters(scripts),
        recipe_name="tiny",
        recipe_version="0.1",
        host={},
    )


SAMPLES: dict[str, Callable[[], ReportData]] = {
    "green": green,
    "noop": noop,
    "failing": failing,
    "cancelled": cancelled,
    "big": big,
    "single": single,
}
