"""Loaders whose batches lie in a GPU's memory, as far as that needs no framework that has a GPU.

Which memory is asked for, what comes of it, and what is said where it cannot be had. The GPU is simulated (gpus.py), all else is real.
"""

from __future__ import annotations

import pytest

from gpu_clients import Run

LOADER = """
from millrace._frameworks import same_gpu as _same_gpu
from millrace._loader.loader import BaseLoader

class Loader(BaseLoader):
    # As those of the frameworks: its batches are converted in the session's thread, and moved in the loop's.
    _moves = True
    asked = "cuda:0"

    def _memory(self, client):
        return self.asked

    def _convert(self, batch, labels):
        return batch.images, batch.labels

    def _moved(self, item):
        assert threading.current_thread() is threading.main_thread()
        return item

def loader(asked="cuda:0", **options):
    made = Loader(FOLDER, OWN_SIZE, address=sys.argv[1], **{"batch_size": 8, "slots": 3, **options})
    made.asked = asked
    return made

def check(one):
    seen = 0
    for images, labels in one:
        for image, label, number in zip(np.asarray(images), labels, one.batch.ids, strict=True):
            np.testing.assert_array_equal(image, pixels_of(int(number)))
            assert label == number // 20
            seen += 1
    assert seen == COUNT, seen
"""


def test_epochs_by_the_gpus_memory(in_client: Run) -> None:
    in_client(
        LOADER
        + """
with loader(shuffle=True) as one, warnings.catch_warnings():
    warnings.simplefilter("error")
    for epoch in range(3):
        check(one)
    assert one._session.memory_name == "cuda:0"
    images, _ = next(iter(one))
    assert isinstance(images, millrace.DeviceTensor)
    state = one.state_dict()
    check_pixels(one.batch)
    one.close()  # within a loop, and a batch of it stays
    np.testing.assert_array_equal(images.numpy().shape, (8, 32, 48, 3))
    one.load_state_dict(state)
    rest = [one.batch.ids.tolist() for _ in one]
    assert sum(map(len, rest)) == COUNT - 8
"""
    )


@pytest.mark.parametrize(
    ("asked", "options", "said"),
    [
        ("cuda:7", {}, 'there is no "cuda:7" here'),
        ("cuda:0", {"slots": 200, "batch_size": 4096}, "cuda.tensors"),
    ],
)
def test_what_cannot_be_had_is_one_warning_and_the_hosts_memory(in_client: Run, asked: str, options: dict[str, int], said: str) -> None:
    in_client(
        LOADER
        + f"""
with loader({asked!r}, **{options!r}) as one, warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        check(one)
        assert one._session.memory_name == "host"
        one.close()
    (warning,) = told
    assert {said!r} in str(warning.message) and "batches come by the host's memory, not the GPU's" in str(warning.message)
    assert warning.filename == "<string>", "it is told at the program's line"
"""
    )


def test_where_the_images_lie_may_be_said(in_client: Run) -> None:
    in_client(
        LOADER
        + """
import millrace.numpy

for memory in ("cuda:0", "host"):
    with millrace.numpy.Loader(FOLDER, OWN_SIZE, address=sys.argv[1], memory=memory) as one:
        check(one)
        assert one._session.memory_name == memory
with loader("cuda:0", memory="host") as one:  # whatever the loader would choose
    check(one)
    assert one._session.memory_name == "host"
with loader("host", memory="cuda:7") as one:
    try:
        check(one)
    except millrace.NotFound as why:
        assert "this daemon has host, cuda:0" in str(why)
    else:
        raise AssertionError("it fell back")
"""
    )


def test_a_gpu_whose_memory_cuda_does_not_map_is_one_warning_too(in_client: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIM_CUDA_VMM", "0")
    in_client(
        LOADER
        + """
with loader() as one, warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    check(one)
    assert ["has no virtual memory management" in str(warning.message) for warning in told] == [True]
"""
    )


def test_the_daemons_memory_of_a_gpu_goes_by_its_uuid(in_client: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIM_CUDA_DEVICES", "2")  # the daemon has the first
    in_client(
        LOADER + """assert [_same_gpu.memory_on(client, n) for n in (0, 1, 2, -1, None)] == ["cuda:0", "host", "host", "host", "host"]"""
    )


def test_a_loop_that_fails_leaves_no_slot_behind(in_client: Run) -> None:
    in_client(
        LOADER
        + """
stream = Cuda().stream()
with loader(slots=2) as one:
    for _ in range(5):
        try:
            for images, _ in one:
                images.used_by(stream)
                raise KeyError("the program's own")
        except KeyError:
            pass
        del images
        soon(lambda: one._session.leased <= 1, "slots stay behind")  # loader.batch
    check(one)
"""
    )


@pytest.mark.parametrize("resume", [True, False])
def test_a_loader_outlives_the_gpus_process(in_client: Run, resume: bool) -> None:
    in_client(
        LOADER
        + f"""
stream = Cuda().stream()
with loader(batch_size=2, resume={resume}) as one:
    ids, failed = [], 0

    def go_on():
        global failed
        try:
            for images, _ in one:
                check_pixels(one.batch)
                images.used_by(stream)
                ids.extend(one.batch.ids.tolist())
                if len(ids) == 20:
                    (owner,) = owners()
                    os.kill(owner, signal.SIGKILL)
                    soon(lambda: owner not in owners(), "it does not end")
            return True
        except millrace.DaemonUnavailable:
            failed += 1
            one.load_state_dict(one.state_dict())
            return False

    soon(go_on, "no new session")
    assert sorted(ids) == list(range(COUNT))
    assert (failed == 0) is {resume}
    assert one._session.memory_name == "cuda:0"
"""
    )
