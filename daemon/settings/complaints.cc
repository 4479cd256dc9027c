// What can be wrong with settings, wherever they come from.
#include <algorithm>
#include <type_traits>

#include "daemon/model/files/usual_opener.h"
#include "daemon/settings/admins.h"
#include "daemon/settings/fair_weights.h"
#include "daemon/settings/key_table.h"
#include "proto/base/printable.h"
#include "proto/base/sockets/handoff_path.h"

namespace millrace {
namespace {

struct BoundsOf {
  const Settings& settings;

  template <class T>
  std::string operator()(const Place<T>&) const {
    return {};
  }
  template <class T>
  std::string operator()(const Number<T>& number) const {
    const T& is = number.place.in_const(settings);
    if constexpr (std::is_same_v<T, Bytes>) {
      return out_of_bounds(is, Bytes{number.least}, Bytes{number.most});
    } else if constexpr (std::is_integral_v<T>) {
      return out_of_bounds(std::uint64_t{is}, number.least, number.most);
    } else {
      return out_of_bounds(static_cast<std::uint64_t>(is.count()), number.least, number.most);
    }
  }
  std::string operator()(const AutomaticSize& size) const { return (*this)(size.number); }
  std::string operator()(const AutomaticFolder&) const { return {}; }
  std::string operator()(const Choice&) const { return {}; }
};

std::string absolute_path(const std::string& path) {
  if (path.empty()) return "must name a path, is empty";
  if (path.find('\0') != std::string::npos) return "must not hold a zero byte";
  if (path.front() != '/') return "must be absolute (begin with /), is " + printable(path);
  return {};
}

std::string socket_path(const std::string& path) {
  if (std::string complaint = absolute_path(path); !complaint.empty()) return complaint;
  if (path.back() == '/') return "must name a file, is a folder: " + printable(path);
  if (path.size() > kLongestSocketPath)
    return "must have at most " + std::to_string(kLongestSocketPath) + " bytes (the kernel takes " +
           std::to_string(kLongestUnixPath) + ", and " + std::string(kHandoffSuffix) + " comes behind it), has " +
           std::to_string(path.size());
  return {};
}

std::string opener_path(const std::string& path) {
  if (path.empty() || path == kOpenerOnceThere) return {};
  if (path.front() != '/') return "must be \"auto\", \"\" or an absolute path, is " + printable(path);
  if (path.find('\0') != std::string::npos) return "must not hold a zero byte";
  if (path.size() > kLongestUnixPath)
    return "must have at most " + std::to_string(kLongestUnixPath) + " bytes, has " + std::to_string(path.size());
  return {};
}

}  // namespace

std::string out_of_bounds(std::uint64_t number, std::uint64_t least, std::uint64_t most) {
  if (number < least) return "must be at least " + std::to_string(least) + ", is " + std::to_string(number);
  if (number > most) return "must be at most " + std::to_string(most) + ", is " + std::to_string(number);
  return {};
}

std::string out_of_bounds(Bytes size, Bytes least, Bytes most) {
  if (size < least) return "must be at least " + size_text(least) + ", is " + size_text(size);
  if (size > most) return "must be at most " + size_text(most) + ", is " + size_text(size);
  return {};
}

std::vector<Complaint> own_complaints(const Settings& settings) {
  std::vector<Complaint> complaints;
  const auto complain = [&](std::string_view key, std::string text) {
    if (!text.empty()) complaints.push_back({std::string(key), std::move(text)});
  };
  complain("daemon.socket", socket_path(settings.socket));
  if (!settings.state_dir.empty()) complain("daemon.state_dir", absolute_path(settings.state_dir));
  for (const std::string& root : settings.roots) complain("files.roots", absolute_path(root));
  if (const Result<Admins> admins = Admins::find(settings.admins); !admins)
    complain("access.admins", admins.error().message);
  if (const auto weights = parse_fair_weights(settings.fair_weights); !weights)
    complain("fair.weights", weights.error().message);
  complain("files.opener", opener_path(settings.opener));
  return complaints;
}

std::vector<Complaint> KeyTable::complaints_about(const Settings& settings) const {
  std::vector<Complaint> complaints;
  for (const Key& key : keys_) {
    std::string text = std::visit(BoundsOf{settings}, key.field);
    if (!text.empty()) complaints.push_back({std::string(key.name), std::move(text)});
  }
  for (const auto& rule : rules_) {
    for (Complaint& complaint : rule(settings)) complaints.push_back(std::move(complaint));
  }
  return complaints;
}

}  // namespace millrace
