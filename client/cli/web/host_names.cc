#include "client/cli/web/host_names.h"

#include <boost/asio/ip/address.hpp>

#include <algorithm>

namespace millrace::cli {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_address(const std::string& text) {
  boost::system::error_code wrong;
  boost::asio::ip::make_address(text, wrong);
  return !wrong;
}

}  // namespace

HostNames::HostNames(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::string& name : names_) name = lower_case(name);
}

bool HostNames::has(std::string_view host_untrusted) const {
  constexpr std::size_t kLongestName = 255;
  if (host_untrusted.starts_with('[')) {  // [::1]:9464
    const std::size_t end = host_untrusted.find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view rest = host_untrusted.substr(end + 1);
    if (!rest.empty() && !(rest.front() == ':' && is_port(rest.substr(1)))) return false;
    return end < kLongestName && is_address(std::string(host_untrusted.substr(1, end - 1)));
  }
  if (const std::size_t colon = host_untrusted.find(':'); colon != std::string_view::npos) {
    if (!is_port(host_untrusted.substr(colon + 1))) return false;
    host_untrusted = host_untrusted.substr(0, colon);
  }
  if (host_untrusted.empty() || host_untrusted.size() > kLongestName) return false;
  const std::string name = lower_case(host_untrusted);
  return name == "localhost" || is_address(name) || std::find(names_.begin(), names_.end(), name) != names_.end();
}

}  // namespace millrace::cli
