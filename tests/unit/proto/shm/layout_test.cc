// A small segment written by the daemon's own code, byte by byte: a developer who changes the layout meets this test
// and proto/shm/README.md.
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "daemon/slots/slot_pool.h"
#include "tests/support/host/segment_budget.h"

namespace millrace {
namespace {

// `count` bytes as the README prints them.
std::string hex(const std::byte* bytes, std::size_t count) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += kDigits[static_cast<unsigned>(bytes[i]) >> 4U];
    text += kDigits[static_cast<unsigned>(bytes[i]) & 15U];
  }
  return text;
}

shm::SampleRecord example_record() {
  shm::SampleRecord record{};
  record.id = 42;
  record.label = -1;
  record.pixels_offset = 4096;
  record.pixels_bytes = 12;
  record.width = 2;
  record.height = 2;
  record.source_width = 640;
  record.source_height = 480;
  record.crop_left = 8;
  record.crop_top = 16;
  record.crop_width = 320;
  record.crop_height = 240;
  record.flags = shm::kFlipped;
  record.orientation = 6;
  std::memcpy(record.backend, "cpu", 4);
  record.index = 3;
  record.unpacked = 4;
  return record;
}

// Two slots of 5,000 bytes; slot 0 holds one 2 x 2 RGB image of uint8, NHWC.
struct Example {
  Example() {
    lease = *pool.lease();
    for (std::size_t i = 0; i < 12; ++i) lease.memory[i] = static_cast<std::byte>(0xA0 + i);
    const shm::SampleRecord record = example_record();
    std::memcpy(lease.memory.data() + 64, &record, sizeof record);
    pool.seal(lease, 12_B, lease.offset + 64, 1);
  }
  std::string at(std::uint64_t offset, std::size_t count) const { return hex(segment->data() + offset, count); }

  SegmentBudget budget{1_MiB};
  Counters counters;
  std::shared_ptr<Segment> segment = *budget.create(shm::segment_bytes(2, 5'000_B));
  SlotPool pool{segment, SessionId{9}, 2, 5'000_B, counters};
  SlotLease lease;
};

TEST_CASE("a segment begins with the documented header", "[shm]") {
  const Example example;

  REQUIRE(example.at(0, 16) == "4d 49 4c 4c 53 45 47 31 01 00 00 00 02 00 00 00");   // "MILLSEG1", version 1, 2 slots
  REQUIRE(example.at(16, 16) == "00 50 00 00 00 00 00 00 88 13 00 00 00 00 00 00");  // 20,480 bytes, slots of 5,000
  REQUIRE(example.at(32, 16) == "00 20 00 00 00 00 00 00 00 10 00 00 00 00 00 00");  // stride 8,192, data at 4,096
  REQUIRE(example.at(48, 16) == "09 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");  // session 9, reserved
}

TEST_CASE("a slot's header says what the slot holds", "[shm]") {
  const Example example;

  REQUIRE(example.at(64, 16) == "02 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00");  // sealed, 1 sample, generation 1
  REQUIRE(example.at(80, 16) == "0c 00 00 00 00 00 00 00 40 10 00 00 00 00 00 00");  // 12 bytes, records at 4,160
  REQUIRE(example.at(104, 24) == "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");
  REQUIRE(example.at(128, 16) == "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00");  // slot 1: free, never leased
}

TEST_CASE("a slot begins with the tensor's first pixel, and its records follow at a multiple of 64", "[shm]") {
  const Example example;

  REQUIRE(example.at(4096, 12) == "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aa ab");
  REQUIRE(example.at(4160, 16) == "2a 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff");  // id 42, label -1
  REQUIRE(example.at(4176, 16) == "00 10 00 00 00 00 00 00 0c 00 00 00 00 00 00 00");  // pixels at 4,096, 12 bytes
  REQUIRE(example.at(4192, 16) == "02 00 00 00 02 00 00 00 80 02 00 00 e0 01 00 00");  // 2 x 2 of 640 x 480
  REQUIRE(example.at(4208, 16) == "08 00 00 00 10 00 00 00 40 01 00 00 f0 00 00 00");  // crop 8, 16, 320 x 240
  REQUIRE(example.at(4240, 16) == "00 00 01 06 63 70 75 00 00 00 00 00 00 00 00 00");  // fine, flipped, EXIF 6, "cpu"
  REQUIRE(example.at(4256, 4) == "03 00 00 00");                                       // index 3
  REQUIRE(example.at(4276, 12) == "04 00 00 00 00 00 00 00 00 00 00 00");              // no room to pack it, reserved
}

TEST_CASE("the sizes of a segment count headers and whole pages, and never wrap round", "[shm]") {
  REQUIRE(shm::slot_offset(4, 100_B, 0) == 4096);
  REQUIRE(shm::slot_offset(4, 100_B, 3) == 4096 + 3 * 4096);
  REQUIRE(shm::segment_bytes(4, 100_B) == Bytes{4096 + 4 * 4096});
  REQUIRE(shm::slot_bytes_of_images(1_B, 3) <= (1_B + shm::kMostBesidePixels) * 3);  // the widest gaps
  REQUIRE(shm::slot_offset(64, 4097_B, 1) == 8192 + 8192);  // 64 B + 64 x 64 B of headers are more than a page

  REQUIRE(shm::segment_bytes(256, Bytes{std::numeric_limits<std::uint64_t>::max()}) ==
          Bytes{std::numeric_limits<std::uint64_t>::max()});
  REQUIRE(shm::segment_bytes(256, Bytes{std::uint64_t{1} << 60}) == Bytes{std::numeric_limits<std::uint64_t>::max()});
  REQUIRE(shm::segment_bytes(2, Bytes{std::uint64_t{1} << 63}) == Bytes{std::numeric_limits<std::uint64_t>::max()});
}

TEST_CASE("records lie at the next multiple of 64 after the tensor, one a sample", "[shm]") {
  REQUIRE(shm::records_offset(12_B) == 64_B);
  REQUIRE(shm::records_offset(64_B) == 64_B);
  REQUIRE(shm::records_offset(65_B) == 128_B);
  REQUIRE(shm::slot_bytes(65_B, 3) == Bytes{128 + 3 * 128});
  REQUIRE(shm::slot_bytes(0_B, 3) == Bytes{3 * 128});
}

TEST_CASE("room for images is room for a packed tensor of them, and for one without gaps", "[shm]") {
  REQUIRE(shm::slot_bytes_of_images(65_B, 3) == shm::slot_bytes(Bytes{3 * 128}, 3));
  REQUIRE(shm::slot_bytes_of_images(65_B, 3) > shm::slot_bytes(Bytes{3 * 65}, 3));
  REQUIRE(shm::slot_bytes_of_images(64_B, 3) == shm::slot_bytes(Bytes{3 * 64}, 3));
}

}  // namespace
}  // namespace millrace
