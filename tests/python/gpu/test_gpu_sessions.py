"""Sessions whose tensors are in a GPU's memory, against a real daemon: what comes, what consumers see of it, and when slots go back.

The GPU is simulated (gpus.py), so each client is a process that begins with its driver.
"""

from __future__ import annotations

from pathlib import Path

import millrace
import pytest

from gpu_clients import Run
from gpus import UUIDS


def test_an_epoch_is_the_same_in_both_memories(in_client: Run) -> None:
    in_client("""
recipes = [
    OWN_SIZE,
    millrace.Recipe.train(24).normalised("float32"),
    millrace.Recipe.train(24).normalised("bfloat16"),
    millrace.Recipe.evaluate(32, 24).normalised("float16"),
    millrace.Recipe(resize=millrace.ShorterSide(30), packing="packed", layout="NHWC"),
]
for recipe in recipes:
    with session(recipe, 16, 3, slot_bytes=1 << 20) as gpu, session(recipe, 16, 3, "host", slot_bytes=1 << 20) as host:
        assert (gpu.memory_name, host.memory_name) == ("cuda:0", "host")
        assert gpu.slot_bytes == host.slot_bytes == 1 << 20
        assert gpu.memory().nbytes < host.memory().nbytes
        epochs = [opened.dataset(FOLDER).epoch(seed=3, shuffle=True) for opened in (gpu, host)]
        batches = 0
        for there, here in zip(*epochs, strict=True):
            assert isinstance(there.images, millrace.DeviceTensor) and type(here.images) is millrace.Tensor
            assert (there.images.shape, there.images.strides, there.images.dtype_name) == (
                here.images.shape, here.images.strides, here.images.dtype_name)
            np.testing.assert_array_equal(there.images.bits(), here.images.bits())
            for n in (0, len(here) - 1):
                np.testing.assert_array_equal(there.image(n).bits(), here.image(n).bits())
                assert there.image(n).shape == here.image(n).shape
            for name in ("ids", "labels", "status", "flips", "boxes", "sizes", "source_sizes"):
                np.testing.assert_array_equal(getattr(there, name), getattr(here, name))
            assert (there.position, there.bad, there.errors) == (here.position, here.bad, here.errors)
            batches += 1
            there.release()
            here.release()
        assert batches == 4
""")


def test_views_are_in_the_gpus_memory_too(in_client: Run) -> None:
    in_client("""
recipe = millrace.Recipe.of_views(millrace.Recipe.train(24), [millrace.Recipe.train(15)] * 2).normalised("bfloat16")
with session(recipe, 16, 3) as gpu, session(recipe, 16, 3, "host") as host:
    epochs = [opened.dataset(FOLDER).epoch(seed=3, shuffle=True) for opened in (gpu, host)]
    for there, here in zip(*epochs, strict=True):
        assert len(there.views) == 3
        for number, (one, other) in enumerate(zip(there.views, here.views, strict=True)):
            assert isinstance(one, millrace.DeviceTensor) and type(other) is millrace.Tensor
            np.testing.assert_array_equal(one.bits(), other.bits())
            np.testing.assert_array_equal(there.image(-1, number).bits(), here.image(-1, number).bits())
        there.release()
        here.release()
""")


def test_numpy_and_bad_images_are_as_ever(in_client: Run) -> None:
    in_client("""
with session(slots=2) as opened:
    batch = opened.get(ask(opened, 3, 4))
    check_pixels(batch)
    images = batch.images
    assert repr(images) == "<millrace.DeviceTensor uint8 2 x 32 x 48 x 3 on cuda:0>"
    assert (images.device, len(images), images.ndim, images.nbytes) == ("cuda:0", 2, 4, 2 * 32 * 48 * 3)
    np.testing.assert_array_equal(np.asarray(images)[1], pixels_of(4))
    np.testing.assert_array_equal(images[0, 5], pixels_of(3)[5])
    assert np.asarray(images, np.float32).dtype == np.float32
    copy = images.numpy()
    copy[:] = 0  # the copy is one's own
    check_pixels(batch)
    try:
        images.__array__(copy=False)
    except ValueError:
        pass
    else:
        raise AssertionError
    assert not hasattr(images, "__array_interface__")
    assert batch.records["backend"][0] == b"cpu"
    assert not batch.records.flags.writeable
    assert batch.release()
    for use in (lambda: images.numpy(), lambda: images.data_ptr, lambda: images.__dlpack__(), lambda: images.device):
        try:
            use()
        except millrace.Released:
            continue
        raise AssertionError(use)
    assert repr(images).endswith(", released>")

    bad = FOLDER.parent / "bad.png"
    bad.write_bytes(b"no picture")
    try:
        paths = [path_of(FOLDER, 1), str(bad), path_of(FOLDER, 2)]
        for on_error, expected in (("zero", [1, None, 2]), ("substitute", [1, 1, 2]), ("skip", [1, 2])):
            batch = opened.get(opened.submit(paths, on_error=on_error))
            assert [error.path for error in batch.errors] == [str(bad)] and batch.bad == 1
            images = batch.images.numpy()
            assert len(images) == len(batch) == len(expected)
            for image, number in zip(images, expected):
                np.testing.assert_array_equal(image, np.zeros_like(image) if number is None else pixels_of(number))
        batch = opened.get(opened.submit([str(bad)], on_error="skip"))
        assert len(batch) == 0 and batch.bad == 1
    finally:
        bad.unlink()
""")


def test_a_capsule_says_what_lies_where(in_client: Run) -> None:
    in_client("""
CODES = {"uint8": (1, 8), "float16": (2, 16), "bfloat16": (4, 16), "float32": (2, 32)}
cuda = Cuda()
stream = cuda.stream()
for dtype, (code, bits) in CODES.items():
    recipe = OWN_SIZE if dtype == "uint8" else millrace.Recipe(resize=millrace.ExactSize(SIZE)).normalised(dtype)
    with session(recipe, slots=2) as opened:
        batches = [opened.get(ask(opened, n, n + 1)) for n in (0, 7)]  # the second is not at the memory's start
        assert batches[0].images.data_ptr != batches[1].images.data_ptr
        for batch in batches:
            images = batch.images
            assert images.__dlpack_device__() == (2, 0)
            for tensor in (images, batch.image(1)):
                consumed = Consumed(tensor.__dlpack__(stream=stream, max_version=(1, 1)))
                managed, dl = consumed.managed, consumed.managed.tensor
                if consumed.versioned:  # as NumPy makes them
                    assert (managed.major, managed.flags) == (1, 0)
                assert (dl.device_type, dl.device_id, dl.code, dl.bits, dl.lanes, dl.byte_offset) == (2, 0, code, bits, 1, 0)
                assert dl.data == tensor.data_ptr
                assert consumed.shape == tensor.shape
                assert consumed.strides == tuple(step * 8 // bits for step in tensor.strides)
                assert managed.deleter
                read = cuda.read(dl.data, tensor.nbytes, stream)
                np.testing.assert_array_equal(read, tensor.bits().reshape(-1).view(np.uint8))
                consumed.let_go()
            old = Consumed(images.__dlpack__(stream=stream))
            assert not old.versioned and old.managed.tensor.device_type == 2 and old.managed.tensor.code == code
            old.let_go()
        interface = [hasattr(batch.images, "__cuda_array_interface__") for batch in batches]
        assert interface == [dtype != "bfloat16"] * 2
        if dtype == "float16":
            described = batches[1].images.__cuda_array_interface__
            assert described == {"version": 3, "shape": (2, 3, 32, 48), "typestr": "<f2", "strides": None,
                                 "data": (batches[1].images.data_ptr, False), "stream": None}
""")


def test_what_cannot_be_had_is_a_buffer_error(in_client: Run) -> None:
    in_client("""
with session() as opened:
    images = opened.get(ask(opened, 1)).images
    stream = Cuda().stream()
    Consumed(images.__dlpack__(stream=stream, dl_device=(2, 0), copy=False)).let_go()
    wishes = [{"dl_device": (1, 0)}, {"dl_device": (2, 1)}, {"copy": True}, *({"stream": named} for named in (0, -2, "1", True, 1 << 64))]
    for wish in wishes:
        try:
            images.__dlpack__(**{"stream": stream, **wish})
        except BufferError:
            continue
        raise AssertionError(wish)
""")


def test_streams_by_the_handles_that_frameworks_have(in_client: Run) -> None:
    in_client("""
stream = Cuda().stream()
with one_batch() as (opened, batch):
    for handle in (stream, 0, None, 1, 2):  # PyTorch's default stream is 0, and so is CuPy's null stream
        batch.images.used_by(handle)
    assert len(batch.images._held.check().streams) == 2
    for handle in (True, "1", -2, 1 << 64, ctypes.c_void_p(stream), object()):
        try:
            batch.images.used_by(handle)
        except BufferError:
            continue
        raise AssertionError(handle)
    assert hasattr(batch.images, "__cuda_array_interface__")
    check_pixels(batch)
    del batch
    check_pixels(opened.get(ask(opened, 2)))
""")


def test_the_slot_is_the_consumers_until_he_lets_go(in_client: Run) -> None:
    in_client("""
cuda = Cuda()
stream = cuda.stream()
with one_batch() as (opened, batch):
    images = batch.images
    consumed = Consumed(images.__dlpack__(stream=stream, max_version=(1, 0)))
    assert not batch.release()  # somebody has it
    address, size = consumed.managed.tensor.data, 32 * 48 * 3
    del batch, images
    number = ask(opened, 2)
    millrace._core.full_slots.SHARED = 0.1  # it is warned of long before the time is over
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            opened.get(number, timeout=2.5)
        except millrace.DeadlineExceeded as why:
            assert "holds all 1 slots" in str(why)
        else:
            raise AssertionError
    assert [warning.category for warning in told] == [millrace.SlotsHeld]
    np.testing.assert_array_equal(cuda.read(address, size, stream).reshape(32, 48, 3), pixels_of(1))  # and no copy was made of it
    letting_go = threading.Thread(target=consumed.let_go)
    letting_go.start()
    letting_go.join()
    batch = opened.get(number)
    assert batch.images.data_ptr == address
    check_pixels(batch)

    cuda.fill(address, 0, size, stream)  # a program that has it may write to it
    batch.images.used_by(stream)
    assert not batch.images.numpy().any()
    del batch
    check_pixels(opened.get(ask(opened, 1)))  # and the next batch is whole
""")


def test_the_slot_goes_back_when_the_consumers_stream_has_done_its_work(in_client: Run) -> None:
    in_client("""
cuda = Cuda()
gate, stream, other = Gate(cuda), cuda.stream(), cuda.stream()
with one_batch() as (opened, batch):
    for named in (other, stream):  # the one that has done is no reason
        Consumed(batch.images.__dlpack__(stream=named)).let_go()
    gate.hold(stream)
    del batch
    soon(lambda: opened.leased == 0, "nobody refers to it")
    number = ask(opened, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nobody keeps it either
        try:
            opened.get(number, timeout=1)
        except millrace.DeadlineExceeded as why:
            assert "the GPU is at work on 1 of 1 that nobody refers to" in str(why), why
        else:
            raise AssertionError("the slot was given back while the stream was at work")
    assert not opened.closed
    gate.open()
    check_pixels(opened.get(number))
""")


def test_a_cuda_graph_may_be_captured_meanwhile(in_client: Run) -> None:
    in_client("""
from millrace._memory import cuda as _cuda
cuda, functions, seen = Cuda(), _cuda.driver()._functions, []

def mode():  # of this thread
    found, ignored = ctypes.c_int(), ctypes.c_int()
    cuda.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(found))
    ignored.value = found.value
    cuda.call("cuThreadExchangeStreamCaptureMode", ctypes.byref(ignored))
    return found.value

def watched(function):
    def call(*arguments):
        seen.append((mode(), threading.get_ident()))
        return function(*arguments)
    return call

for name in ("cuEventCreate", "cuEventRecord", "cuEventQuery", "cuMemUnmap", "cuMemcpyDtoHAsync_v2"):
    functions[name] = watched(functions[name])
stream = cuda.stream()
with one_batch() as (opened, batch):
    batch.images.used_by(stream)
    check_pixels(batch)
    del batch
    check_pixels(opened.get(ask(opened, 2)))
opened.close()
gc.collect()
assert {mode for mode, _ in seen} == {2}, seen  # relaxed
assert len({thread for _, thread in seen}) > 1 and mode() == 0  # and here it is what it was
""")


def test_memory_is_unmapped_when_the_session_is_closed_and_its_last_user_has_done(in_client: Run) -> None:
    in_client("""
cuda = Cuda()
gate, stream = Gate(cuda), cuda.stream()
opened = session(slots=2)
batch, queued = opened.get(ask(opened, 1)), opened.get(ask(opened, 2))
address = batch.images.data_ptr
opened.close()
del opened
check_pixels(batch)  # it outlives its session
queued.images.used_by(stream)
gate.hold(stream)
del queued
began = time.monotonic()
del batch
gc.collect()
assert time.monotonic() - began < 30, "it waited for the stream"
time.sleep(0.2)
assert cuda.is_mapped(address), "it was unmapped under the stream"
gate.open()
soon(lambda: not cuda.is_mapped(address), "it stays mapped")
""")


def test_to_wait_for_a_stream_for_long_takes_little_of_the_cpu(in_client: Run) -> None:
    in_client("""
from millrace._memory import cuda as _cuda
cuda = Cuda()
gate, stream = Gate(cuda), cuda.stream()
functions, looks = _cuda.driver()._functions, []
query = functions["cuEventQuery"]
functions["cuEventQuery"] = lambda event: looks.append(event) or query(event)
with one_batch() as (opened, batch):
    batch.images.used_by(stream)
    gate.hold(stream)
    del batch
    began = time.monotonic()
    soon(lambda: len(looks) > 10, "nobody looks")
    time.sleep(2)
    count, seconds = len(looks), time.monotonic() - began
    assert count < 500 * seconds, (count, seconds)  # of 2000 a second that half a millisecond has
    gate.open()
    check_pixels(opened.get(ask(opened, 1)))
""")


def test_a_stream_that_never_ends_keeps_nobody_waiting(in_client: Run) -> None:
    in_client("""
cuda = Cuda()
gate, stream = Gate(cuda), cuda.stream()
with one_batch() as (opened, batch):
    batch.images.used_by(stream)
    address = batch.images.data_ptr
    gate.hold(stream)
    del batch
    soon(lambda: opened.leased == 0, "nobody refers to it")
    time.sleep(0.1)  # its event is waited for
    began = time.monotonic()
assert time.monotonic() - began < 30, "close() waited for the stream"
del opened
gc.collect()
assert cuda.is_mapped(address)  # and the process ends
""")


def test_a_session_whose_slot_is_in_use_for_all_that_cuda_says_ends(in_client: Run) -> None:
    in_client("""
os.environ["SIM_CUDA_STRICT_HANDLES"] = "0"  # the stream is refused: NVIDIA's driver may do anything with it
cuda = Cuda()
stream = cuda.stream()
with one_batch() as (opened, batch):
    batch.images.used_by(stream)
    cuda.call("cuStreamDestroy_v2", ctypes.c_void_p(stream))
    del batch
    try:
        opened.get(ask(opened, 2), timeout=300)
    except millrace.FailedPrecondition as why:
        assert "CUDA: cuEventRecord: CUDA_ERROR_INVALID_HANDLE" in str(why), why
    else:
        raise AssertionError
""")


def test_a_forked_child_may_not_read_and_takes_nothing_from_its_parent(in_client: Run) -> None:
    in_client("""
opened = session()
batch = opened.get(ask(opened, 1))
images = batch.images
child = os.fork()
if child == 0:
    for use in (images.numpy, lambda: images.data_ptr, images.__dlpack__, lambda: images.device):
        try:
            use()
        except millrace.Forked:
            continue
        os._exit(1)
    if "of the process that forked this one" not in repr(images):
        os._exit(2)
    del batch, images, opened, use
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
check_pixels(batch)
del batch, images
check_pixels(opened.get(ask(opened, 2)))
opened.close()
""")


def test_what_the_daemon_does_not_have_or_this_process_not_see_is_said(
    in_client: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_for = """
try:
    session(memory={!r}, **{!r})
except millrace.{} as why:
    assert {!r} in str(why), why
else:
    raise AssertionError
assert client.ping() > 0
check_pixels((opened := session(memory="host")).get(ask(opened, 1)))
opened.close()
"""
    large = {"slots": 2, "slot_bytes": 1 << 40}
    in_client(ask_for.format("cuda:7", {}, "NotFound", 'there is no "cuda:7" here; this daemon has host, cuda:0'))
    in_client(ask_for.format("cuda:0", large, "ResourceExhausted", "memory.segments"))
    in_client(ask_for.format(7, {}, "InvalidRequest", "memory is a name, not 7"))
    (tmp_path / "libcuda.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    in_client(ask_for.format("cuda:0", {}, "Unsupported", "finds no NVIDIA driver"))


def test_devices_tell_the_uuid(gpu_daemon: millrace.PrivateDaemon) -> None:
    with millrace.connect(gpu_daemon.address) as client:
        found = {device.backend: device.properties.get("uuid") for device in client.devices()}

    assert found == {"cuda:0": UUIDS[0], "cpu": None}


def test_when_the_gpus_process_is_lost_what_has_come_stays_and_a_new_session_goes_on(in_client: Run) -> None:
    in_client("""
with session(slots=2) as opened:
    batch = opened.get(ask(opened, 1))
    (owner,) = owners()
    os.kill(owner, signal.SIGKILL)
    soon(lambda: owner not in owners(), "it does not end")
    try:
        for _ in range(200):
            opened.get(ask(opened, 2, 3))
    except millrace.DaemonUnavailable as why:
        print(why)
    else:
        raise AssertionError
    check_pixels(batch)

def again():
    try:
        with session() as other:
            check_pixels(other.get(ask(other, 4)))
        return True
    except (millrace.DaemonUnavailable, millrace.ResourceExhausted, millrace.NotFound):
        return False

soon(again, "no new session")
""")
