#include "daemon/pipeline/turns/user_reads.h"

#include <catch2/catch.hpp>

namespace millrace {

TEST_CASE("of a user whose files are not known yet two tasks are out at a time", "[pipeline]") {
  const UserReads reads;

  REQUIRE_FALSE(reads.might_overfill(64_MiB, 0, 0));
  REQUIRE_FALSE(reads.might_overfill(64_MiB, 0, 1));
  REQUIRE(reads.might_overfill(64_MiB, 0, 2));
}

TEST_CASE("one user's files have half of the room, what his tasks are about to bring included", "[pipeline]") {
  UserReads reads;
  reads.brought(8_MiB);

  REQUIRE_FALSE(reads.might_overfill(64_MiB, (8_MiB).count, 2));
  REQUIRE(reads.might_overfill(64_MiB, (8_MiB).count, 3));
  REQUIRE(reads.might_overfill(64_MiB, (25_MiB).count, 0));
}

TEST_CASE("a file that is larger than the room is read once its user has nothing else there", "[pipeline]") {
  UserReads reads;
  reads.brought(256_MiB);

  REQUIRE_FALSE(reads.might_overfill(64_MiB, 0, 0));
  REQUIRE(reads.might_overfill(64_MiB, 0, 1));
  REQUIRE(reads.might_overfill(64_MiB, 1, 0));
}

TEST_CASE("what tasks brought once is forgotten by and by", "[pipeline]") {
  UserReads reads;
  reads.brought(256_MiB);

  for (int i = 0; i < 40; ++i) reads.brought(1_MiB);

  REQUIRE_FALSE(reads.might_overfill(64_MiB, 0, 8));
}

}  // namespace millrace
