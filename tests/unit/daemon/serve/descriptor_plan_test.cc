#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "daemon/serve/handoff/descriptor_plan.h"

using namespace millrace;

TEST_CASE("the usual settings fit into the usual 1,024 descriptors", "[serve]") {
  CHECK(descriptors_needed({.sessions = {}, .fetch_threads = 4, .roots = 4}) <= 1'024);
}

TEST_CASE("every session, connection and fetch thread that the limits allow is counted", "[serve]") {
  const std::uint64_t base = descriptors_needed({.sessions = {.connections = 200}});

  CHECK(descriptors_needed({.sessions = {.connections = 300}}) == base + 300);
  CHECK(descriptors_needed({.sessions = {.sessions = 65, .connections = 200}}) == base + 5);
  CHECK(descriptors_needed({.sessions = {.connections = 200}, .fetch_threads = 5}) == base + 16);
  CHECK(descriptors_needed({.sessions = {.sessions = 64, .connections = 200}, .device_memory = true}) ==
        descriptors_needed({.sessions = {.sessions = 64, .connections = 200}}) + 2 * 64 + 256 + 128);
}

TEST_CASE("an opener's connections, and the files that it opens ahead, are counted", "[serve]") {
  const DescriptorNeeds without{.fetch_threads = 4, .roots = 3};
  DescriptorNeeds with = without;
  with.opener = WithOpener::kYes;

  CHECK(descriptors_needed(with) == descriptors_needed(without) + 4 * 16 + (3 + 1) * (4 + 1));
}

TEST_CASE("too few descriptors are an error with the figures and what to do", "[serve]") {
  const Result<int> highest = highest_for_connections({}, 16);

  REQUIRE_FALSE(highest);
  CHECK(highest.error().code == Code::kExhausted);
  CHECK_THAT(highest.error().message, Catch::Contains("may have 16 descriptors") && Catch::Contains("64 sessions") &&
                                          Catch::Contains("LimitNOFILE=") && Catch::Contains("limits.connections"));
}

TEST_CASE("connections leave the descriptors that reading files needs", "[serve]") {
  const DescriptorNeeds needs{.fetch_threads = 10};

  CHECK(*highest_for_connections(needs, 4'096) == 4'096 - 32 - 160 - 1);
}

TEST_CASE("the soft limit is raised as far as is needed", "[serve]") {
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit little{512, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &little) == 0);

  const Result<int> highest = prepare_descriptors({});

  rlimit after{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &after) == 0);
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(highest);
  CHECK(after.rlim_cur == descriptors_needed({}));
  CHECK(after.rlim_max == before.rlim_max);
}
