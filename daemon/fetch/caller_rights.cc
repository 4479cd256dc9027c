#include "daemon/fetch/caller_rights.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "daemon/fetch/byte_reader.h"

namespace millrace {
namespace {

bool in_group(const Caller& caller, gid_t group) {
  return caller.gid == group || std::find(caller.groups.begin(), caller.groups.end(), group) != caller.groups.end();
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

  // false: an entry that there cannot be.
  bool take(Tag tag, std::uint32_t permissions, std::uint32_t id, const Caller& caller, Right right, gid_t group) {
    switch (tag) {
      case Tag::kUserObject:
        return true;
      case Tag::kUser:
        if (id == caller.uid) user = permissions;
        return true;
      case Tag::kGroupObject:
      case Tag::kGroup:
        if (in_group(caller, tag == Tag::kGroup ? id : group)) {
          group_matches = true;
          group_grants = group_grants || has(permissions, right);
        }
        return true;
      case Tag::kMask:
        mask = permissions;
        return true;
      case Tag::kOther:
        other = permissions;
        return true;
    }
    return false;
  }

  // acl(5), access check algorithm, steps 2 to 4.
  bool grants(Right right) const {
    if (user) return has(*user & mask, right);
    if (group_matches) return group_grants && has(mask, right);
    return other && has(*other, right);
  }
};

}  // namespace

bool is_trusted(const Caller& caller) {
  return caller.uid == 0 || caller.uid == geteuid();
}

bool mode_allows(const Caller& caller, Right right, const struct stat& status) {
  if (caller.uid == status.st_uid) return has(status.st_mode >> 6U, right);
  if (in_group(caller, status.st_gid)) return has(status.st_mode >> 3U, right);
  return has(status.st_mode, right);
}

bool acl_allows(const Caller& caller, Right right, const struct stat& status, ByteView acl_untrusted) {
  if (caller.uid == status.st_uid) return has(status.st_mode >> 6U, right);  // step 1: ACL and mode say the same
  const ByteReader acl(acl_untrusted);
  if (acl.little32(0) != kAclVersion || (acl.size() - kAclHeader) % kAclEntry != 0) return false;
  AclVerdict verdict;
  for (std::size_t at = kAclHeader; at < acl.size(); at += kAclEntry) {
    const auto tag = static_cast<Tag>(*acl.little16(at));
    if (!verdict.take(tag, *acl.little16(at + 2), *acl.little32(at + 4), caller, right, status.st_gid)) return false;
  }
  return verdict.grants(right);
}

bool may(const Caller& caller, Right right, int fd, const struct stat& status) {
  if (caller.uid == status.st_uid) return mode_allows(caller, right, status);
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

}  // namespace millrace
