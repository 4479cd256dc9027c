"""JAX in several processes: global arrays of process-local batches; the example computes on two what it computes on one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import millrace
import pytest

from pictures import COUNT
from processes import MODULES

pytest.importorskip("jax", reason="JAX is not installed: its processes are not tried")
pytestmark = pytest.mark.jax
EXAMPLE = Path(__file__).parents[3] / "client" / "python" / "examples" / "train_jax.py"


def together(daemon: millrace.PrivateDaemon, processes: int, *command: object, devices: int = 1) -> list[str]:
    """What as many processes print that run ``command`` COORDINATOR PROCESSES PROCESS."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"JAX_PLATFORMS": "cpu", "MILLRACE_SOCKET": daemon.address, "PYTHONWARNINGS": "ignore"}
    environment["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={devices}"
    commands = [[*map(str, command), coordinator, str(processes), str(number)] for number in range(processes)]
    running = [
        subprocess.Popen([sys.executable, *each], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for each in commands
    ]
    outputs = [process.communicate(timeout=900) for process in running]
    assert [process.returncode for process in running] == [0] * processes, outputs
    return [output for output, _ in outputs]


def example(folder: Path) -> list[object]:
    """A program that runs the example with its arguments by name."""
    code = "import runpy, sys; _, path, *rest, sys.argv[1:] = *sys.argv[:-3], sys.argv[-3:]"
    code += (
        "; sys.argv = [path, *rest, *[part for pair in zip(('--coordinator', '--processes', '--process'), sys.argv[1:]) for part in pair]]"
    )
    code += "; runpy.run_path(path, run_name='__main__')"
    return ["-c", code, EXAMPLE, folder, "--batch", 12, "--size", 24, "--ids"]


def said(output: str, what: str) -> list[list[str]]:
    return [line.split()[1:] for line in output.splitlines() if line.startswith(f"{what} ")]


@pytest.mark.long
def test_two_processes_compute_what_one_does(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    (one,) = together(daemon, 1, *example(folder))
    both = together(daemon, 2, *example(folder), devices=2)

    losses = [[float(loss) for _, loss in said(output, "loss")] for output in (one, *both)]
    assert len(losses[0]) == 10
    assert losses[1] == losses[2] == pytest.approx(losses[0], rel=1e-4)
    for epoch in range(2):
        rows = [[row[1:] for row in said(output, "ids") if row[0] == str(epoch)] for output in (one, *both)]
        assert [len(row) for log in rows for row in log] == [12] * 5 + [6] * 10
        assert sorted(int(n) for log in rows[1:] for row in log for n in row) == list(range(COUNT))
        for step in range(5):
            assert sorted(rows[0][step]) == sorted(rows[1][step] + rows[2][step])


SHARDINGS = """
import sys
import jax, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import millrace, millrace.jax
sys.path.insert(0, sys.argv[1])
from pictures import SIZE, pixels_of

folder, coordinator, processes, process = sys.argv[2:]
jax.config.update("jax_cpu_collectives_implementation", "gloo")
jax.distributed.initialize(coordinator, int(processes), int(process))
own_size = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
devices = np.array(jax.devices()).reshape(2, 2)  # a row for each process

def loader(sharding, recipe=own_size, **options):
    return millrace.jax.Loader(folder, recipe, device=sharding, **{"batch_size": 4, "shuffle": True, **options})

def refused(words, sharding, **options):
    try:
        with loader(sharding, **options) as made:
            next(iter(made))
    except millrace.InvalidRequest as why:
        assert words in str(why), why
    else:
        raise AssertionError(f"not refused: {words}")

flat = NamedSharding(Mesh(devices.reshape(-1), "data"), P("data"))
with loader(flat) as made:
    for seen, (images, labels) in enumerate(made):
        each = len(made.batch.ids)
        assert each == (4 if seen < 7 else 2)
        assert images.shape == (2 * each, SIZE.height, SIZE.width, 3) and labels.shape == (2 * each,)
        assert images.sharding.is_equivalent_to(flat, 4) and labels.sharding.is_equivalent_to(flat, 1)
        assert [s.data.shape[0] for s in images.addressable_shards] == [each // 2, each // 2]
        parts = sorted(images.addressable_shards, key=lambda shard: shard.index[0].start)
        assert [part.index[0].start for part in parts] == [each * int(process), each * int(process) + each // 2]
        ids = made.batch.ids.tolist()
        local = np.concatenate([np.asarray(part.data) for part in parts])
        for image, number in zip(local, ids):
            np.testing.assert_array_equal(image, pixels_of(number))
        part = sorted(labels.addressable_shards, key=lambda shard: shard.index[0].start)
        assert np.concatenate([np.asarray(one.data) for one in part]).tolist() == [number // 20 for number in ids]

views = millrace.Recipe.of_views(own_size, millrace.Recipe(centre_crop=millrace.Size(8, 6), layout="NHWC"))
with loader(flat, views) as made:
    (whole, middle), labels = next(iter(made))
    assert whole.shape[0] == labels.shape[0] == 8 and middle.shape == (8, 6, 8, 3)
    assert whole.sharding.is_equivalent_to(flat, 4) and middle.sharding.is_equivalent_to(flat, 4)
    for part in middle.addressable_shards:
        number = made.batch.ids.tolist()[part.index[0].start - 4 * int(process)]
        np.testing.assert_array_equal(part.data[0], pixels_of(number)[13:19, 20:28])

rows = NamedSharding(Mesh(devices, ("data", "model")), P("data", None, None, None))  # labels have one axis
with loader(rows) as made:
    images, labels = next(iter(made))
    assert images.shape[0] == labels.shape[0] == 8 and images.addressable_shards[0].data.shape[0] == 4

refused("does not divide the images", NamedSharding(flat.mesh, P()))
refused("does not divide the images", NamedSharding(Mesh(devices, ("data", "model")), P(None, "data")))
refused('choose on_error="substitute"', flat, shuffle=False)
refused('choose on_error="substitute"', flat, on_error="skip")
refused('shard_tail="uneven"', flat, shard_tail="uneven")
refused("choose another batch_size", flat, batch_size=3)
with loader(flat) as made:
    try:
        made._global.check(millrace._loader.ranks.Ranks(0, 2), 29, False)
    except millrace.InvalidRequest as why:
        assert "a last batch of 1 images" in str(why) and "choose drop_last=True" in str(why)
    else:
        raise AssertionError("a batch that cannot be divided")
    made._global.check(millrace._loader.ranks.Ranks(0, 2), 29, True)
refused("give rank= and world_size=2", flat, rank=0, world_size=1)
columns = NamedSharding(Mesh(devices.T, ("data", "model")), P("data"))  # both processes have a device of every group
refused("does not divide the images", columns)
jax.distributed.shutdown()
print("done")
"""


def test_the_parts_of_a_sharding_and_what_cannot_be_divided(daemon: millrace.PrivateDaemon, folder: Path) -> None:
    outputs = together(daemon, 2, "-c", SHARDINGS, MODULES, folder, devices=2)

    assert outputs == ["done\n", "done\n"]
