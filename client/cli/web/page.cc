#include "client/cli/web/page.h"

#include <openssl/evp.h>

#include <array>
#include <cstdint>

// page.S
extern "C" const char millrace_page[];
extern "C" const std::uint64_t millrace_page_bytes;

namespace millrace::cli {
namespace {

// 'sha256-...' of each element, each behind a space.
std::string hashes_of(std::string_view page, std::string_view begin, std::string_view end) {
  std::string hashes;
  for (std::size_t at = page.find(begin); at != std::string_view::npos; at = page.find(begin, at)) {
    at += begin.size();
    const std::string_view text = page.substr(at, page.find(end, at) - at);
    std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
    unsigned bytes = 0;
    EVP_Digest(text.data(), text.size(), hash.data(), &bytes, EVP_sha256(), nullptr);
    std::array<unsigned char, EVP_MAX_MD_SIZE * 2> base64{};
    const int length = EVP_EncodeBlock(base64.data(), hash.data(), static_cast<int>(bytes));
    hashes += " 'sha256-" + std::string(base64.data(), base64.data() + length) + "'";
  }
  return hashes.empty() ? " 'none'" : hashes;
}

}  // namespace

std::string_view page_text() {
  return {millrace_page, static_cast<std::size_t>(millrace_page_bytes)};
}

std::string page_policy(std::string_view page) {
  return "default-src 'none'; script-src" + hashes_of(page, "<script>", "</script>") + "; style-src" +
         hashes_of(page, "<style>", "</style>") +
         "; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
}

}  // namespace millrace::cli
