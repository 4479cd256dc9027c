// access.admins: names become numbers, and who is one of them.
#include <catch2/catch.hpp>

#include "daemon/settings/admins.h"

namespace millrace {
namespace {

std::string complaint(const std::vector<std::string>& names) {
  const Result<Admins> admins = Admins::find(names);
  return admins ? "accepted" : admins.error().message;
}

TEST_CASE("root and the daemon's own user are administrators whatever the settings say", "[settings]") {
  const Admins admins = *Admins::find({}, {.owner = 999});

  REQUIRE(admins.include({.uid = 0}));
  REQUIRE(admins.include({.uid = 999, .gid = 5}));
  REQUIRE_FALSE(admins.include({.uid = 1000, .gid = 0, .groups = {0}}));
  REQUIRE_FALSE(Admins().include({.uid = 999}));
}

TEST_CASE("users and groups are administrators by number and by name", "[settings]") {
  const Admins by_number = *Admins::find({"1001", "@44"});
  const Admins by_name = *Admins::find({"daemon", "@daemon"});  // 1 and 1 on every Debian

  REQUIRE(by_number.include({.uid = 1001}));
  REQUIRE(by_number.include({.uid = 7, .gid = 44}));
  REQUIRE(by_number.include({.uid = 7, .gid = 5, .groups = {3, 44}}));
  REQUIRE_FALSE(by_number.include({.uid = 44, .gid = 1001, .groups = {1001}}));
  REQUIRE(by_name.include({.uid = 1, .gid = 7}));
  REQUIRE(by_name.include({.uid = 7, .gid = 7, .groups = {1}}));
}

TEST_CASE("administrators that this host does not know are complained of together", "[settings]") {
  REQUIRE(
      complaint({"root", "no-such-user", "@no-such-group", "@", ""}) ==
      "there is no user \"no-such-user\" on this host: `getent passwd` lists those that there are; a number needs no "
      "entry; there is no group \"no-such-group\" on this host: `getent group` lists those that there are; a number "
      "needs no entry; \"@\" names nobody: write a user, or @ and a group; \"\" names nobody: write a user, or @ and "
      "a group");
  REQUIRE(complaint({"4294967295"}).find("there is no user \"4294967295\"") == 0);
  REQUIRE(complaint({std::string("a\0b", 3)}).find("names nobody") != std::string::npos);
}

TEST_CASE("who stands for many, in a user namespace, is no administrator", "[settings]") {
  const OwnIds own{.owner = std::nullopt, .unmapped_user = 65534, .unmapped_group = 65534};
  const Admins admins = *Admins::find({"65534", "@65534", "@44"}, own);

  REQUIRE_FALSE(admins.include({.uid = 65534, .gid = 44}));
  REQUIRE_FALSE(admins.include({.uid = 1000, .gid = 65534, .groups = {65534}}));
  REQUIRE(admins.include({.uid = 1000, .gid = 44}));
}

TEST_CASE("a refusal says who may, and who was asking", "[settings]") {
  REQUIRE(Admins::find({}, {.owner = 999})->refusal({.uid = 1000}, "drain it").message ==
          "the daemon is everybody's: only root, the daemon's own user (uid 999) and those of access.admins in its "
          "settings may drain it; you are uid 1000");
  REQUIRE(Admins().refusal({.uid = 1000}, "drain it").code == Code::kDenied);
}

}  // namespace
}  // namespace millrace
