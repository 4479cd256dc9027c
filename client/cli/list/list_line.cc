#include "client/cli/list/list_line.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::cli {
namespace {

constexpr std::uint64_t kEnd = std::uint64_t{1} << 63U;
constexpr int kDeepest = 32;  // values within values: the reader takes a frame of its stack for each

// The object's own members; what lies deeper says nothing.
struct LineReader : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, LineReader> {
  enum class Member : std::uint8_t { kOther, kPath, kOffset, kLength, kLabel };

  bool Null() { return is_object_; }
  bool Bool(bool) { return takes_no_value(); }
  bool Int(int number) { return Int64(number); }
  bool Uint(unsigned number) { return Uint64(number); }
  bool Int64(std::int64_t number) {
    if (number >= 0) return Uint64(static_cast<std::uint64_t>(number));
    if (depth_ == 1 && member_ == Member::kLabel) return label = number, true;
    return takes_no_value();
  }
  bool Uint64(std::uint64_t number) {
    if (depth_ != 1) return is_object_;
    if (member_ == Member::kOffset) offset = number;
    if (member_ == Member::kLength) length = number;
    if (member_ == Member::kLabel) {
      if (number >= kEnd) return refuse("label: must be below 2^63");
      label = static_cast<std::int64_t>(number);
    }
    return member_ == Member::kPath ? takes_no_value() : is_object_;
  }
  bool Double(double) { return takes_no_value(); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ != 1 || member_ != Member::kPath) return takes_no_value();
    return path = std::string(text, size), true;
  }
  bool StartObject() { return enter(true); }
  bool StartArray() { return enter(false); }
  bool EndObject(rapidjson::SizeType) { return leave(); }
  bool EndArray(rapidjson::SizeType) { return leave(); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    if (depth_ == 1) member_ = member_of({text, size});
    return true;
  }

  std::optional<std::string> path;
  std::optional<std::uint64_t> offset, length;
  std::optional<std::int64_t> label;
  std::string refusal;  // empty: none

 private:
  static Member member_of(std::string_view name) {
    if (name == "path") return Member::kPath;
    if (name == "offset") return Member::kOffset;
    if (name == "length") return Member::kLength;
    return name == "label" ? Member::kLabel : Member::kOther;
  }
  bool refuse(const char* why) { return refusal = why, false; }
  // false, with a refusal, where the value belongs to a member of another kind.
  bool takes_no_value() {
    constexpr std::array<const char*, 5> kKinds{
        "", "path: must be a text", "offset: must be a whole number, at least 0",
        "length: must be a whole number, at least 0", "label: must be a whole number"};
    if (depth_ != 1 || member_ == Member::kOther) return is_object_;
    return refuse(kKinds.at(static_cast<std::size_t>(member_)));
  }
  bool enter(bool object) {
    if (depth_ == 0) is_object_ = object;
    if (depth_ == 1 && !takes_no_value()) return false;
    if (++depth_ > kDeepest) return refuse("is nested too deeply");
    return is_object_;
  }
  bool leave() { return --depth_, true; }

  Member member_ = Member::kOther;
  int depth_ = 0;
  bool is_object_ = false;
};

// Python's surrogateescape: U+DC80 ... U+DCFF, which the reader leaves as three bytes each, are single bytes of the path.
std::string without_escapes(std::string path) {
  std::size_t to = 0;
  for (std::size_t from = 0; from < path.size(); ++from) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(i < path.size() ? path[i] : 0); };
    const bool is_escape = at(from) == 0xED && (at(from + 1) & 0xFEU) == 0xB2 && (at(from + 2) & 0xC0U) == 0x80;
    if (is_escape) {
      path[to++] = static_cast<char>((at(from + 1) & 1U) << 6U | (at(from + 2) & 0x3FU) | 0x80U);
      from += 2;
    } else {
      path[to++] = path[from];
    }
  }
  path.resize(to);
  return path;
}

Error wrong_line(const std::string& what) {
  return Error{Code::kInvalid, what};
}

}  // namespace

Result<ListedFile> parse_list_line(char* line) {
  rapidjson::InsituStringStream text(line);
  rapidjson::Reader reader;
  LineReader read;
  const rapidjson::ParseResult parsed = reader.Parse<rapidjson::kParseInsituFlag>(text, read);
  if (!read.refusal.empty()) return wrong_line(read.refusal);
  if (parsed.Code() == rapidjson::kParseErrorTermination) return wrong_line("must be a JSON object");
  if (!parsed)
    return wrong_line(std::string("is no JSON: ") + rapidjson::GetParseError_En(parsed.Code()) + " At byte " +
                      std::to_string(parsed.Offset() + 1));
  if (!read.path || read.path->empty()) return wrong_line("path: is missing");
  if (read.path->find('\0') != std::string::npos) return wrong_line("path: must be without a zero byte");
  if (read.offset.has_value() != read.length.has_value())
    return wrong_line(read.offset ? "length: is missing, and there is an offset"
                                  : "offset: is missing, and there is a length");
  ListedFile sample{.path = without_escapes(*std::move(read.path)), .label = read.label.value_or(-1)};
  if (!read.offset) return sample;
  if (*read.offset >= kEnd || *read.length >= kEnd - *read.offset)
    return wrong_line("offset and length must be below 2^63 together");
  sample.range = FileRange{*read.offset, *read.length};
  return sample;
}

}  // namespace millrace::cli
