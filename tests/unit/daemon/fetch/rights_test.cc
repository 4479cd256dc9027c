#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <vector>

#include "daemon/fetch/open/caller_rights.h"
#include "daemon/fetch/open/folder_verdicts.h"
#include "daemon/fetch/open/unmapped_ids.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/pictures/image_folder.h"

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

// Where every id is mapped, and where those that are not appear as 65534.
const CallerRights kInitial{UnmappedIds{}};
constexpr uid_t kUnmapped = 65534;
const CallerRights kPartial{UnmappedIds{.user = kUnmapped, .group = kUnmapped}};
constexpr std::uint32_t kNoId = 0xFFFFFFFF;  // an ACL's entry of one that is not mapped

bool mode_allows(const Caller& caller, Right right, const struct stat& status) {
  return kInitial.mode_allows(caller, right, status);
}

bool allowed(const std::vector<AclEntry>& entries, const Caller& caller, const CallerRights& rights = kInitial) {
  return rights.acl_allows(caller, kRead, status_of(10, 20, 0640), acl_of(entries));
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

  REQUIRE(kInitial.acl_allows(other, kRead, status, acl_of(open)));
  REQUIRE_FALSE(kInitial.acl_allows(other, kRead, status, acl_of(open, 3)));
  REQUIRE_FALSE(kInitial.acl_allows(other, kRead, status, cut));
  REQUIRE_FALSE(kInitial.acl_allows(other, kRead, status, {}));
  REQUIRE_FALSE(allowed({{kUserObject, 6, 0}, {kOther, 4, 0}, {64, 4, 0}}, other));
  REQUIRE_FALSE(allowed({{kUserObject, 6, 0}, {kGroupObject, 4, 0}}, other));
}

TEST_CASE("a caller whose user is not mapped gets nothing, not even what everybody may read", "[fetch]") {
  const Caller caller = caller_of(kUnmapped, 20);

  REQUIRE_FALSE(kPartial.mode_allows(caller, kRead, status_of(kUnmapped, 20, 0777)));
  REQUIRE_FALSE(kPartial.mode_allows(caller, kRead, status_of(10, 20, 0777)));
  REQUIRE_FALSE(
      allowed({{kUserObject, 6, 0}, {kUser, 4, kUnmapped}, {kGroupObject, 4, 0}, {kOther, 4, 0}}, caller, kPartial));
  REQUIRE_FALSE(kPartial.is_trusted(caller));
  REQUIRE(kPartial.check_known(caller).error().code == Code::kDenied);
  REQUIRE(kPartial.check_known(caller).error().message.find("user namespace") != std::string::npos);
  REQUIRE(kPartial.check_known(caller_of(10, kUnmapped)));
}

TEST_CASE("where every id is mapped, nobody is a user and a group like others", "[fetch]") {
  const Caller nobody = caller_of(kUnmapped, kUnmapped);

  REQUIRE(kInitial.check_known(nobody));
  REQUIRE(mode_allows(nobody, kRead, status_of(kUnmapped, 20, 0400)));
  REQUIRE_FALSE(mode_allows(nobody, kRead, status_of(kUnmapped, 20, 0044)));
  REQUIRE(mode_allows(nobody, kRead, status_of(10, kUnmapped, 0040)));
  REQUIRE_FALSE(mode_allows(nobody, kRead, status_of(10, kUnmapped, 0404)));
  REQUIRE(allowed({{kUserObject, 6, 0}, {kUser, 4, kUnmapped}, {kGroupObject, 0, 0}, {kOther, 0, 0}}, nobody));
  REQUIRE(allowed({{kUserObject, 6, 0}, {kGroupObject, 0, 0}, {kGroup, 4, kUnmapped}, {kOther, 0, 0}}, nobody));
}

TEST_CASE("a group that is not mapped gives a caller nothing that others have not, and others' rights only with it",
          "[fetch]") {
  const Caller perhaps = caller_of(11, 1, {5, kUnmapped}), certainly_not = caller_of(11, 1, {5});

  REQUIRE_FALSE(kPartial.mode_allows(perhaps, kRead, status_of(10, kUnmapped, 0640)));
  REQUIRE_FALSE(kPartial.mode_allows(perhaps, kRead, status_of(10, kUnmapped, 0604)));
  REQUIRE(kPartial.mode_allows(perhaps, kRead, status_of(10, kUnmapped, 0644)));
  REQUIRE_FALSE(kPartial.mode_allows(certainly_not, kRead, status_of(10, kUnmapped, 0640)));
  REQUIRE(kPartial.mode_allows(certainly_not, kRead, status_of(10, kUnmapped, 0604)));
  REQUIRE(kPartial.mode_allows(perhaps, kRead, status_of(10, 5, 0640)));
}

TEST_CASE("an ACL's entries of groups that are not mapped are neither granted nor got round", "[fetch]") {
  const Caller perhaps = caller_of(11, 5, {kUnmapped}), certainly_not = caller_of(11, 5);
  const auto acl = [](std::uint16_t unmapped_group, std::uint16_t other, std::uint16_t mask = 7) {
    return std::vector<AclEntry>{
        {kUserObject, 6, 0}, {kGroupObject, 0, 0}, {kGroup, unmapped_group, kNoId}, {kGroup, unmapped_group, kUnmapped},
        {kMask, mask, 0},    {kOther, other, 0}};
  };

  REQUIRE_FALSE(allowed(acl(4, 0), perhaps, kPartial));
  REQUIRE_FALSE(allowed(acl(0, 4), perhaps, kPartial));
  REQUIRE_FALSE(allowed(acl(4, 4, 0), perhaps, kPartial));
  REQUIRE(allowed(acl(4, 4), perhaps, kPartial));
  REQUIRE(allowed(acl(0, 4), certainly_not, kPartial));
  std::vector<AclEntry> with_a_known_group = acl(0, 0);
  with_a_known_group.push_back({kGroup, 4, 5});
  REQUIRE(allowed(with_a_known_group, perhaps, kPartial));
}

TEST_CASE("root of a namespace is trusted there", "[fetch]") {
  REQUIRE(kPartial.is_trusted(caller_of(0, 0)));
  REQUIRE(kInitial.is_trusted(caller_of(0, 0)));
  REQUIRE_FALSE(kPartial.is_trusted(caller_of(54'321, 0)));
}

TEST_CASE("a map holds every id only if its ranges leave none out", "[fetch]") {
  REQUIRE(maps_every_id("         0          0 4294967295\n"));
  REQUIRE(maps_every_id("0 100 5\n5 0 100\n105 105 4294967190\n"));
  REQUIRE(maps_every_id("105 105 4294967190\n5 0 100\n0 100 5\n"));

  for (const char* map : {"", "0 1000 1\n", "0 100000 65536\n", "0 0 4294967294\n", "1 1 4294967294\n",
                          "0 100 5\n6 0 4294967289\n", "0 100 5\n5 0 100\n106 106 4294967189\n", "0 0 4294967295\n5\n",
                          "0 0 4294967295 x\n", "0 0 99999999999\n", "nonsense"}) {
    CAPTURE(map);
    REQUIRE_FALSE(maps_every_id(map));
  }
}

TEST_CASE("what stands for unmapped ids is what the kernel says, for users and groups apart", "[fetch]") {
  const TempFolder proc;
  std::filesystem::create_directories(proc / "self");
  std::filesystem::create_directories(proc / "sys/kernel");
  write_file(proc / "self/uid_map", std::string("0 0 4294967295\n"));
  write_file(proc / "self/gid_map", std::string("0 1000 1\n"));
  write_file(proc / "sys/kernel/overflowgid", std::string("60001\n"));

  const UnmappedIds found = unmapped_ids(proc.path());
  const UnmappedIds without_proc = unmapped_ids(proc / "none");

  REQUIRE_FALSE(found.user.has_value());
  REQUIRE(found.group == 60'001U);
  REQUIRE(without_proc.user == 65'534U);
  REQUIRE(without_proc.group == 65'534U);
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
