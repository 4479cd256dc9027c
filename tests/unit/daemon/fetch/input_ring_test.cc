#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "daemon/fetch/read/input_ring.h"

namespace millrace {
namespace {

NewInputRing ring_of(Bytes size, const std::string& content = "") {
  Result<NewInputRing> made = SealedRing::create(size, 1_MiB);
  REQUIRE(made.has_value());
  REQUIRE(pwrite(made->clients.get(), content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
  return *std::move(made);
}

std::string text_of(const Result<EncodedBytes>& bytes) {
  REQUIRE(bytes.has_value());
  return std::string(reinterpret_cast<const char*>(bytes->view().data()), bytes->size());
}

TEST_CASE("a span of the ring comes out as a copy that the client cannot change", "[fetch]") {
  const NewInputRing made = ring_of(4_KiB, "0123456789");

  const Result<EncodedBytes> copy = made.ring->copy(2, 5, 1_MiB);
  REQUIRE(pwrite(made.clients.get(), "##########", 10, 0) == 10);

  REQUIRE(text_of(copy) == "23456");
  REQUIRE(text_of(made.ring->copy(0, 3, 1_MiB)) == "###");
  REQUIRE(made.ring->copy(0, 4096, 1_MiB).has_value());
}

TEST_CASE("a span that is not within the ring is refused", "[fetch]") {
  const NewInputRing made = ring_of(4_KiB);

  for (const auto& [offset, length] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 4097}, {4096, 1}, {4095, 2}, {~0ULL, 1}, {1, ~0ULL}, {0, 0}}) {
    const Result<EncodedBytes> copy = made.ring->copy(offset, length, Bytes{~0ULL});
    REQUIRE_FALSE(copy.has_value());
    REQUIRE(copy.error().code == Code::kInvalid);
  }
  REQUIRE(made.ring->copy(0, 101, Bytes{100}).error().message.find("limits.encoded") != std::string::npos);
}

TEST_CASE("the client can neither shrink nor grow the ring, nor seal it against writing", "[fetch]") {
  const NewInputRing made = ring_of(4_KiB);

  REQUIRE(ftruncate(made.clients.get(), 0) != 0);
  REQUIRE(ftruncate(made.clients.get(), 8192) != 0);
  REQUIRE(fallocate(made.clients.get(), 0, 4096, 4096) != 0);
  REQUIRE(fcntl(made.clients.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0);
}

TEST_CASE("a ring takes no memory until the client writes, however the daemon reads it", "[fetch]") {
  const NewInputRing made = ring_of(1_MiB);

  REQUIRE(text_of(made.ring->copy(0, 1 << 20, 1_MiB)) == std::string(1 << 20, '\0'));

  struct stat status {};
  REQUIRE(fstat(made.clients.get(), &status) == 0);
  REQUIRE(status.st_blocks == 0);
}

TEST_CASE("flags that the client sets on its descriptor are not the daemon's", "[fetch]") {
  const NewInputRing made = ring_of(4_KiB, "0123456789");

  REQUIRE(fcntl(made.clients.get(), F_SETFL, O_APPEND | O_NONBLOCK) == 0);
  REQUIRE(lseek(made.clients.get(), 0, SEEK_END) == 4096);

  REQUIRE(text_of(made.ring->copy(2, 5, 1_MiB)) == "23456");
}

TEST_CASE("a ring of no size, or over the limit, is refused", "[fetch]") {
  const auto over = SealedRing::create(Bytes{8192}, Bytes{4096});

  REQUIRE(SealedRing::create(0_B, 1_MiB).error().code == Code::kInvalid);
  REQUIRE(over.error().code == Code::kExhausted);
  REQUIRE(over.error().message.find("limits.ring") != std::string::npos);
}

TEST_CASE("a hole that the client punches reads as zeros", "[fetch]") {
  const NewInputRing made = ring_of(8_KiB, std::string(8192, 'x'));

  REQUIRE(fallocate(made.clients.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);

  REQUIRE(text_of(made.ring->copy(0, 8192, 1_MiB)) == std::string(4096, '\0') + std::string(4096, 'x'));
}

}  // namespace
}  // namespace millrace
