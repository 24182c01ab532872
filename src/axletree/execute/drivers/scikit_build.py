"""Projects whose backend is scikit-build-core, PyTorch from 2.14 on: the backend builds, in a folder that stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.disk import remove_tree
from axletree.execute.backend import build_wheel
from axletree.execute.drivers import configure
from axletree.execute.drivers.job import build_of, finish
from axletree.host.wheels import unpack_wheel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from axletree.execute.context import Context
    from axletree.execute.drivers.job import Job

INFO = ".skbuild-info.json"
"""The backend's note of the environment that it built with."""


def make_room(context: Context, build: Path, *, env: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    """As :func:`axletree.execute.drivers.configure.make_room`, for a folder that the backend configures.

    The backend notes in the folder which environment it is of itself, and removes all objects where that is another
    one, as it is for each Python. Without the note it goes on; that the cache is not another Python's is seen to here.
    """
    anew = configure.make_room(context, build, env=env, settings=settings)
    if anew:
        (build / INFO).unlink(missing_ok=True)
    return anew


def build(job: Job) -> None:
    """Build a wheel by the backend and unpack it into ``job.out``, without its metadata: it is a part of a tree.

    Raises:
        StageError: the backend fails, or a feature is not as expected.
        IntegrityError: the backend wrote a wheel that contradicts itself.
    """
    wheels = job.context.work / "wheels"
    config = {"build-dir": str(job.build)}
    config |= {f"cmake.define.{name.partition(':')[0]}": value for name, value in job.options.items()}
    if job.targets:
        config["build.targets"] = ";".join(job.targets)
    make_room(job.context, job.build, env=job.env, settings={"driver": "scikit-build-core", **job.options})
    watch, end = configure.checking(build_of(job, "scikit-build-core"), job.source)
    build_wheel(job.context, source=job.source, out=wheels, env=job.env, config=config, watch=watch)
    end()
    finish(job, driver="scikit-build-core")
    job.out.rmdir()
    unpack_wheel(next(wheels.glob("*.whl")), job.out)
    for metadata in job.out.glob("*.dist-info"):
        remove_tree(metadata)
