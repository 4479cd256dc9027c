#include <catch2/catch.hpp>

#include "client/src/ring.h"

using millrace::Bytes;
using millrace::Code;
using millrace::InputRing;

namespace {

InputRing ring_of(std::uint64_t bytes) {
  auto shared = InputRing::Shared::create(Bytes{bytes});
  REQUIRE(shared);
  return InputRing(*std::move(shared));
}

}  // namespace

TEST_CASE("rooms of a ring do not overlap and are aligned", "[client]") {
  InputRing ring = ring_of(8192);

  const auto one = ring.allocate(100);
  const auto two = ring.allocate(1);

  REQUIRE(one->offset() % 64 == 0);
  REQUIRE(two->offset() >= one->offset() + 100);
  REQUIRE(two->offset() % 64 == 0);
  REQUIRE(one->bytes().size() == 100);
}

TEST_CASE("rooms that are given back grow together again in any order", "[client]") {
  InputRing ring = ring_of(4096);
  std::vector<millrace::RingRoom> rooms;
  for (int i = 0; i < 64; ++i) rooms.push_back(*ring.allocate(64));
  REQUIRE(ring.allocate(1).error().code == Code::kExhausted);

  for (const std::size_t i : {5, 7, 6, 0, 63}) rooms[i] = {};
  REQUIRE(ring.allocate(3 * 64));
  rooms.clear();

  REQUIRE(ring.allocate(4096));
}

TEST_CASE("a room is taken until its last copy is gone", "[client]") {
  InputRing ring = ring_of(4096);
  std::optional<millrace::RingRoom> room = *ring.allocate(4096);
  std::optional<millrace::RingRoom> copy = room;

  room.reset();
  REQUIRE_FALSE(ring.allocate(1));
  copy.reset();

  REQUIRE(ring.allocate(4096));
}

TEST_CASE("a ring says what it cannot hold", "[client]") {
  InputRing ring = ring_of(4096);

  REQUIRE(ring.allocate(0).error().code == Code::kInvalid);
  REQUIRE(ring.allocate(4097).error().code == Code::kInvalid);
  REQUIRE(InputRing::Shared::create(Bytes{0}).error().code == Code::kInvalid);
  REQUIRE(InputRing::Shared::create(Bytes{~std::uint64_t{0}}).error().code == Code::kInvalid);
}
