"""PyTorch: DLPack, the loader, torchvision's transforms and its pixels. Run them with PyTorch and torchvision installed."""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import millrace
import numpy as np
import pytest

from gpu_clients import Run
from pictures import COUNT, EACH, SIZE, pixels_of, png, png_of

torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing of millrace.torch is tested")
transforms = pytest.importorskip("torchvision.transforms.v2", reason="torchvision is not installed: nothing of millrace.torch is tested")
functional = pytest.importorskip("torchvision.transforms.v2.functional")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: nothing is compared with its pixels")

import millrace.torch  # noqa: E402
from millrace._loader.loader import BaseLoader  # noqa: E402

pytestmark = pytest.mark.torch
OWN_SIZE = millrace.Recipe(resize=millrace.ExactSize(SIZE))


@pytest.fixture
def make(daemon: millrace.PrivateDaemon, folder: Path) -> Any:
    made = []

    def loader(*arguments: Any, **options: Any) -> millrace.torch.Loader:
        options = {"batch_size": 8, "address": daemon.address, **options}
        made.append(millrace.torch.Loader(folder, *arguments, **options))
        return made[-1]

    yield loader
    for one in made:
        one.close()


@pytest.mark.parametrize("dtype", ["uint8", "float16", "bfloat16", "float32"])
def test_from_dlpack_shares_the_memory(client: millrace.Client, dtype: Any) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC", dtype=dtype, range="raw")
    with client.session(recipe, batch=2, slots=2) as session:
        batch = session.get(session.submit([png(0), png(1)]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that PyTorch knows no read-only tensors
            tensor = torch.from_dlpack(batch.images)
        assert tensor.dtype == getattr(torch, dtype)
        assert tensor.data_ptr() == batch.images.bits().ctypes.data
        np.testing.assert_array_equal(tensor[1].float().numpy(), pixels_of(1))

        assert batch.release() is False
        for number in range(2, 8):
            assert len(session.get(session.submit([png(number)]))) == 1
        np.testing.assert_array_equal(tensor[0].float().numpy(), pixels_of(0))
        del tensor
        gc.collect()
        assert not [end for end in session._segment.leases if end() is not None]  # type: ignore[union-attr]


def test_it_yields_tensors_in_the_slots(make: Any) -> None:
    loader = make(OWN_SIZE)
    seen = 0
    for images, labels in loader:
        assert images.shape[1:] == (3, SIZE.height, SIZE.width)
        assert (images.dtype, labels.dtype) == (torch.uint8, torch.int64)
        assert images.data_ptr() == loader.batch.images.numpy().ctypes.data
        for image, label, number in zip(images, labels, loader.batch.ids, strict=True):
            np.testing.assert_array_equal(image.permute(1, 2, 0).numpy(), pixels_of(int(number)))
            assert int(label) == number // EACH
            seen += 1
    assert seen == COUNT


IN_PLACE: dict[str, Any] = {
    "div_": lambda images: images.div_(255),
    "-=": lambda images: images.__isub__(1),
    "[0] = 0": lambda images: images.__setitem__(0, 0),
    "numpy() -=": lambda images: images.numpy().__isub__(1),
    "Normalize": transforms.Normalize([0.5] * 3, [0.5] * 3, inplace=True),
    "RandomErasing": transforms.RandomErasing(p=1, inplace=True),
    "ReLU": lambda images: torch.nn.ReLU(inplace=True)(images.sub_(0.5)),
    "Dropout": torch.nn.Dropout(inplace=True),
}


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("kind", IN_PLACE)
def test_in_place_operations_change_this_batch_and_no_other(make: Any, kind: str, memory_format: Any) -> None:
    loader = make(OWN_SIZE, dtype=torch.float32, slots=3, memory_format=memory_format, shuffle=True)
    for _ in range(4):
        for images, _ in loader:
            expected = np.stack([pixels_of(int(number)).transpose(2, 0, 1) for number in loader.batch.ids]) / np.float32(255)
            np.testing.assert_allclose(images.numpy(), expected, atol=1e-6)
            IN_PLACE[kind](images)
            assert not np.allclose(images.numpy(), expected, atol=1e-6)


def test_lists_and_predictions_that_keep_their_batches(make: Any) -> None:
    whole = torch.from_numpy(np.stack([pixels_of(number).transpose(2, 0, 1) for number in range(COUNT)]))
    with pytest.warns(millrace.SlotsHeld):
        assert torch.equal(torch.cat([images for images, _ in list(make(OWN_SIZE))]), whole)
    with pytest.warns(millrace.SlotsHeld):
        assert torch.equal(torch.cat([images.flatten(1) for images, _ in make(OWN_SIZE)]), whole.flatten(1))


class InPlace(millrace.torch.Loader):
    """Gives out batches where they are, and copies where many are kept, as the loader does in a GPU's memory; here in the host's."""

    def _opened(self) -> Any:
        self._moves = True
        return BaseLoader._opened(self)

    def _convert(self, batch: millrace.Batch, labels: Any) -> tuple[Any, Any]:
        return batch.views, torch.from_numpy(batch.labels)

    def _moved(self, item: tuple[Any, Any]) -> tuple[Any, Any]:
        return self._in_place(item[0]), item[1]


@pytest.mark.parametrize("views", [0, 3])
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_a_loop_that_keeps_batches_in_place_gets_copies_when_one_slot_is_left(daemon: Any, folder: Path, slots: int, views: int) -> None:
    recipe = millrace.Recipe.of_views([OWN_SIZE] * views) if views else OWN_SIZE
    whole = np.stack([pixels_of(number).transpose(2, 0, 1) for number in range(COUNT)])
    with (
        InPlace(folder, recipe, batch_size=7, slots=slots, address=daemon.address) as loader,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", millrace.SlotsHeld)
        kept, in_place = [], []
        for images, _ in loader:
            kept.append(images[-1])
            in_place.append(images[-1].data_ptr() == loader.batch.views[-1].numpy().ctypes.data)  # type: ignore[union-attr]
        assert in_place == [n < slots - 1 for n in range(len(loader))]
        np.testing.assert_array_equal(torch.cat(kept).numpy(), whole)
        del kept, images
        assert [image for images, _ in loader for image in images]


def test_batches_that_are_copied_on_are_read_where_memory_can_be_page_locked(make: Any) -> None:
    for device, shares in (("cpu", False), ("meta", True)):
        loader = make(OWN_SIZE, device=device)
        next(iter(loader))
        memory, images = loader._session.memory(), loader.batch.images.numpy()
        assert np.shares_memory(images, memory) is shares
        assert images.flags.writeable is not shares


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, for which memory is page-locked")
def test_without_an_accelerator_pin_memory_is_a_warning(make: Any) -> None:
    loader = make(OWN_SIZE, pin_memory=True)

    with pytest.warns(UserWarning, match="pin_memory=True has no effect") as told:
        images, labels = next(iter(loader))
    rest = sum(len(labels) for _, labels in loader)

    assert [warning.filename for warning in told] == [__file__]
    assert (len(images), len(labels), rest) == (8, 8, COUNT)
    assert images.sub_(1).is_pinned() is False


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_what_needs_no_gpu_of_a_loader_for_one_is_there_without_one(make: Any) -> None:
    loader = make(OWN_SIZE, device="cuda")

    assert (len(loader), loader.classes, loader._session.memory_name) == (8, ("ant", "bee", "cat"), "host")


def test_a_training_loop_written_for_dataloader(make: Any) -> None:
    loader = make(millrace.torch.from_torchvision(_training()), shuffle=True, drop_last=True)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 24 * 24, 3))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    for epoch in range(2):
        loader.set_epoch(epoch)
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            steps += 1
    assert steps == 2 * len(loader)
    assert np.isfinite(loss.item())


def test_channels_last_is_written_so(make: Any) -> None:
    images, _ = next(iter(make(OWN_SIZE, memory_format=torch.channels_last)))
    assert images.shape == (8, 3, SIZE.height, SIZE.width)
    assert images.is_contiguous(memory_format=torch.channels_last)
    np.testing.assert_array_equal(images[5].permute(1, 2, 0).numpy(), pixels_of(5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, "float32"])
def test_dtype(make: Any, dtype: Any) -> None:
    images, _ = next(iter(make(OWN_SIZE, dtype=dtype)))
    assert images.dtype == (torch.float32 if dtype == "float32" else dtype)
    np.testing.assert_allclose(images[3].permute(1, 2, 0).float().numpy(), pixels_of(3) / np.float32(255), atol=4e-3)


def test_wrong_arguments(make: Any) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"is torch\.int64"):
        make(dtype=torch.int64)
    with pytest.raises(millrace.InvalidRequest, match="memory_format"):
        make(memory_format=torch.preserve_format)


def test_state_goes_through_torch_save(make: Any, tmp_path: Path) -> None:
    loader = make(OWN_SIZE, shuffle=True)
    iterator = iter(loader)
    seen = []
    for _ in range(3):
        next(iterator)
        seen += loader.batch.ids.tolist()
    torch.save({"loader": loader.state_dict()}, tmp_path / "checkpoint.pt")

    other = make(OWN_SIZE, shuffle=True)
    other.load_state_dict(torch.load(tmp_path / "checkpoint.pt")["loader"])
    for _ in other:
        seen += other.batch.ids.tolist()
    assert sorted(seen) == list(range(COUNT))


DISTRIBUTED = """
import sys, torch, torch.distributed, millrace, millrace.torch
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=int(sys.argv[4]), world_size=2)
with millrace.torch.Loader(sys.argv[2], millrace.Recipe.train(24), batch_size=8, shuffle=True, address=sys.argv[1]) as loader:
    for _ in loader:
        print(*loader.batch.ids)
torch.distributed.destroy_process_group()
"""


def test_ranks_of_torch_distributed(daemon: millrace.PrivateDaemon, folder: Path, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", DISTRIBUTED, daemon.address, str(folder), str(tmp_path / "store"), str(rank)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    seen: list[int] = []
    for process in ranks:
        output, _ = process.communicate(timeout=900)
        assert process.returncode == 0
        seen += map(int, output.split())
    assert sorted(seen) == list(range(COUNT))


# ------------------------------------------------------------------------------------------------------------- torchvision


def _training(size: int = 24) -> Any:
    return transforms.Compose(
        [
            transforms.ToImage(),
            transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
            transforms.RandomHorizontalFlip(0.25),
            transforms.ToDtype(torch.float32, scale=True),
            transforms.Normalize((0.5, 0.4, 0.3), (0.2, 0.2, 0.3)),
        ]
    )


def test_translations() -> None:
    translate = millrace.torch.from_torchvision
    assert translate(_training()) == millrace.Recipe(
        crop=millrace.RandomResizedCrop((0.2, 1.0), (3 / 4, 4 / 3)),
        resize=millrace.ExactSize(millrace.Size(24, 24)),
        flip_probability=0.25,
        dtype="float32",
        normalise=millrace.Normalise((0.5, 0.4, 0.3), (0.2, 0.2, 0.3)),
    )
    evaluate = [transforms.Resize(256, interpolation=transforms.InterpolationMode.BICUBIC), transforms.CenterCrop((224, 200))]
    assert translate(evaluate) == millrace.Recipe(
        resize=millrace.ShorterSide(256), filter="bicubic", centre_crop=millrace.Size(width=200, height=224)
    )
    assert translate([transforms.Resize(8, max_size=9)]).resize == millrace.ShorterSide(8, longest=9)
    assert translate([transforms.Resize(None, max_size=9)]).resize == millrace.LongerSide(9)
    assert translate([transforms.Resize((10, 20))]).resize == millrace.ExactSize(millrace.Size(width=20, height=10))
    eight = millrace.Size(8, 8)
    assert translate([transforms.CenterCrop(8)]) == millrace.Recipe(pad=millrace.Pad(to=eight), centre_crop=eight)
    assert translate([transforms.CenterCrop(8), transforms.Resize(9)]).crop == millrace.CentreCrop(eight)
    assert translate([transforms.ToDtype(torch.bfloat16)]).range == "raw"
    flip_last = [transforms.ToDtype(torch.float32, scale=True), transforms.RandomHorizontalFlip()]
    assert translate(flip_last) == millrace.Recipe(dtype="float32", flip_probability=0.5)


def test_translation_of_a_models_preset() -> None:
    from torchvision.models import ResNet18_Weights

    recipe = millrace.torch.from_torchvision(ResNet18_Weights.DEFAULT.transforms())
    assert recipe == millrace.Recipe.evaluate(256, 224).normalised("float32")


def _max_size_changed(resize: Any, max_size: int | None) -> Any:
    """What torchvision's constructor refuses and an attribute can still say."""
    resize.max_size = max_size
    return resize


def test_what_cannot_be_translated_is_named() -> None:
    nearest = transforms.InterpolationMode.NEAREST
    cases: list[tuple[list[Any], str]] = [
        ([torch.nn.ReLU()], "ReLU is not something that the daemon does.*Apply it to each image"),
        ([functools.partial(transforms.Resize, 8)], "call it first"),
        ([transforms.Resize(8), transforms.RandomCrop(9)], "RandomCrop to 9 x 9 is larger than an image of 8 x 8"),
        ([transforms.Lambda(lambda image: image)], "Lambda is not"),
        ([lambda image: image], "function is not"),
        ([_max_size_changed(transforms.Resize(8, max_size=9), 8)], r"max_size=8\) must be over the size, 8"),
        ([_max_size_changed(transforms.Resize((8, 9)), 10)], "with an exact size"),
        ([_max_size_changed(transforms.Resize(None, max_size=9), None)], "without max_size"),
        ([transforms.Resize(8, antialias=False)], "antialias=False"),
        ([transforms.Resize(8, interpolation=nearest)], "NEAREST_EXACT"),
        ([transforms.RandomHorizontalFlip(), transforms.Resize(8)], "Resize after RandomHorizontalFlip"),
        ([transforms.ToDtype(torch.float16), transforms.Resize(8)], "Resize after ToDtype"),
        ([transforms.Normalize([0.5], [0.5])], "needs floats"),
        ([transforms.ToDtype(torch.float32), transforms.Normalize([0.5], [0.5])], "scale=True"),
        ([transforms.ToDtype(torch.int32)], "conversion to torch.int32"),
        ([transforms.Resize(8), transforms.Resize(9)], "Resize after Resize"),
    ]
    for steps, message in cases:
        with pytest.raises(millrace.Unsupported, match=message):
            millrace.torch.from_torchvision(transforms.Compose(steps))


def _large_pictures() -> list[Any]:
    """Smooth pictures with some noise, of many sizes, uint8 height x width x 3."""
    random = np.random.default_rng(7)
    pictures = []
    for height, width in ((120, 200), (333, 250), (97, 301), (400, 400), (64, 500)):
        y, x = np.mgrid[0:height, 0:width]
        waves = [127 + 90 * np.sin(x / a + y / b + c) for a, b, c in random.uniform(5, 40, (3, 3))]
        pictures.append(np.clip(np.stack(waves, -1) + random.normal(0, 12, (height, width, 3)), 0, 255).astype(np.uint8))
    return pictures


def test_pixels_against_torchvision(client: millrace.Client, record_property: Any, capsys: Any) -> None:
    """With the daemon's boxes and flips: within 1/255 of torchvision's antialiased resize of uint8 tensors."""
    size = 96
    pipeline = transforms.Compose(
        [transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(), transforms.ToDtype(torch.float32, scale=True)]
    )
    pictures = _large_pictures() * 6
    errors = []
    with client.session(millrace.torch.from_torchvision(pipeline), batch=5) as session:
        for first in range(0, len(pictures), 5):
            part = pictures[first : first + 5]
            samples = [millrace.Sample(png_of(picture), id=first + k) for k, picture in enumerate(part)]
            batch = session.get(session.submit(samples, seed=1))
            for image, picture, box, flip in zip(batch.images.numpy(), part, batch.boxes.tolist(), batch.flips, strict=True):
                left, top, width, height = box
                expected = torch.from_numpy(picture).permute(2, 0, 1)
                expected = functional.resized_crop(expected, top, left, height, width, [size, size], antialias=True)
                expected = functional.horizontal_flip(expected) if flip else expected
                errors.append(np.abs(image - functional.to_dtype(expected, torch.float32, scale=True).numpy()))
    largest, mean = max(error.max() for error in errors) * 255, float(np.mean(errors)) * 255
    with capsys.disabled():
        print(f"\n  against torchvision, in 1/255: largest error {largest:.3f}, mean {mean:.4f}")
    assert largest <= 1 + 1e-3


def test_evaluation_pixels_against_torchvision(client: millrace.Client) -> None:
    pipeline = transforms.Compose([transforms.Resize(100), transforms.CenterCrop(90)])
    pictures = _large_pictures()
    with client.session(millrace.torch.from_torchvision(pipeline), batch=5) as session:
        batch = session.get(session.submit([png_of(picture) for picture in pictures]))
        for image, picture in zip(batch.images.numpy(), pictures, strict=True):
            expected = pipeline(torch.from_numpy(picture).permute(2, 0, 1)).numpy()
            assert np.abs(image.astype(int) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize(
    "resize", [transforms.Resize(100, max_size=130), transforms.Resize(30, max_size=31), transforms.Resize(None, max_size=77)]
)
def test_sizes_and_pixels_of_a_bounded_resize_are_torchvisions_of_pillow_images(client: millrace.Client, resize: Any) -> None:
    recipe = dataclasses.replace(millrace.torch.from_torchvision(resize), packing="packed", layout="NHWC")
    pictures = _large_pictures()
    with client.session(recipe, batch=5, slot_bytes=1 << 20) as session:
        batch = session.get(session.submit([png_of(picture) for picture in pictures]))
        for k, picture in enumerate(pictures):
            np.testing.assert_array_equal(batch.image(k).numpy(), np.asarray(resize(Image.fromarray(picture))))


def test_a_centre_crop_after_a_bounded_resize_is_torchvisions_of_pillow_images(client: millrace.Client) -> None:
    pipeline = transforms.Compose([transforms.Resize(100, max_size=130), transforms.CenterCrop((16, 90))])
    pictures = [picture for picture in _large_pictures() if picture.shape != (333, 250, 3)]  # upright: 86 pixels wide
    with client.session(dataclasses.replace(millrace.torch.from_torchvision(pipeline), layout="NHWC"), batch=4) as session:
        batch = session.get(session.submit([png_of(picture) for picture in pictures]))
        for image, picture in zip(batch.images.numpy(), pictures, strict=True):
            np.testing.assert_array_equal(image, np.asarray(pipeline(Image.fromarray(picture))))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_images_of_a_gpus_memory_for_the_cpu_are_copies(in_client: Run, dtype: str) -> None:
    in_client(f"""
import torch
import millrace.torch

def epoch(memory):
    recipe = millrace.Recipe.train(24)
    with millrace.torch.Loader(FOLDER, recipe, address=sys.argv[1], batch_size=8, memory=memory, dtype={dtype!r}, device="cpu") as loader:
        kept = [(images.clone(), labels.tolist()) for images, labels in loader]
        assert loader._session.memory_name == memory
        return kept

for (there, labels), (here, others) in zip(epoch("cuda:0"), epoch("host"), strict=True):
    assert there.device.type == "cpu" and there.dtype == torch.{dtype} and there.shape == here.shape
    assert torch.equal(there, here) and labels == others
""")
