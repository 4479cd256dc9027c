"""Batches on request: every kind of source, what comes back, what bad images do."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import millrace
import numpy as np
import pytest
from millrace.ring import Ring

from pictures import COUNT, SIZE, check_pixels, path_of, pixels_of, png, png_of


def test_paths_bring_the_pictures_pixels(session: millrace.Session, folder: Path) -> None:
    paths = [millrace.Sample(millrace.Path(path_of(folder, n)), id=n) for n in (0, 21, 59)]

    batch = session.get(session.submit(paths))

    assert batch.images.shape == (3, SIZE.height, SIZE.width, 3)
    assert batch.images.dtype == np.uint8
    assert batch.ids.tolist() == [0, 21, 59]
    check_pixels(batch)


def test_every_kind_of_path_is_taken(session: millrace.Session, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    path = path_of(folder, 5)
    sources = [path, Path(path), millrace.Path(path), os.path.relpath(path, folder)]

    batch = session.get(session.submit(sources))

    for image in batch.images.numpy():
        np.testing.assert_array_equal(image, pixels_of(5))


def test_inline_bytes(session: millrace.Session) -> None:
    data = png(7)

    batch = session.get(session.submit([data, bytearray(data), memoryview(data)]))

    for image in batch.images.numpy():
        np.testing.assert_array_equal(image, pixels_of(7))


def test_inline_bytes_over_a_mebibyte_are_refused_with_the_way_out(session: millrace.Session) -> None:
    with pytest.raises(millrace.InvalidRequest, match=r"1048577 bytes.*takes 1048576 .*limits\.inline_message.*Session\.ring"):
        session.submit([b"x" * ((1 << 20) + 1)])


def test_something_that_is_no_sample_is_named(session: millrace.Session) -> None:
    with pytest.raises(millrace.InvalidRequest, match="of type float"):
        session.submit([3.5])  # type: ignore[list-item]


def test_ring_brings_more_than_a_message_may(session: millrace.Session) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (700, 800, 3), np.uint8)
    ring = session.ring(4 << 20)
    room = ring.put(png_of(noise))
    assert room.length > 1 << 20

    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE), layout="NHWC")
    batch = session.get(session.submit([room], recipe=recipe))

    assert len(batch) == 1


def test_ring_room_is_free_again_when_its_batch_has_ended(session: millrace.Session) -> None:
    data = png(3)
    ring = session.ring(len(data) * 2)
    for _ in range(20):
        batch = session.get(session.submit([ring.put(data)]))
        np.testing.assert_array_equal(batch.images.numpy()[0], pixels_of(3))
        batch.release()


def test_full_ring_says_so(session: millrace.Session) -> None:
    ring = session.ring(4096)
    kept = ring.allocate(4000)
    with pytest.raises(millrace.ResourceExhausted, match="larger ring"):
        ring.allocate(200)
    with pytest.raises(millrace.InvalidRequest, match="larger"):
        ring.allocate(5000)
    del kept
    assert ring.allocate(4096).length == 4096


def test_ring_room_is_written_in_place(session: millrace.Session) -> None:
    data = png(11)
    ring = session.ring(1 << 16)
    room = ring.allocate(len(data))
    with room.view as view:
        view[:] = data

    batch = session.get(session.submit([room]))

    np.testing.assert_array_equal(batch.images.numpy()[0], pixels_of(11))


def test_ring_rooms_in_any_order_leave_no_hole() -> None:
    memfd = os.memfd_create("ring")
    os.ftruncate(memfd, 1 << 16)
    ring = Ring(memfd, 1 << 16)
    os.close(memfd)
    random = np.random.default_rng(0)
    rooms = []
    for _ in range(2000):
        if rooms and random.random() < 0.5:
            rooms.pop(int(random.integers(len(rooms))))
        else:
            try:
                rooms.append(ring.allocate(int(random.integers(1, 9000))))
            except millrace.ResourceExhausted:
                rooms.clear()
        extents = sorted((room.offset, room.length) for room in rooms)
        assert all(a + length <= b for (a, length), (b, _) in pairwise(extents))
    rooms.clear()
    assert ring.allocate(1 << 16).length == 1 << 16


def test_dataset_samples(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)

    batch = session.get(session.submit([millrace.DatasetSample(dataset.id, n) for n in (59, 0, 30)]))

    assert batch.ids.tolist() == [59, 0, 30]
    assert batch.labels.tolist() == [2, 0, 1]
    check_pixels(batch)


def test_a_label_is_what_was_given_even_zero_else_the_datasets_own(session: millrace.Session, folder: Path) -> None:
    dataset = session.dataset(folder)
    last = millrace.DatasetSample(dataset.id, 59)
    samples = [last, *(millrace.Sample(last, label=label) for label in (None, 0, -1, 7)), png(1), millrace.Sample(png(1), label=0)]

    batch = session.get(session.submit(samples))

    assert batch.labels.tolist() == [2, 2, 0, -1, 7, -1, 0]


def test_labels_ids_and_boxes_come_back(session: millrace.Session) -> None:
    box = millrace.Box(left=8, top=4, width=16, height=10)

    batch = session.get(session.submit([millrace.Sample(png(1), id=77, label=-5, box=box)]))

    assert batch.ids.tolist() == [77]
    assert batch.labels.tolist() == [-5]
    assert batch.boxes.tolist() == [list(box)]
    assert batch.sizes.tolist() == [list(SIZE)]
    assert batch.source_sizes.tolist() == [list(SIZE)]
    assert batch.status.tolist() == [0]
    assert batch.flips.tolist() == [False]
    assert batch.records["backend"].tolist() == [b"cpu"]


def test_random_choices_depend_on_seed_epoch_and_id_alone(session: millrace.Session) -> None:
    recipe = millrace.Recipe.train(24)
    samples = [millrace.Sample(png(n), id=n) for n in range(8)]

    def boxes(order: list[int], seed: int, epoch: int) -> dict[int, list[int]]:
        batch = session.get(session.submit([samples[n] for n in order], recipe=recipe, seed=seed, epoch=epoch))
        return dict(zip(batch.ids.tolist(), batch.boxes.tolist(), strict=True))

    first = boxes(list(range(8)), 3, 1)
    assert boxes([5, 2, 7, 0, 1, 3, 6, 4], 3, 1) == first
    assert boxes(list(range(8)), 3, 2) != first
    assert boxes(list(range(8)), 4, 1) != first


def test_flips_are_reported_as_made(session: millrace.Session) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE), flip_probability=0.5, layout="NHWC")

    batch = session.get(session.submit([png(2)] * 16, recipe=recipe))

    assert 0 < batch.flips.sum() < 16
    for image, flipped in zip(batch.images.numpy(), batch.flips, strict=True):
        np.testing.assert_array_equal(image, pixels_of(2)[:, ::-1] if flipped else pixels_of(2))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_packed_images_come_in_their_own_sizes(client: millrace.Client, layout: str) -> None:
    pictures = [pixels_of(0), pixels_of(1)[:20, :30].copy(), pixels_of(2)[:7, :48].copy()]
    recipe = millrace.Recipe(packing="packed", layout=layout)  # type: ignore[arg-type]
    with client.session(recipe, batch=4, slot_bytes=1 << 16) as session:
        batch = session.get(session.submit([png_of(picture) for picture in pictures]))
        for index, picture in enumerate(pictures):
            image = batch.image(index).numpy()
            np.testing.assert_array_equal(image if layout == "NHWC" else image.transpose(1, 2, 0), picture)
        with pytest.raises(IndexError):
            batch.image(3)


def test_one_image_of_a_batch(session: millrace.Session) -> None:
    batch = session.get(session.submit([png(4), png(5)]))
    np.testing.assert_array_equal(batch.image(1).numpy(), pixels_of(5))
    np.testing.assert_array_equal(batch.image(-2).numpy(), pixels_of(4))
    with pytest.raises(IndexError):
        batch.image(2)


def test_a_bad_image_fails_its_batch_by_name(session: millrace.Session, folder: Path) -> None:
    with pytest.raises(millrace.SampleFailed, match="sample 1") as caught:
        session.get(session.submit([png(0), b"no picture at all", path_of(folder, 1)]))
    (bad,) = caught.value.sample_errors
    assert (bad.index, bad.code) == (1, "INVALID_ARGUMENT")
    assert caught.value.batch_id is not None


def test_policies_for_bad_images(session: millrace.Session) -> None:
    samples = [millrace.Sample(png(0), id=0), millrace.Sample(b"bad", id=1), millrace.Sample(png(2), id=2)]

    skipped = session.get(session.submit(samples, on_error="skip"))
    assert skipped.ids.tolist() == [0, 2]
    assert [error.index for error in skipped.errors] == [1]
    check_pixels(skipped)

    zeroed = session.get(session.submit(samples, on_error="zero"))
    assert zeroed.ids.tolist() == [0, 1, 2]
    assert not zeroed.image(1).numpy().any()
    assert zeroed.status.tolist() == [0, 1, 0]

    substituted = session.get(session.submit(samples, on_error="substitute"))
    assert substituted.ids.tolist() == [0, 0, 2]
    check_pixels(substituted)


def test_a_batch_of_which_nothing_is_left_is_empty(session: millrace.Session) -> None:
    batch = session.get(session.submit([b"bad", b"worse"], on_error="skip"))
    assert len(batch) == 0
    assert batch.labels.tolist() == []
    assert len(batch.errors) == 2
    with pytest.raises(millrace.SampleFailed, match="no image of this batch is left"):
        _ = batch.images
    assert batch.release()


def test_a_path_that_may_not_be_read(session: millrace.Session) -> None:
    with pytest.raises(millrace.SampleFailed) as caught:
        session.get(session.submit(["/etc/hostname"]))
    assert caught.value.sample_errors[0].code == "PERMISSION_DENIED"


def test_batches_come_in_the_order_asked_for(session: millrace.Session) -> None:
    numbers = [session.submit([millrace.Sample(png(n), id=n)]) for n in range(3)]
    for number in reversed(numbers):
        batch = session.get(number)
        assert batch.id == number
        check_pixels(batch)


def test_waiting_for_what_does_not_come(session: millrace.Session) -> None:
    with pytest.raises(millrace.FailedPrecondition, match="submit one first"):
        session.get()
    with pytest.raises(millrace.NotFound, match="never submitted"):
        session.get(12345)
    number = session.submit([png(0)])
    session.get(number)
    with pytest.raises(millrace.NotFound, match="taken already"):
        session.get(number)


def test_holding_every_slot_is_explained(session: millrace.Session) -> None:
    held = [session.get(session.submit([png(n)])) for n in range(session.slots)]
    number = session.submit([png(9)])
    with pytest.raises(millrace.DeadlineExceeded, match="holds all 3 slots"):
        session.get(number, timeout=0.2)
    held.clear()
    assert len(session.get(number)) == 1


@pytest.mark.usefixtures("slots_are_waited_for")
def test_cancelled_batch(session: millrace.Session) -> None:
    held = [session.get(session.submit([png(n)])) for n in range(session.slots)]
    number = session.submit([png(9)])  # cannot begin: no slot is free
    session.cancel(number)
    with pytest.raises(millrace.Cancelled):
        session.get(number)
    assert len(held) == 3


@pytest.mark.usefixtures("slots_are_waited_for")
def test_a_deadline_passes_in_the_daemon(session: millrace.Session) -> None:
    held = [session.get(session.submit([png(n)])) for n in range(session.slots)]
    number = session.submit([png(9)], deadline=0.05)
    with pytest.raises(millrace.DeadlineExceeded):
        session.get(number)
    assert len(held) == 3


def test_wrong_choices_list_the_right_ones(session: millrace.Session) -> None:
    with pytest.raises(ValueError, match=r"Recipe\.dtype: must be one of uint8, float16, bfloat16, float32; is 'int8'"):
        millrace.Recipe(dtype="int8")  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match="on_error: must be one of fail"):
        session.submit([png(0)], on_error="ignore")  # type: ignore[arg-type]
    with pytest.raises(millrace.InvalidRequest, match="seed"):
        session.submit([png(0)], seed=-1)
    with pytest.raises(millrace.InvalidRequest):
        session.submit([png(0)], recipe=millrace.Recipe(resize=millrace.ExactSize(millrace.Size(-1, 4))))


def test_what_the_daemon_finds_wrong_names_the_field(session: millrace.Session) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(SIZE), normalise=millrace.Normalise())  # not with uint8
    with pytest.raises(millrace.InvalidRequest, match="normalise"):
        session.get(session.submit([png(0)], recipe=recipe))


def test_a_message_over_four_mebibytes_is_refused(session: millrace.Session) -> None:
    with pytest.raises(millrace.InvalidRequest, match="split the batch"):
        session.submit(["/" + "x" * 4000] * 1100)


def test_slot_bytes_agree_with_what_the_daemon_needs(client: millrace.Client) -> None:
    for dtype in ("uint8", "float32"):
        recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(31, 17)), dtype=dtype, range="raw")  # type: ignore[arg-type]
        with client.session(recipe, batch=5, slots=1) as session:
            assert len(session.get(session.submit([png(n) for n in range(5)]))) == 5
    with pytest.raises(millrace.InvalidRequest, match="slot_bytes must be given"):
        client.session(millrace.Recipe.thumbnail(64))


@pytest.mark.parametrize(
    "crop",
    [millrace.CentreCrop(millrace.Size(10, 7)), millrace.BoxCrop(millrace.Box(1, 0, 5, 7)), millrace.CentreCrop(millrace.Size(6, 6))],
)
@pytest.mark.parametrize(
    "resize", [None, millrace.ShorterSide(9), millrace.ShorterSide(9, longest=10), millrace.LongerSide(9), millrace.LongerSide(1)]
)
def test_a_crop_of_fixed_size_has_a_fixed_size_after_a_resize(
    client: millrace.Client, crop: millrace.Crop, resize: millrace.Resize | None
) -> None:
    recipe = millrace.Recipe(crop=crop, resize=resize)
    size = recipe.fixed_size
    assert size is not None
    with client.session(recipe, batch=2, slots=1) as session:
        batch = session.get(session.submit([png(0), png(1)]))
        assert batch.images.shape == (2, 3, size.height, size.width)


def test_a_whole_folder_batch_by_batch(session: millrace.Session, folder: Path) -> None:
    seen = []
    for first in range(0, COUNT, 15):
        batch = session.get(session.submit([millrace.Sample(path_of(folder, n), id=n) for n in range(first, first + 15)]))
        check_pixels(batch)
        seen += batch.ids.tolist()
    assert seen == list(range(COUNT))
