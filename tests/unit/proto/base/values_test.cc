#include <fcntl.h>

#include <catch2/catch.hpp>
#include <utility>

#include "proto/base/backend_name.h"
#include "proto/base/bytes.h"
#include "proto/base/printable.h"
#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

UniqueFd some_file() {
  UniqueFd fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(fd);
  return fd;
}

TEST_CASE("a backend's name is what a record has room for", "[base]") {
  REQUIRE(is_backend_name("cpu"));
  REQUIRE(is_backend_name("cuda:15"));
  REQUIRE(is_backend_name("remote-host"));
  REQUIRE_FALSE(is_backend_name("remote-host2"));
  REQUIRE_FALSE(is_backend_name(""));
  REQUIRE_FALSE(is_backend_name("CPU"));
  REQUIRE(std::string_view(kBackendNameRule).starts_with("1 to " + std::to_string(kBackendNameMost) + " of "));
}

TEST_CASE("sizes are shown in decimal units with one digit", "[base]") {
  REQUIRE(to_text(0_B) == "0 B");
  REQUIRE(to_text(999_B) == "999 B");
  REQUIRE(to_text(1000_B) == "1.0 kB");
  REQUIRE(to_text(38535168_B) == "38.5 MB");
  REQUIRE(to_text(4_GiB) == "4.3 GB");
  REQUIRE(to_text(Bytes{~std::uint64_t{0}}) == "18446744.1 TB");
}

TEST_CASE("sizes are rounded up to an alignment", "[base]") {
  REQUIRE(align_up(0_B, 64) == 0_B);
  REQUIRE(align_up(1_B, 64) == 64_B);
  REQUIRE(align_up(64_B, 64) == 64_B);
  REQUIRE(align_up(4097_B, 4096) == 8192_B);
  REQUIRE(2_KiB + 3_B == 2051_B);
  REQUIRE(3_KiB * 2 - 1_KiB == 5_KiB);
}

TEST_CASE("a descriptor is closed once, by its last owner", "[base]") {
  UniqueFd first = some_file();
  const int number = first.get();

  UniqueFd second = std::move(first);
  REQUIRE_FALSE(first);
  REQUIRE(is_open(number));
  second.reset();

  REQUIRE_FALSE(second);
  REQUIRE_FALSE(is_open(number));
}

TEST_CASE("assigning a descriptor closes the one before", "[base]") {
  UniqueFd kept = some_file();
  const int before = kept.get();
  UniqueFd other = some_file();
  const int after = other.get();

  kept = std::move(other);

  REQUIRE(kept.get() == after);
  REQUIRE_FALSE(is_open(before));
  REQUIRE(is_open(after));
}

TEST_CASE("a released descriptor stays open", "[base]") {
  UniqueFd fd = some_file();

  const int number = fd.release();

  REQUIRE_FALSE(fd);
  REQUIRE(is_open(number));
  ::close(number);
}

TEST_CASE("text from outside cannot end lines or turn directions by Unicode's own characters", "[base]") {
  for (const std::string steers :
       {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"})
    REQUIRE_THAT(printable("a" + steers + "b"), Catch::StartsWith("a\\x") && Catch::EndsWith("b"));
  for (const std::string fine :
       {"\u061b", "\u061d", "\u200d", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a", "\U0001F468"})
    REQUIRE(printable(fine) == fine);
}

TEST_CASE("sizes that differ read differently beside each other", "[base]") {
  const Bytes limit = 1_GiB;
  const Bytes larger{limit.count + 1};

  REQUIRE(to_text_beside(larger, limit) == "1073741825 B");
  REQUIRE(to_text_beside(limit, larger) == "1073741824 B");
  REQUIRE(to_text_beside(2_GiB, limit) == "2.1 GB");
  REQUIRE(to_text_beside(limit, limit) == "1.1 GB");
}

TEST_CASE("text from outside cannot forge lines or steer a terminal", "[base]") {
  REQUIRE(printable("caf\u00e9 \u4e2d \U0001F600 \\n") == "caf\u00e9 \u4e2d \U0001F600 \\n");
  REQUIRE(printable("a\nb\x1b[31m\x7f") == "a\\x0ab\\x1b[31m\\x7f");
  REQUIRE(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  REQUIRE(printable("\xc2\x85") == "\\xc2\\x85");           // a control character of Latin-1
  REQUIRE(printable("\xff\xc3") == "\\xff\\xc3");           // not UTF-8; cut short
  REQUIRE(printable("\xc0\xaf") == "\\xc0\\xaf");           // a slash in two bytes
  REQUIRE(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half a surrogate pair
  REQUIRE(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  REQUIRE(printable("").empty());
}

TEST_CASE("printable text is cut between characters, never within one", "[base]") {
  REQUIRE(printable("abc", 3) == "abc");
  REQUIRE(printable("abcd", 3) == "abc...");
  REQUIRE(printable("a\u4e2d", 3) == "a...");
  REQUIRE(printable("a\xff", 4) == "a...");
  REQUIRE(printable("a\xff", 5) == "a\\xff");
  REQUIRE(printable("a", 0) == "...");
  REQUIRE(printable("", 0).empty());
}

}  // namespace
}  // namespace millrace
