#include "daemon/settings/fair_weights.h"

#include <grp.h>
#include <pwd.h>

#include <cerrno>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kRoomForOne = 64 * 1024;  // of an entry of the user database; its groups may have many members

Error wrong(std::string_view entry, const std::string& what) {
  return Error{Code::kInvalid, "\"" + printable(entry) + "\": " + what};
}

template <class T>
std::optional<T> number_from(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Of one entry of the user database, with as much room as it takes.
template <class Record, class Id>
std::optional<Id> look_up(int (*get)(const char*, Record*, char*, std::size_t, Record**), Id Record::*id,
                          const std::string& name) {
  for (std::size_t room = kRoomForOne; room <= 1024 * kRoomForOne; room *= 4) {
    std::vector<char> text(room);
    Record record{};
    Record* found = nullptr;
    const int failed = get(name.c_str(), &record, text.data(), text.size(), &found);
    if (found != nullptr) return record.*id;
    if (failed != ERANGE) break;
  }
  return std::nullopt;
}

Result<void> take(std::string_view entry, FairWeights& weights) {
  const std::size_t equals = entry.rfind('=');
  if (equals == std::string_view::npos)
    return wrong(entry, "must be a name, = and a weight: \"alice=3\", \"1002=2\" or \"@group=2\"");
  const auto weight = number_from<std::uint64_t>(entry.substr(equals + 1));
  if (!weight || *weight < 1 || *weight > FairWeights::kMost)
    return wrong(entry, "the weight must be a whole number from 1 to " + std::to_string(FairWeights::kMost));
  const bool is_group = entry.front() == '@';
  const std::string name(entry.substr(is_group ? 1 : 0, equals - (is_group ? 1 : 0)));
  if (name.empty()) return wrong(entry, "names nobody");
  std::optional<std::uint32_t> id = number_from<std::uint32_t>(name);
  if (!id) id = is_group ? look_up(getgrnam_r, &group::gr_gid, name) : look_up(getpwnam_r, &passwd::pw_uid, name);
  if (!id)
    return wrong(entry, std::string("this host knows no ") + (is_group ? "group" : "user") +
                            " of that name: correct it, leave it out, or give the number");
  auto& all = is_group ? weights.groups : weights.users;
  if (!all.emplace(*id, static_cast<std::uint32_t>(*weight)).second)
    return wrong(entry, std::string("this ") + (is_group ? "group" : "user") + " has a weight already: keep one");
  return {};
}

}  // namespace

Result<FairWeights> parse_fair_weights(std::span<const std::string> entries) {
  FairWeights weights;
  for (const std::string& entry : entries) MILLRACE_TRY_VOID(take(entry, weights));
  return weights;
}

}  // namespace millrace
