"""A GPU's memory that another process exports: found, mapped, read, let go, and what is said where that cannot be.

The driver is simulated (gpus.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import millrace
import pytest

from gpus import UUID, UUIDS, driver_folder, simulated
from processes import python

EXPORT = """
import array, socket, sys
import numpy as np
from gpus import Cuda
with socket.socket(fileno=int(sys.argv[1])) as other:
    content = np.random.default_rng(7).integers(0, 256, int(sys.argv[2]), np.uint8)
    socket.send_fds(other, [b"."], [Cuda().exported(content)])
"""

# Exports the bytes in another process, which has ended before they are read, and maps them as a session of two slots.
IMPORT = """
import gc, os, socket, sys
import numpy as np
from gpus import UUID, Cuda
from millrace._memory.device_memory import DeviceMemory
from processes import python

SIZE = 2 * 75776
ours, theirs = socket.socketpair()
with python(EXPORT, str(theirs.fileno()), str(SIZE), pass_fds=(theirs.fileno(),)) as exporter:
    theirs.close()
    _, (descriptor,), _, _ = socket.recv_fds(ours, 1, 1)
    output, errors = exporter.communicate()
    assert exporter.returncode == 0, errors
expected = np.random.default_rng(7).integers(0, 256, SIZE, np.uint8)
"""


@pytest.fixture(autouse=True)
def gpus(tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    with simulated(tmp_path, STRICT=0) as patch:
        yield patch


def run(code: str) -> str:
    with python(f"EXPORT = {EXPORT!r}\n{code}") as process:
        output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output


def test_what_another_process_has_exported_is_read_when_that_one_has_ended() -> None:
    run(
        IMPORT
        + """
memory = DeviceMemory(UUID, descriptor, SIZE, 2, {})
assert (memory.name, memory.size, memory.stride) == ("cuda:0", SIZE, SIZE // 2)
np.testing.assert_array_equal(memory.copied(memory.address, SIZE, ()), expected)
np.testing.assert_array_equal(memory.copied(memory.address + 5, 77, ()), expected[5:82])
assert memory.copied(memory.address, 0, ()).shape == (0,)
"""
    )


@pytest.mark.parametrize("reach", [True, False])
def test_other_gpus_of_the_process_read_it_where_they_reach_it(gpus: pytest.MonkeyPatch, reach: bool) -> None:
    gpus.setenv("SIM_CUDA_DEVICES", "2")
    gpus.setenv("SIM_CUDA_PEERS", str(int(reach)))
    run(
        IMPORT
        + f"""
memory = DeviceMemory(UUID, descriptor, SIZE, 2, {{}})
other = Cuda(1)
try:
    np.testing.assert_array_equal(other.read(memory.address, SIZE, other.stream()), expected)
except AssertionError as error:
    assert not {reach}, error
    assert "cuMemcpyDtoHAsync_v2: 1" in str(error), error
else:
    assert {reach}
"""
    )


def test_it_can_be_written_to_all_along_and_the_descriptor_is_the_callers() -> None:
    run(
        IMPORT
        + """
memory = DeviceMemory(UUID, descriptor, SIZE, 2, {})
os.fstat(descriptor)
again = DeviceMemory(UUID, descriptor, SIZE, 2, {})
cuda = Cuda()
stream = cuda.stream()
cuda.fill(memory.address + SIZE - 100, 0x11, 100, stream)
expected[-100:] = 0x11
np.testing.assert_array_equal(again.copied(again.address, SIZE, (stream,)), expected)
"""
    )


def test_the_callers_context_stays_current_and_the_last_user_unmaps() -> None:
    run(
        IMPORT
        + """
cuda = Cuda()
cuda.call("cuCtxSetCurrent", None)
before = DeviceMemory(UUID, descriptor, SIZE, 2, {})
assert cuda.current() is None
del before
assert cuda.current() is None
cuda.call("cuCtxSetCurrent", cuda.context)
memory = DeviceMemory(UUID, descriptor, SIZE, 2, {})
memory.copied(memory.address, SIZE, ())
assert cuda.current() == cuda.context.value
address, end = memory.address, memory.address + SIZE - 1
assert cuda.is_mapped(address) and cuda.is_mapped(end)
del memory
gc.collect()
assert not cuda.is_mapped(address)
assert cuda.current() == cuda.context.value
"""
    )


def test_a_size_that_is_not_the_allocations_is_refused_and_nothing_stays_behind() -> None:
    run(
        IMPORT
        + """
import millrace
from millrace._memory import cuda as _cuda
before = []
wrong = ((4 << 20, 2, millrace.FailedPrecondition), (0, 1, millrace.InternalError), (SIZE, 7, millrace.InternalError))
for size, slots, error in wrong * 2:
    try:
        DeviceMemory(UUID, descriptor, size, slots, {})
    except error as why:
        assert error is millrace.InternalError or "CUDA: cuMemMap: CUDA_ERROR_INVALID_VALUE" in str(why), why
    else:
        raise AssertionError(size)
    before.append(sorted(os.listdir("/proc/self/fd")))
assert before[0] == before[-1]  # the first has opened what the driver keeps
assert _cuda.driver().result("cuDevicePrimaryCtxRelease_v2", _cuda.driver().device(0)) != 0  # nobody retains it any more
"""
    )


def test_a_forked_child_is_refused_and_leaves_its_parents_memory_alone() -> None:
    assert (
        run(
            IMPORT
            + """
import millrace
from millrace._memory import cuda as _cuda
memory = DeviceMemory(UUID, descriptor, SIZE, 2, {})
child = os.fork()
if child == 0:
    try:
        _cuda.driver()
    except millrace.Forked as why:
        print(why, flush=True)
    assert _cuda.uuid_of(0) is None
    del memory
    gc.collect()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
np.testing.assert_array_equal(memory.copied(memory.address, SIZE, ()), expected)
"""
        )
        == 'this process was forked from one that used CUDA, which does not survive fork(): start it with "spawn"\n'
    )


def test_a_child_of_a_process_that_used_cuda_by_itself_is_refused() -> None:
    run("""
import os
import millrace
from gpus import Cuda
from millrace._memory import cuda as _cuda
Cuda()
child = os.fork()
if child == 0:
    try:
        _cuda.driver()
    except millrace.Forked:
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
""")


FIND = """
import millrace
from millrace._memory import cuda as _cuda
try:
    print(_cuda.driver().find(bytes.fromhex({uuid!r})))
except millrace.Unsupported as why:
    print(why)
"""
FIND_FIRST = FIND.format(uuid=UUID.hex())


def test_a_gpu_is_found_by_its_uuid(gpus: pytest.MonkeyPatch) -> None:
    gpus.setenv("SIM_CUDA_DEVICES", "3")

    assert run(FIND.format(uuid=UUIDS[2].removeprefix("GPU-").replace("-", ""))) == "2\n"
    assert (
        run("from millrace._memory import cuda as _cuda; print(_cuda.uuid_text(_cuda.uuid_of(1)), _cuda.uuid_of(3), _cuda.uuid_of(-1))")
        == f"{UUIDS[1]} None None\n"
    )


def test_a_gpu_that_is_not_visible_is_named(gpus: pytest.MonkeyPatch) -> None:
    gpus.setenv("SIM_CUDA_DEVICES", "3")
    gpus.setenv("CUDA_VISIBLE_DEVICES", "2,1")

    said = run(FIND_FIRST)

    assert f"does not see {UUIDS[0]}" in said
    assert f"but {UUIDS[2]}, {UUIDS[1]}: add it to $CUDA_VISIBLE_DEVICES (now 2,1)" in said
    assert 'memory="host"' in said


def test_no_driver_no_gpu_and_a_gpu_that_shares_nothing(gpus: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gpus.setenv("SIM_CUDA_VMM", "0")
    assert f"{UUIDS[0]}, or its driver here, has no virtual memory management" in run(FIND_FIRST)

    gpus.setenv("SIM_CUDA_DEVICES", "0")
    assert "CUDA cannot be used in this process (error 100)" in run(FIND_FIRST).replace("CUDA_ERROR_NO_DEVICE", "error 100")

    (tmp_path / "libcuda.so.1").touch()  # no library: it hides one that the host may have
    gpus.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert "this process finds no NVIDIA driver of CUDA 12 or newer" in run(FIND_FIRST)


def test_uuids_are_written_as_nvidia_smi_does() -> None:
    from millrace._memory import cuda as _cuda

    uuid = bytes(range(16))

    assert _cuda.uuid_text(uuid) == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert _cuda.uuid_bytes(_cuda.uuid_text(uuid)) == uuid
    assert [_cuda.uuid_bytes(text) for text in ("", "GPU-", "GPU-0001", "GPU-zz")] == [None] * 4


def test_this_process_has_no_part_in_it() -> None:
    assert str(driver_folder()) in os.environ["LD_LIBRARY_PATH"]
    assert "libcuda" not in Path("/proc/self/maps").read_text()
    assert millrace.DeviceTensor.__mro__[1] is millrace.Tensor
