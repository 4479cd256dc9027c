// The page of `millrace web`: it has nothing that its content security policy forbids, and makes no markup of data.
#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace {

std::string page() {
  std::ifstream file(MILLRACE_SOURCE_DIR "/client/cli/web/page.html", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("the page has one script and one style, which its policy can name by their hashes", "[cli]") {
  const std::string text = page();
  for (const char* tag : {"<script>", "</script>", "<style>", "</style>"}) CHECK(times(text, tag) == 1);
  CHECK(times(text, "<script") == 1);
  CHECK(times(text, "<style") == 1);
}

TEST_CASE("the page has no handler or style as an attribute, and runs no text as code", "[cli]") {
  const std::string text = page();
  CHECK_FALSE(std::regex_search(text, std::regex(R"(<[^>]*\s(on[a-z]+|style)\s*=)")));
  for (const char* word : {"eval(", "new Function", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
                           "setAttribute(\"style\"", "setAttribute(\"on", "javascript:", "@import", "url("}) {
    CAPTURE(word);
    CHECK(times(text, word) == 0);
  }
}

TEST_CASE("the page asks its own host alone", "[cli]") {
  std::string text = page();
  const std::string svg = "http://www.w3.org/2000/svg";  // a name, which nobody fetches
  REQUIRE(times(text, svg) == 1);
  text.erase(text.find(svg), svg.size());
  CHECK(times(text, "://") == 0);
  CHECK(times(text, "\"//") == 0);
  CHECK(times(text, "ask(\"/api/") == 2);
}
