"""What a loader costs the daemon, over its loops and sessions."""

from __future__ import annotations

from pathlib import Path

import millrace
import millrace.numpy

from pictures import COUNT, SIZE

OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")


def test_a_loader_adds_up_its_loops_and_sessions(daemon: millrace.PrivateDaemon, client: millrace.Client, folder: Path) -> None:
    loader = millrace.numpy.Loader(folder, OWN_SIZE, batch_size=4, address=daemon.address, job="of a loader")
    assert loader.cost is None
    for _ in range(2):
        for _ in loader:
            pass
    two = loader.cost
    assert two is not None
    assert two.images == 2 * COUNT
    assert two.cpu_seconds > 0
    loader.close()
    assert loader.cost == two or loader.cost.memory_byte_seconds >= two.memory_byte_seconds
    for _ in loader:
        pass
    three = loader.cost
    assert three is not None
    assert three.images == 3 * COUNT
    assert three.cpu_seconds > two.cpu_seconds
    loader.close()
    job = next(job for job in client.statistics().jobs if job.name == "of a loader")
    assert job.sessions == 2
    assert job.cost.images == three.images


def test_a_loader_remembers_what_a_daemon_told_that_is_gone(folder: Path) -> None:
    with millrace.serve(folder.parent, lanes=1) as daemon:
        loader = millrace.numpy.Loader(folder, OWN_SIZE, batch_size=4, address=daemon.address)
        for _ in loader:
            pass
    cost = loader.cost
    assert cost is not None
    assert cost.images == COUNT
    loader.close()
    assert loader.cost == cost
