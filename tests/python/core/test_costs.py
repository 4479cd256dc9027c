"""What sessions and jobs cost the daemon."""

from __future__ import annotations

import os
import time
from pathlib import Path

import millrace
import pytest

from pictures import COUNT


def job_of(client: millrace.Client, name: str) -> millrace.JobStatistics:
    return next(job for job in client.statistics().jobs if job.name == name)


def test_a_session_says_what_it_cost(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    with client.session(own_size, batch=4, cache="off") as session:
        for batch in session.dataset(folder).epoch():
            batch.release()
        cost = session.cost()
        assert cost is not None
        told = next(one for one in client.statistics().sessions if one.id == session.id)
    assert cost.images == COUNT
    assert cost.file_bytes == sum(path.stat().st_size for path in folder.rglob("*.png"))
    assert cost.kept_bytes == 0
    assert cost.tensor_bytes > 0
    assert cost.lane_cpu_seconds > 0
    assert cost.fetch_cpu_seconds > 0
    assert cost.cpu_seconds == pytest.approx(
        cost.lane_cpu_seconds + cost.fetch_cpu_seconds + cost.control_cpu_seconds + cost.process_cpu_seconds
    )
    assert cost.memory_byte_seconds > 0
    assert told.cost is not None
    assert told.cost.images == COUNT
    assert told.making_seconds["decode"] > 0
    assert told.making_seconds["resample"] > 0


def test_sessions_of_a_job_add_up(client: millrace.Client, own_size: millrace.Recipe, folder: Path) -> None:
    for rank in range(2):
        with client.session(own_size, batch=4, name=f"rank {rank}", job="added up") as session:
            for batch in session.dataset(folder).epoch(batches=1):
                batch.release()
            del batch
    deadline = time.monotonic() + 30
    while (job := job_of(client, "added up")).open:
        assert time.monotonic() < deadline
    assert job.sessions == 2
    assert job.uid == os.getuid()
    assert job.cost.images >= 8
    statistics = client.statistics()
    assert statistics.own is not None
    everything = sum((job.cost for job in statistics.jobs), statistics.own)
    assert everything.cpu_seconds == pytest.approx(statistics.cpu_seconds, rel=0.03)
    assert statistics.users[os.getuid()].images == sum(job.cost.images for job in statistics.jobs)


def test_the_environment_names_the_job(client: millrace.Client, own_size: millrace.Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLRACE_JOB", "of the environment")
    with client.session(own_size, batch=4) as session, client.session(own_size, batch=4, job="given") as given:
        jobs = {one.id: one.job for one in client.statistics().sessions}
    assert jobs[session.id] == "of the environment"
    assert jobs[given.id] == "given"


def test_a_name_that_is_none_is_refused(client: millrace.Client, own_size: millrace.Recipe) -> None:
    with pytest.raises(millrace.InvalidRequest, match="job: must be printable text"):
        client.session(own_size, batch=4, job="a\x1b[2J")
    with pytest.raises(millrace.InvalidRequest, match="job: must have at most 64 bytes, has 65"):
        client.session(own_size, batch=4, job="x" * 65)
