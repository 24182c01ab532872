"""Projects whose backend is scikit-build-core, PyTorch from 2.14 on: the backend builds, in a folder that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.execute.backend import build_wheel
from axletree.execute.drivers.job import configure
from axletree.host.wheels import unpack_wheel

if TYPE_CHECKING:
    from collections.abc import Callable

    from axletree.execute.drivers.job import Job


def build(job: Job) -> None:
    """Build a wheel by the backend and unpack it into ``job.out``.

    Raises:
        StageError: the backend fails, or a feature is not as expected.
        IntegrityError: the backend wrote a wheel that contradicts itself.
    """
    wheels = job.context.work / "wheels"
    config = {"build-dir": str(job.build)}
    config |= {f"cmake.define.{name.partition(':')[0]}": value for name, value in job.options.items()}
    if job.targets:
        config["build.targets"] = ";".join(job.targets)

    def run(watch: Callable[[str], None]) -> None:
        build_wheel(job.context, source=job.source, out=wheels, env=job.env, config=config, watch=watch)

    configure(job, run, driver="scikit-build-core")
    if not wheels.exists():  # it was configured so before, and the backend has not run yet
        build_wheel(job.context, source=job.source, out=wheels, env=job.env, config=config)
    job.out.rmdir()
    unpack_wheel(next(wheels.glob("*.whl")), job.out)
