"""The layout of shared memory, as the package computes it, is the daemon's (proto/shm/segment_layout.h)."""

from __future__ import annotations

import millrace
import numpy as np
import pytest
from millrace._memory.layout import RECORD, SEALED, SEGMENT_HEADER, SLOT_HEADER, records_offset, slot_bytes, slot_bytes_of_images

from pictures import SIZE, pixels_of, png, png_of

GREY = millrace.Recipe(resize=millrace.ExactSize(SIZE), channels="grey")


@pytest.mark.parametrize("samples", [1, 3])
def test_a_slot_of_exactly_what_a_batch_needs_is_enough_and_a_byte_less_is_not(client: millrace.Client, samples: int) -> None:
    recipe = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(31, 17)), channels="grey")
    needed = slot_bytes(31 * 17 * samples, samples)
    pictures = [png(n) for n in range(samples)]

    with client.session(recipe, batch=samples, slot_bytes=needed) as session:
        assert len(session.get(session.submit(pictures))) == samples
    with (
        client.session(recipe, batch=samples, slot_bytes=needed - 1) as session,
        pytest.raises(millrace.ResourceExhausted, match=rf"slot_bytes of at least {needed},"),
    ):
        session.get(session.submit(pictures))


def test_room_for_images_is_room_for_a_packed_batch_of_them(client: millrace.Client) -> None:
    odd = png_of(pixels_of(0)[:7, :5].copy())  # 105 bytes of pixels in 128
    needed = slot_bytes_of_images(7 * 5 * 3, 4)
    recipe = millrace.Recipe(packing="packed")

    with client.session(recipe, batch=4, slot_bytes=needed) as session:
        assert len(session.get(session.submit([odd] * 4))) == 4
    with client.session(recipe, batch=4, slot_bytes=needed - 1) as session:
        batch = session.get(session.submit([odd] * 4, on_error="skip"))
        assert len(batch) == 3
        assert f"slot_bytes of at least {needed}" in batch.errors[0].message


def test_records_lie_where_they_are_computed_to_lie(client: millrace.Client) -> None:
    with client.session(GREY, batch=3, slots=2, writable=False) as session:
        memory = session.memory()
        _, _, slots, size, room, stride, data, number, _ = SEGMENT_HEADER.unpack_from(memory)
        batch = session.get(session.submit([millrace.Sample(png(n), id=70 + n) for n in range(3)]))
        pixels = batch.images.numpy()
        first = pixels.ctypes.data - memory.ctypes.data
        slot = (first - data) // stride
        records = first + records_offset(pixels.nbytes)

        assert (slots, size, room, number) == (2, memory.size, session.slot_bytes, session.id)
        assert first == data + slot * stride
        assert SLOT_HEADER.unpack_from(memory, SEGMENT_HEADER.size + slot * SLOT_HEADER.size) == (SEALED, 3, 1)
        np.testing.assert_array_equal(memory[records : records + 3 * RECORD.itemsize].view(RECORD)["id"], [70, 71, 72])


def test_a_session_has_the_room_that_its_recipe_needs(client: millrace.Client) -> None:
    odd = millrace.Recipe(resize=millrace.ExactSize(millrace.Size(31, 17)))

    assert odd.slot_bytes(5) == slot_bytes_of_images(31 * 17 * 3, 5)
    with client.session(odd, batch=5) as session:
        assert session.slot_bytes == odd.slot_bytes(5)
