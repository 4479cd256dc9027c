#include "kernels/raster/pnm.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string_view>

namespace millrace::kernels::raster {
namespace {

constexpr std::size_t kLongestWord = 10;  // in a header
constexpr std::uint32_t kMostSample = 65535;

const char* const kPnmCutOff = "cut off: the file ends within the header of a PNM picture";

bool is_space(std::uint8_t byte) {
  return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

// The next word of a header of P1 ... P6, and the one byte of white space behind it. A remark, from # to the end of its
// line, counts for nothing, even within a word. Empty: what went wrong stands in `wrong`.
std::string_view next_word(Cursor& from, std::array<char, kLongestWord>& word, std::string& wrong) {
  std::size_t length = 0;
  while (const std::optional<std::uint8_t> byte = from.next()) {
    if (*byte == '#') {
      for (std::optional<std::uint8_t> in = from.next(); in && *in != '\n' && *in != '\r'; in = from.next()) continue;
    } else if (!is_space(*byte)) {
      if (length == word.size()) {
        wrong = "a broken PNM file: a number of its header is too long";
        return {};
      }
      word[length++] = static_cast<char>(*byte);
    } else if (length > 0) {
      return {word.data(), length};
    }
  }
  if (length == 0) wrong = kPnmCutOff;
  return {word.data(), length};
}

// nullopt: no number, or one above `most`.
std::optional<std::uint32_t> number_in(std::string_view word, std::uint32_t most) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number > most) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

std::string read_number(Cursor& from, const char* what, std::uint32_t most, std::uint32_t& number) {
  std::array<char, kLongestWord> memory;
  std::string wrong;
  const std::string_view word = next_word(from, memory, wrong);
  if (!wrong.empty()) return wrong;
  const std::optional<std::uint32_t> found = number_in(word, most);
  if (!found) return std::string("a broken PNM file: its ") + what + " makes no sense";
  number = *found;
  return {};
}

// P4, P5 and P6: width, height and, where samples are numbers, the largest of them.
std::string read_words(FileBytes file, char kind, PnmHeader& header) {
  Cursor from(file, 3);
  if (std::string wrong = read_number(from, "width", kLargestSide, header.width); !wrong.empty()) return wrong;
  if (std::string wrong = read_number(from, "height", kLargestSide, header.height); !wrong.empty()) return wrong;
  header.most = 1;
  if (kind != '4') {
    if (std::string wrong = read_number(from, "largest sample", kMostSample, header.most); !wrong.empty()) return wrong;
    if (header.most == 0) return "a broken PNM file: its largest sample is 0";
  }
  header.samples = kind == '6' ? 3 : 1;
  header.sample_bits = kind == '4' ? 1 : header.most > 255 ? 16 : 8;
  header.data_at = from.at();
  return {};
}

// --- PAM ---

struct PamWords {
  std::optional<std::uint32_t> width, height, depth, most;
  std::string_view kind;
};

std::string_view line_at(FileBytes file, std::size_t at) {
  const std::string_view rest(reinterpret_cast<const char*>(file.data()) + at, file.size() - at);
  const std::size_t end = rest.find('\n');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end + 1);
}

std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char c) { return is_space(static_cast<std::uint8_t>(c)); };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string read_line(std::string_view line, PamWords& words) {
  std::size_t end = 0;
  while (end < line.size() && !is_space(static_cast<std::uint8_t>(line[end]))) ++end;
  const std::string_view key = line.substr(0, end), value = trimmed(line.substr(end));
  if (key == "TUPLTYPE") {
    words.kind = value;
    return {};
  }
  const struct {
    std::string_view key;
    std::optional<std::uint32_t>& value;
  } numbers[] = {{"WIDTH", words.width}, {"HEIGHT", words.height}, {"DEPTH", words.depth}, {"MAXVAL", words.most}};
  for (const auto& number : numbers) {
    if (key != number.key) continue;
    number.value = number_in(value, kLargestSide);
    return number.value ? "" : "a broken PAM file: its " + std::string(key) + " makes no sense";
  }
  return "a broken PAM file: a line of its header begins with none of WIDTH, HEIGHT, DEPTH, MAXVAL, TUPLTYPE and "
         "ENDHDR";
}

// Whether pixels of this kind are grey or RGB, with alpha or without. A file need not say a kind.
bool is_known(const PamWords& words) {
  constexpr struct {
    std::string_view kind;
    std::uint32_t depth;
  } kKinds[] = {{"BLACKANDWHITE", 1}, {"BLACKANDWHITE_ALPHA", 2}, {"GRAYSCALE", 1}, {"GRAYSCALE_ALPHA", 2}, {"RGB", 3},
                {"RGB_ALPHA", 4}};
  if (words.kind.empty()) return words.depth >= 1U && words.depth <= 4U;
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](const auto& one) { return one.kind == words.kind && one.depth == words.depth; });
}

std::string read_pam(FileBytes file, PnmHeader& header) {
  PamWords words;
  std::size_t at = 3;
  for (;;) {
    const std::string_view line = line_at(file, at);
    if (line.empty()) return kPnmCutOff;
    at += line.size();
    const std::string_view text = trimmed(line);
    if (text == "ENDHDR") break;
    if (text.empty() || text.front() == '#') continue;
    if (std::string wrong = read_line(text, words); !wrong.empty()) return wrong;
  }
  if (!words.width || !words.height || !words.depth || !words.most)
    return "a broken PAM file: its header lacks WIDTH, HEIGHT, DEPTH or MAXVAL";
  if (!is_known(words))
    return "this kind of PAM is not decoded here: write GRAYSCALE, GRAYSCALE_ALPHA, RGB or RGB_ALPHA, DEPTH 1 to 4";
  if (*words.most < 1 || *words.most > 255) return "PAM is decoded here with a MAXVAL of 1 to 255";
  header = {*words.width, *words.height, static_cast<int>(*words.depth), 8, *words.most, at};
  return {};
}

// --- rows ---

// Python's round() of value / most * white, which rounds halves to even, as the processor does.
double scaled(std::uint32_t value, std::uint32_t most, double white) {
  return std::min(white, std::nearbyint(static_cast<double>(value) / most * white));
}

void copy_bits(const std::uint8_t* row, int left, MutableU8View out) {
  for (int x = 0; x < out.width; ++x) {
    const int at = left + x;
    out.data[x] = (row[at / 8] >> (7 - at % 8) & 1) != 0 ? 0 : 255;
  }
}

// The first `channels` of each pixel's samples.
template <std::size_t kSamples, std::size_t kChannels>
void copy_without_alpha(const std::uint8_t* from, std::size_t pixels, std::uint8_t* to) {
  for (std::size_t x = 0; x < pixels; ++x) {
    for (std::size_t c = 0; c < kChannels; ++c) to[x * kChannels + c] = from[x * kSamples + c];
  }
}

void copy_bytes(int samples, const std::uint8_t* row, int left, MutableU8View out) {
  const auto pixels = static_cast<std::size_t>(out.width);
  const std::uint8_t* const from = row + std::ptrdiff_t{left} * samples;
  if (samples == 2) return copy_without_alpha<2, 1>(from, pixels, out.data);
  if (samples == 4) return copy_without_alpha<4, 3>(from, pixels, out.data);
  std::memcpy(out.data, from, pixels * static_cast<std::size_t>(samples));
}

}  // namespace

std::uint64_t PnmHeader::row_bytes() const {
  const std::uint64_t bits = std::uint64_t{width} * static_cast<std::uint64_t>(samples * sample_bits);
  return (bits + 7) / 8;
}

bool is_pnm(FileBytes file_untrusted) {
  if (file_untrusted.size() < 3 || file_untrusted[0] != 'P') return false;
  if (file_untrusted[1] == '7') return file_untrusted[2] == '\n';
  return file_untrusted[1] >= '1' && file_untrusted[1] <= '6' && is_space(file_untrusted[2]);
}

std::string read_pnm_header(FileBytes file_untrusted, PnmHeader& header) {
  const char kind = static_cast<char>(file_untrusted[1]);
  if (kind == '7') return read_pam(file_untrusted, header);
  if (kind >= '4') return read_words(file_untrusted, kind, header);
  return std::string("PNM with samples written as text (P") + kind + ") is not decoded here: write it as P" +
         static_cast<char>(kind + 3);
}

PnmRows::PnmRows(const PnmHeader& header) : header_(header) {
  for (std::uint32_t value = 0; value < scale_.size(); ++value)
    scale_[value] = static_cast<std::uint8_t>(scaled(value, header.most, 255));
}

void PnmRows::read(const std::uint8_t* row, int left, MutableU8View out) const {
  if (header_.sample_bits == 1) return copy_bits(row, left, out);
  if (header_.sample_bits == 16) return read_words(row, left, out);
  copy_bytes(header_.samples, row, left, out);
  if (header_.most == 255) return;
  std::uint8_t* const end = out.data + std::ptrdiff_t{out.width} * out.channels;
  std::transform(out.data, end, out.data, [this](std::uint8_t value) { return scale_[value]; });
}

void PnmRows::read_words(const std::uint8_t* row, int left, MutableU8View out) const {
  const auto channels = static_cast<std::size_t>(out.channels);
  const std::uint8_t* from = row + static_cast<std::size_t>(left) * channels * 2;
  const double white = channels == 1 ? kMostSample : 255;  // Pillow's mode for such grey has more than 8 bits
  for (std::size_t i = 0; i < static_cast<std::size_t>(out.width) * channels; ++i, from += 2) {
    const std::uint32_t value = static_cast<std::uint32_t>(from[0]) << 8U | from[1];
    out.data[i] = static_cast<std::uint8_t>(std::min(255.0, scaled(value, header_.most, white)));
  }
}

}  // namespace millrace::kernels::raster
