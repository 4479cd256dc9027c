#include "daemon/fetch/open/caller_rights.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>

#include "proto/base/byte_reader.h"

namespace millrace {
namespace {

enum class Member { kNo, kPerhaps, kYes };

Member member_of(const Caller& caller, gid_t group, const std::optional<gid_t>& unmapped) {
  constexpr gid_t kNone = 0xFFFFFFFF;  // in an ACL: one that is not mapped
  const auto bears = [&](gid_t id) {
    return caller.gid == id || std::find(caller.groups.begin(), caller.groups.end(), id) != caller.groups.end();
  };
  if (!unmapped || (group != *unmapped && group != kNone)) return bears(group) ? Member::kYes : Member::kNo;
  return bears(*unmapped) ? Member::kPerhaps : Member::kNo;
}

bool has(std::uint32_t permissions, Right right) {
  return (permissions & static_cast<std::uint32_t>(right)) != 0;
}

// linux/posix_acl_xattr.h: a version, then entries of tag, permissions, id; little-endian.
constexpr std::uint32_t kAclVersion = 2;
constexpr std::size_t kAclHeader = 4, kAclEntry = 8;
enum class Tag : std::uint32_t { kUserObject = 1, kUser = 2, kGroupObject = 4, kGroup = 8, kMask = 16, kOther = 32 };

// What an ACL says to one caller who is not the owner.
struct AclVerdict {
  std::optional<std::uint32_t> user, other;
  std::uint32_t mask = 7;
  bool group_matches = false, group_grants = false;
  bool group_may_match = false, every_such_group_grants = true;

  void take_group(Member member, bool grants) {
    if (member == Member::kYes) {
      group_matches = true;
      group_grants = group_grants || grants;
    } else if (member == Member::kPerhaps) {
      group_may_match = true;
      every_such_group_grants = every_such_group_grants && grants;
    }
  }

  // acl(5), access check algorithm, steps 2 to 4.
  bool grants(Right right) const {
    const bool mask_grants = has(mask, right), other_grants = other && has(*other, right);
    if (user) return has(*user, right) && mask_grants;
    if (group_matches) return group_grants && mask_grants;
    if (group_may_match) return every_such_group_grants && mask_grants && other_grants;
    return other_grants;
  }
};

}  // namespace

Result<void> CallerRights::check_known(const Caller& caller) const {
  if (is_known(caller)) return {};
  return Error{Code::kDenied,
               "the daemon runs in a user namespace (a container) that does not map your user: to it you are " +
                   std::to_string(caller.uid) +
                   ", as all are that it does not map, so it reads no files for you; map your user there, or "
                   "send it the images' bytes"};
}

bool CallerRights::is_trusted(const Caller& caller) const {
  return is_known(caller) && (caller.uid == 0 || caller.uid == geteuid());
}

bool CallerRights::mode_allows(const Caller& caller, Right right, const struct stat& status) const {
  if (!is_known(caller)) return false;
  if (caller.uid == status.st_uid) return has(status.st_mode >> 6U, right);
  const bool group = has(status.st_mode >> 3U, right), other = has(status.st_mode, right);
  switch (member_of(caller, status.st_gid, unmapped_.group)) {
    case Member::kYes:
      return group;
    case Member::kPerhaps:
      return group && other;
    case Member::kNo:
      return other;
  }
  return false;
}

bool CallerRights::acl_allows(const Caller& caller, Right right, const struct stat& status,
                              ByteView acl_untrusted) const {
  if (!is_known(caller)) return false;
  if (caller.uid == status.st_uid) return has(status.st_mode >> 6U, right);  // step 1: ACL and mode say the same
  const ByteReader acl(acl_untrusted);
  if (acl.little32(0) != kAclVersion || (acl.size() - kAclHeader) % kAclEntry != 0) return false;
  AclVerdict verdict;
  for (std::size_t at = kAclHeader; at < acl.size(); at += kAclEntry) {
    const std::uint32_t permissions = *acl.little16(at + 2), id = *acl.little32(at + 4);
    switch (static_cast<Tag>(*acl.little16(at))) {
      case Tag::kUserObject:
        break;
      case Tag::kUser:
        if (id == caller.uid) verdict.user = permissions;
        break;
      case Tag::kGroupObject:
        verdict.take_group(member_of(caller, status.st_gid, unmapped_.group), has(permissions, right));
        break;
      case Tag::kGroup:
        verdict.take_group(member_of(caller, id, unmapped_.group), has(permissions, right));
        break;
      case Tag::kMask:
        verdict.mask = permissions;
        break;
      case Tag::kOther:
        verdict.other = permissions;
        break;
      default:
        return false;
    }
  }
  return verdict.grants(right);
}

bool CallerRights::may(const Caller& caller, Right right, int fd, const struct stat& status) const {
  if (!is_known(caller) || caller.uid == status.st_uid) return mode_allows(caller, right, status);
  constexpr const char* kAcl = "system.posix_acl_access";
  std::array<std::byte, 4096> acl;
  ssize_t size = fgetxattr(fd, kAcl, acl.data(), acl.size());
  if (size < 0 && errno == EBADF) {  // O_PATH
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", fd);
    size = getxattr(name.data(), kAcl, acl.data(), acl.size());
  }
  if (size >= 0) return acl_allows(caller, right, status, ByteView(acl).first(static_cast<std::size_t>(size)));
  return (errno == ENODATA || errno == EOPNOTSUPP) && mode_allows(caller, right, status);
}

bool CallerRights::may_read(const Caller& caller, int fd, const struct stat& status) const {
  return is_trusted(caller) || may(caller, Right::kRead, fd, status);
}

bool CallerRights::may_list(const Caller& caller, int fd, const struct stat& status) const {
  return may_read(caller, fd, status) && (is_trusted(caller) || may(caller, Right::kSearch, fd, status));
}

}  // namespace millrace
