"""torchvision's reference training script with the patch of doc/train.md: its lines go into a small script of ours with the same names.

The script itself is not in torchvision's wheel, and is not copied here.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import millrace
import pytest

from pictures import COUNT

pytest.importorskip("torchvision", reason="PyTorch and torchvision are not installed: the patch of a training script is not tried")
pytestmark = pytest.mark.torch
PAGE = Path(__file__).parents[3] / "client" / "python" / "doc" / "train.md"

SCRIPT = '''
import argparse
import os

import torch
import torch.utils.data
import torchvision
from torch.utils.data.dataloader import default_collate
from torchvision.transforms import v2


class Preset:
    """As the script's presets: an object whose ``transforms`` are the steps."""

    def __init__(self, *steps):
        self.transforms = v2.Compose([*steps, v2.PILToTensor(), v2.ToDtype(torch.float, scale=True), v2.Normalize([0.5] * 3, [0.5] * 3)])

    def __call__(self, image):
        return self.transforms(image)


def load_data(train_dir, val_dir, args):
    dataset = torchvision.datasets.ImageFolder(train_dir, Preset(v2.RandomResizedCrop(24), v2.RandomHorizontalFlip()))
    dataset_test = torchvision.datasets.ImageFolder(val_dir, Preset(v2.Resize(32), v2.CenterCrop(24)))
    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(dataset)
        test_sampler = torch.utils.data.distributed.DistributedSampler(dataset_test, shuffle=False)
    else:
        train_sampler = torch.utils.data.RandomSampler(dataset)
        test_sampler = torch.utils.data.SequentialSampler(dataset_test)
    return dataset, dataset_test, train_sampler, test_sampler


def main(args):
    args.distributed = "WORLD_SIZE" in os.environ
    rank = 0
    if args.distributed:
        torch.distributed.init_process_group("gloo")
        rank = torch.distributed.get_rank()
    device = torch.device(args.device)
    dataset, dataset_test, train_sampler, test_sampler = load_data(args.data_path, args.data_path, args)
    mixup_or_cutmix = v2.MixUp(num_classes=len(dataset.classes)) if args.mixup_alpha else None
    collate_fn = default_collate if mixup_or_cutmix is None else lambda batch: mixup_or_cutmix(*default_collate(batch))
    data_loader = torch.utils.data.DataLoader(
        dataset, batch_size=args.batch_size, sampler=train_sampler, num_workers=args.workers, collate_fn=collate_fn
    )
    data_loader_test = torch.utils.data.DataLoader(
        dataset_test, batch_size=args.batch_size, sampler=test_sampler, num_workers=args.workers
    )
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(len(dataset.classes)))
    model(torch.zeros(1, 3, 24, 24))
    if args.distributed:
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        if args.distributed:
            train_sampler.set_epoch(epoch)
        labels = []
        for image, target in data_loader:
            image, target = image.to(device), target.to(device)
            loss = torch.nn.functional.cross_entropy(model(image), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            labels += target.tolist()
        tested = sum(len(target.to(device)) for image, target in data_loader_test)
        print(f"rank {rank} epoch {epoch}: {len(labels)} trained, {tested} tested of {len(data_loader_test.dataset)}; {labels}", flush=True)
    if args.distributed:
        torch.distributed.destroy_process_group()


parser = argparse.ArgumentParser()
parser.add_argument("data_path")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--device", default="cpu")
parser.add_argument("--mixup-alpha", type=float, default=0.0)
parser.add_argument("--ra-sampler", action="store_true")
main(parser.parse_args())
'''


def patched() -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    (patch,) = [block for block in blocks if "data_loader_test" in block]
    importing, loaders = patch.split("\n\n")
    assert patch.count("\n") < 10
    assert all(line.startswith("    ") for line in loaders.splitlines())
    script, replaced = re.subn(
        r"    data_loader = torch.*?\n    \)\n    data_loader_test = torch.*?\n    \)\n", loaders, SCRIPT, flags=re.S
    )
    assert replaced == 1
    return script.replace("import torch.utils.data\n", f"import torch.utils.data\n{importing}\n")


def run(daemon: millrace.PrivateDaemon, script: Path, *arguments: object, ranks: int = 1) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    environment |= {"OMP_NUM_THREADS": "1", "MILLRACE_SOCKET": daemon.address}
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks > 1 else []
    command = [sys.executable, *launcher, str(script), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


@pytest.mark.long
def test_the_patch_trains_and_tests_on_the_same_numbers_of_images(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before.py", tmp_path / "after.py"
    before.write_text(SCRIPT)
    after.write_text(patched())

    told = [run(daemon, before, folder), run(daemon, after, folder), run(daemon, after, folder, ranks=2)]

    assert [each.returncode for each in told] == [0, 0, 0], told
    for each in told[:2]:
        assert re.findall(r"(\d+) trained, (\d+) tested of (\d+)", each.stdout) == [(str(COUNT),) * 3] * 2
    both = told[2].stdout
    assert sorted(re.findall(r"rank (\d) epoch (\d): (\d+) trained, (\d+) tested", both)) == [
        (rank, epoch, "30", "30") for rank in "01" for epoch in "01"
    ]
    assert len(set(re.findall(r"; (\[.*?\])", both))) == 4  # another share a rank, another order an epoch


def test_what_the_patch_cannot_honour_is_refused(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "after.py"
    script.write_text(patched())

    told = run(daemon, script, folder, "--mixup-alpha", 0.2)

    assert told.returncode == 1
    assert "collate_fn" in told.stderr
    assert "InvalidRequest" in told.stderr or "Unsupported" in told.stderr
