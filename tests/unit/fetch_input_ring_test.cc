#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "daemon/fetch/input_ring.h"

namespace millrace {
namespace {

constexpr unsigned kSeals = F_SEAL_SHRINK | F_SEAL_GROW;

UniqueFd memfd(std::size_t size, unsigned seals = kSeals, const std::string& content = "") {
  UniqueFd fd(memfd_create("ring", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(fd);
  REQUIRE(ftruncate(fd.get(), static_cast<off_t>(size)) == 0);
  REQUIRE(pwrite(fd.get(), content.data(), content.size(), 0) == static_cast<ssize_t>(content.size()));
  REQUIRE(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

Error refused(UniqueFd fd, Bytes size, Bytes limit = 1_MiB) {
  const auto ring = InputRing::create(std::move(fd), size, limit);
  REQUIRE_FALSE(ring.has_value());
  return ring.error();
}

std::string text_of(const Result<EncodedBytes>& bytes) {
  REQUIRE(bytes.has_value());
  return std::string(reinterpret_cast<const char*>(bytes->view().data()), bytes->size());
}

TEST_CASE("a span of the ring comes out as a copy that the client cannot change", "[fetch]") {
  UniqueFd fd = memfd(4096, kSeals, "0123456789");
  const int client = fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  const auto ring = InputRing::create(std::move(fd), Bytes{4096}, 1_MiB);
  REQUIRE(ring.has_value());

  const Result<EncodedBytes> copy = (*ring)->copy(2, 5, 1_MiB);
  REQUIRE(pwrite(client, "##########", 10, 0) == 10);
  close(client);

  REQUIRE(text_of(copy) == "23456");
  REQUIRE(text_of((*ring)->copy(0, 3, 1_MiB)) == "###");
  REQUIRE((*ring)->copy(0, 4096, 1_MiB).has_value());
}

TEST_CASE("a span that is not within the ring is refused", "[fetch]") {
  const auto ring = InputRing::create(memfd(4096), Bytes{4096}, 1_MiB);
  REQUIRE(ring.has_value());

  for (const auto& [offset, length] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 4097}, {4096, 1}, {4095, 2}, {~0ULL, 1}, {1, ~0ULL}, {0, 0}}) {
    const Result<EncodedBytes> copy = (*ring)->copy(offset, length, Bytes{~0ULL});
    REQUIRE_FALSE(copy.has_value());
    REQUIRE(copy.error().code == Code::kInvalid);
  }
  REQUIRE((*ring)->copy(0, 101, Bytes{100}).error().message.find("limits.encoded") != std::string::npos);
}

TEST_CASE("a ring that could shrink under the daemon is refused", "[fetch]") {
  REQUIRE(refused(memfd(4096, 0), Bytes{4096}).message.find("F_SEAL_SHRINK") != std::string::npos);
  REQUIRE(refused(memfd(4096, F_SEAL_GROW), Bytes{4096}).code == Code::kInvalid);
  REQUIRE(refused(memfd(4096, F_SEAL_SHRINK), Bytes{4096}).code == Code::kInvalid);
}

TEST_CASE("a descriptor that is no memfd of the announced size is refused", "[fetch]") {
  REQUIRE(refused(memfd(4096), Bytes{8192}).message == "input ring: has 4096 bytes, announced were 8192");
  REQUIRE(refused(UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), Bytes{4096}).code == Code::kInvalid);
  REQUIRE(refused(UniqueFd(), Bytes{4096}).code == Code::kInvalid);
  REQUIRE(refused(memfd(0), Bytes{0}).code == Code::kInvalid);
}

TEST_CASE("a ring over the limit is refused with the limit's name", "[fetch]") {
  const Error error = refused(memfd(8192), Bytes{8192}, Bytes{4096});

  REQUIRE(error.code == Code::kExhausted);
  REQUIRE(error.message.find("limits.ring") != std::string::npos);
}

TEST_CASE("a hole that the client punches reads as zeros", "[fetch]") {
  UniqueFd fd = memfd(8192, kSeals, std::string(8192, 'x'));
  const int client = fcntl(fd.get(), F_DUPFD_CLOEXEC, 0);
  const auto ring = InputRing::create(std::move(fd), Bytes{8192}, 1_MiB);
  REQUIRE(fallocate(client, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0);
  close(client);

  REQUIRE(text_of((*ring)->copy(0, 8192, 1_MiB)) == std::string(4096, '\0') + std::string(4096, 'x'));
}

}  // namespace
}  // namespace millrace
