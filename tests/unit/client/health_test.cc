// A daemon's health as the client reads it.
#include <grpcpp/support/byte_buffer.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "client/src/wire/health_answer.h"

namespace millrace {
namespace {

bool serving(const std::vector<std::string>& pieces) {
  std::vector<grpc::Slice> slices(pieces.begin(), pieces.end());
  return says_serving(grpc::ByteBuffer(slices.data(), slices.size()));
}

TEST_CASE("a daemon is healthy in however many pieces its answer comes", "[client]") {
  REQUIRE(serving({"\x08\x01"}));
  REQUIRE(serving({"\x08", "\x01"}));
  REQUIRE(serving({"", "\x08", "", "\x01"}));
}

TEST_CASE("any other answer is not one of a daemon that serves", "[client]") {
  REQUIRE_FALSE(says_serving(grpc::ByteBuffer()));
  REQUIRE_FALSE(serving({}));
  REQUIRE_FALSE(serving({"\x08"}));
  REQUIRE_FALSE(serving({"\x08\x02"}));
  REQUIRE_FALSE(serving({"\x08", "\x02"}));
  REQUIRE_FALSE(serving({"\x10\x01"}));
  REQUIRE_FALSE(serving({"\x08\x01", "\x08\x01"}));
}

}  // namespace
}  // namespace millrace
