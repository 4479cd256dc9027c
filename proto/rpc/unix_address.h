// How gRPC spells a Unix socket's path: as a URI, in which only unreserved characters stand for themselves (RFC
// 3986, 2.3). Pure function.
#pragma once

#include <string>
#include <string_view>

namespace millrace {

// `path`: absolute. "/run/millrace/a b.sock" becomes "unix:/run/millrace/a%20b.sock".
inline std::string unix_address(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kPlain = "-._~/";
  std::string address = "unix:";
  for (const char c : path) {
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || kPlain.find(c) != std::string_view::npos) {
      address += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      address += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return address;
}

}  // namespace millrace
