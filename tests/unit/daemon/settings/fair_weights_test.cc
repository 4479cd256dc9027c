#include "daemon/settings/fair_weights.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"

namespace millrace {
namespace {

TEST_CASE("weights name users and groups by name or number", "[settings]") {
  const std::vector<std::string> entries{"root=3", "1002=2", "@root=7", "@100=1000"};

  const Result<FairWeights> weights = parse_fair_weights(entries);

  REQUIRE(weights);
  CHECK(weights->users == std::map<uid_t, std::uint32_t>{{0, 3}, {1002, 2}});
  CHECK(weights->groups == std::map<gid_t, std::uint32_t>{{0, 7}, {100, 1000}});
}

TEST_CASE("a user's weight is his own, else the highest of his groups', else 1", "[settings]") {
  const FairWeights weights{.users = {{7, 2}}, .groups = {{10, 5}, {11, 9}}};

  CHECK(weights.of({.uid = 7, .gid = 11}) == 2);
  CHECK(weights.of({.uid = 8, .gid = 10, .groups = {11, 12}}) == 9);
  CHECK(weights.of({.uid = 8, .gid = 10, .groups = {12}}) == 5);
  CHECK(weights.of({.uid = 8, .gid = 12}) == 1);
}

TEST_CASE("a weight that means nothing is told with what to do", "[settings]") {
  const auto complaint = [](const std::string& entry) {
    const auto settings = parse_settings("fair.weights = [\"" + entry + "\"]", "millrace.toml", KeyTable({}));
    return settings ? "" : settings.error().message;
  };

  CHECK(complaint("alice") ==
        "millrace.toml:1: fair.weights: \"alice\": must be a name, = and a weight: \"alice=3\", \"1002=2\" or "
        "\"@group=2\"");
  for (const char* weight : {"0", "1001", "-1", "2.5", "", "3x"})
    CHECK(complaint("root=" + std::string(weight)) == "millrace.toml:1: fair.weights: \"root=" + std::string(weight) +
                                                          "\": the weight must be a whole number from 1 to 1000");
  CHECK(complaint("nobody-of-this-name=2") ==
        "millrace.toml:1: fair.weights: \"nobody-of-this-name=2\": this host knows no user of that name: correct it, "
        "leave it out, or give the number");
  CHECK(complaint("@no-such-group=2").find("knows no group") != std::string::npos);
  CHECK(complaint("=2").find("names nobody") != std::string::npos);
  CHECK(complaint("root=2\", \"0=3").find("has a weight already: keep one") != std::string::npos);
}

}  // namespace
}  // namespace millrace
