#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <vector>

#include "daemon/fetch/caller_rights.h"
#include "daemon/fetch/folder_verdicts.h"

namespace millrace {
namespace {

constexpr Right kRead = Right::kRead;
constexpr Right kSearch = Right::kSearch;

struct stat status_of(uid_t owner, gid_t group, mode_t mode) {
  struct stat status {};
  status.st_uid = owner;
  status.st_gid = group;
  status.st_mode = mode;
  return status;
}

Caller caller_of(uid_t uid, gid_t gid, std::vector<gid_t> groups = {}) {
  return {.uid = uid, .gid = gid, .groups = std::move(groups)};
}

struct AclEntry {
  std::uint16_t tag, permissions;
  std::uint32_t id;
};
constexpr std::uint16_t kUserObject = 1, kUser = 2, kGroupObject = 4, kGroup = 8, kMask = 16, kOther = 32;

std::vector<std::byte> acl_of(const std::vector<AclEntry>& entries, std::uint32_t version = 2) {
  std::vector<std::byte> acl;
  const auto put = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) acl.push_back(static_cast<std::byte>(value >> (8 * i) & 255U));
  };
  put(version, 4);
  for (const AclEntry& entry : entries) {
    put(entry.tag, 2);
    put(entry.permissions, 2);
    put(entry.id, 4);
  }
  return acl;
}

bool allowed(const std::vector<AclEntry>& entries, const Caller& caller) {
  return acl_allows(caller, kRead, status_of(10, 20, 0640), acl_of(entries));
}

TEST_CASE("only one class of the mode counts: the owner's, else the group's, else the others'", "[fetch]") {
  const Caller owner = caller_of(10, 1), member = caller_of(11, 20), supplementary = caller_of(12, 1, {5, 20}),
               other = caller_of(13, 1);

  REQUIRE(mode_allows(owner, kRead, status_of(10, 20, 0400)));
  REQUIRE_FALSE(mode_allows(owner, kRead, status_of(10, 20, 0044)));
  REQUIRE(mode_allows(member, kRead, status_of(10, 20, 0040)));
  REQUIRE_FALSE(mode_allows(member, kRead, status_of(10, 20, 0404)));
  REQUIRE(mode_allows(supplementary, kRead, status_of(10, 20, 0040)));
  REQUIRE(mode_allows(other, kRead, status_of(10, 20, 0004)));
  REQUIRE_FALSE(mode_allows(other, kRead, status_of(10, 20, 0440)));
  REQUIRE(mode_allows(other, kSearch, status_of(10, 20, 0001)));
  REQUIRE_FALSE(mode_allows(other, kSearch, status_of(10, 20, 0776)));
}

TEST_CASE("a named user's entry counts, as far as the mask lets it", "[fetch]") {
  const Caller named = caller_of(11, 1);

  REQUIRE(allowed({{kUserObject, 6, 0}, {kUser, 4, 11}, {kGroupObject, 0, 0}, {kMask, 4, 0}, {kOther, 0, 0}}, named));
  REQUIRE_FALSE(
      allowed({{kUserObject, 6, 0}, {kUser, 4, 11}, {kGroupObject, 0, 0}, {kMask, 0, 0}, {kOther, 4, 0}}, named));
  REQUIRE_FALSE(
      allowed({{kUserObject, 6, 0}, {kUser, 0, 11}, {kGroupObject, 4, 0}, {kMask, 7, 0}, {kOther, 4, 0}}, named));
  REQUIRE(allowed({{kUserObject, 6, 0}, {kUser, 0, 12}, {kGroupObject, 0, 0}, {kMask, 7, 0}, {kOther, 4, 0}}, named));
}

TEST_CASE("any matching group that grants is enough, and one that matches shuts out the others' entry", "[fetch]") {
  const Caller member = caller_of(11, 20, {30});

  REQUIRE(allowed({{kUserObject, 6, 0}, {kGroupObject, 0, 0}, {kGroup, 4, 30}, {kMask, 4, 0}, {kOther, 0, 0}}, member));
  REQUIRE_FALSE(
      allowed({{kUserObject, 6, 0}, {kGroupObject, 0, 0}, {kGroup, 0, 30}, {kMask, 7, 0}, {kOther, 4, 0}}, member));
  REQUIRE_FALSE(allowed({{kUserObject, 6, 0}, {kGroupObject, 4, 0}, {kMask, 0, 0}, {kOther, 4, 0}}, member));
  REQUIRE(allowed({{kUserObject, 6, 0}, {kGroupObject, 4, 0}, {kOther, 0, 0}}, member));
}

TEST_CASE("the owner's right is the mode's, whatever the ACL names", "[fetch]") {
  REQUIRE(allowed({{kUserObject, 6, 0}, {kUser, 0, 10}, {kGroupObject, 0, 0}, {kMask, 0, 0}, {kOther, 0, 0}},
                  caller_of(10, 1)));
}

TEST_CASE("a malformed ACL grants nothing", "[fetch]") {
  const Caller other = caller_of(13, 1);
  const std::vector<AclEntry> open{{kUserObject, 6, 0}, {kGroupObject, 4, 0}, {kOther, 4, 0}};
  std::vector<std::byte> cut = acl_of(open);
  cut.pop_back();
  const struct stat status = status_of(10, 20, 0644);

  REQUIRE(acl_allows(other, kRead, status, acl_of(open)));
  REQUIRE_FALSE(acl_allows(other, kRead, status, acl_of(open, 3)));
  REQUIRE_FALSE(acl_allows(other, kRead, status, cut));
  REQUIRE_FALSE(acl_allows(other, kRead, status, {}));
  REQUIRE_FALSE(allowed({{kUserObject, 6, 0}, {kOther, 4, 0}, {64, 4, 0}}, other));
  REQUIRE_FALSE(allowed({{kUserObject, 6, 0}, {kGroupObject, 4, 0}}, other));
}

TEST_CASE("a verdict holds for its caller, path and folder, and for two seconds", "[fetch]") {
  FolderVerdicts verdicts;
  struct stat folder {
  }, elsewhere{};
  folder.st_ino = 1;
  elsewhere.st_ino = 2;
  const Caller caller = caller_of(10, 1, {2, 3});
  const auto now = FolderVerdicts::Clock::now();

  verdicts.allow(caller, "/data/a", folder, now);

  REQUIRE(verdicts.allowed(caller, "/data/a", folder, now + std::chrono::milliseconds(1999)));
  REQUIRE_FALSE(verdicts.allowed(caller, "/data/a", folder, now + FolderVerdicts::kLifetime));
  REQUIRE_FALSE(verdicts.allowed(caller, "/data/a", elsewhere, now));
  REQUIRE_FALSE(verdicts.allowed(caller, "/data/b", folder, now));
  REQUIRE_FALSE(verdicts.allowed(caller_of(11, 1, {2, 3}), "/data/a", folder, now));
  REQUIRE_FALSE(verdicts.allowed(caller_of(10, 1, {2}), "/data/a", folder, now));
}

TEST_CASE("the number of verdicts is bounded", "[fetch]") {
  FolderVerdicts verdicts;
  struct stat folder {};
  const Caller caller = caller_of(10, 1);
  const auto now = FolderVerdicts::Clock::now();
  const std::size_t asked = FolderVerdicts::kMost + 10;
  for (std::size_t i = 0; i < asked; ++i) verdicts.allow(caller, "/data/" + std::to_string(i), folder, now);

  std::size_t held = 0;
  for (std::size_t i = 0; i < asked; ++i)
    held += verdicts.allowed(caller, "/data/" + std::to_string(i), folder, now) ? 1 : 0;

  REQUIRE(held <= FolderVerdicts::kMost);
  REQUIRE(verdicts.allowed(caller, "/data/" + std::to_string(asked - 1), folder, now));
}

}  // namespace
}  // namespace millrace
