#include "daemon/settings/admins.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kMostRoom = std::size_t{1} << 20;  // for one entry; groups list their members

// nullopt: no number. 2^32 - 1 is none either: the kernel takes it for "nobody in particular".
std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size() || number == ~0U) return std::nullopt;
  return number;
}

// `ask`: getpwnam_r() or getgrnam_r() with a buffer; `found` tells the id. 0: no such name.
template <class Entry, class Ask, class Found>
Result<std::optional<std::uint32_t>> look_up(const std::string& name, Ask ask, Found found) {
  for (std::size_t room = 4'096; room <= kMostRoom; room *= 4) {
    std::vector<char> buffer(room);
    Entry entry{};
    Entry* result = nullptr;
    const int error = ask(name.c_str(), &entry, buffer.data(), buffer.size(), &result);
    if (result != nullptr) return std::optional(found(entry));
    if (error == ERANGE) continue;
    // What getpwnam(3) lists for a name that does not exist.
    if (error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM)
      return std::optional<std::uint32_t>();
    return errno_error("looking it up", error);
  }
  return Error{Code::kExhausted, "its entry is longer than a mebibyte"};
}

std::string complaint(std::string_view what, const std::string& name, const Result<std::optional<std::uint32_t>>& id) {
  const std::string named = std::string(what) + " \"" + printable(name) + '"';
  if (!id) return named + " cannot be looked up: " + id.error().message;
  return "there is no " + named + " on this host: `getent " + (what == "group" ? "group" : "passwd") +
         "` lists those that there are; a number needs no entry";
}

Result<std::uint32_t> id_of(const std::string& name_untrusted) {
  const bool group = name_untrusted.starts_with('@');
  const std::string name = name_untrusted.substr(group ? 1 : 0);
  if (name.empty() || name.find('\0') != name.npos)
    return Error{Code::kInvalid, "\"" + printable(name_untrusted) + "\" names nobody: write a user, or @ and a group"};
  if (const std::optional<std::uint32_t> number = number_in(name)) return *number;
  const Result<std::optional<std::uint32_t>> id =
      group ? look_up<struct group>(name, getgrnam_r, [](const struct group& entry) { return entry.gr_gid; })
            : look_up<struct passwd>(name, getpwnam_r, [](const struct passwd& entry) { return entry.pw_uid; });
  if (!id || !*id) return Error{Code::kInvalid, complaint(group ? "group" : "user", name, id)};
  return **id;
}

}  // namespace

Result<Admins> Admins::find(const std::vector<std::string>& names, const OwnIds& own) {
  Admins admins;
  admins.own_ = own;
  std::string complaints;
  for (const std::string& name : names) {
    const Result<std::uint32_t> id = id_of(name);
    if (!id) {
      complaints += (complaints.empty() ? "" : "; ") + id.error().message;
    } else if (name.starts_with('@')) {
      admins.groups_.push_back(*id);
    } else {
      admins.users_.push_back(*id);
    }
  }
  if (!complaints.empty()) return Error{Code::kInvalid, std::move(complaints)};
  return admins;
}

bool Admins::include(const Caller& caller) const {
  if (caller.uid == 0) return true;
  if (own_.unmapped_user && caller.uid == *own_.unmapped_user) return false;  // one of many
  if (caller.uid == own_.owner || std::ranges::find(users_, caller.uid) != users_.end()) return true;
  return std::ranges::any_of(groups_, [&](gid_t group) {
    if (own_.unmapped_group && group == *own_.unmapped_group) return false;
    return caller.gid == group || std::ranges::find(caller.groups, group) != caller.groups.end();
  });
}

Error Admins::refusal(const Caller& caller, const std::string& what) const {
  return Error{Code::kDenied,
               "the daemon is everybody's: only root" +
                   (own_.owner ? ", the daemon's own user (uid " + std::to_string(*own_.owner) + ")" : "") +
                   " and those of access.admins in its settings may " + what + "; you are uid " +
                   std::to_string(caller.uid)};
}

}  // namespace millrace
