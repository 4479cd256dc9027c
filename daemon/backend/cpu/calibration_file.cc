#include "daemon/backend/cpu/calibration_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <map>
#include <utility>

#include "proto/base/unique_fd.h"

namespace millrace {
namespace {

using kernels::jpeg::SegmentPath;
using kernels::jpeg::Streams;

constexpr std::string_view kFirstLine = "millrace calibration 2";
constexpr std::size_t kLargestFile = 4096;

// The next line, without its end; takes it off `text`.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

std::optional<kernels::Target> target_named(std::string_view name) {
  for (const kernels::Target target : kernels::available_targets()) {
    if (kernels::name_of(target) == name) return target;
  }
  return std::nullopt;
}

// The next word, without the space behind it; takes both off `text`.
std::string_view next_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return word;
}

constexpr std::string_view kLanes = "lanes", kTurns = "turns";

// "avx512 2 1530.25"; with `segments`, "avx512 2 lanes 851".
std::optional<Timing> read_timing(std::string_view line, bool segments) {
  const std::optional<kernels::Target> target = target_named(next_word(line));
  const std::string_view streams = next_word(line);
  if (!target || (streams != "1" && streams != "2")) return std::nullopt;
  Timing timing{{*target, streams == "2" ? Streams::kTwo : Streams::kOne, {}}, 0};
  if (segments) {
    const std::string_view path = next_word(line);
    const bool possible = *target == kernels::Target::kAvx512 ? path == kLanes || path == kTurns : path == kTurns;
    if (!possible) return std::nullopt;
    timing.variant.segments = path == kLanes ? SegmentPath::kVectors : SegmentPath::kTurns;
  }
  const auto [end, failed] = std::from_chars(line.data(), line.data() + line.size(), timing.microseconds);
  const bool sound = failed == std::errc{} && end == line.data() + line.size() && timing.microseconds > 0 &&
                     timing.microseconds < 1e12;
  return sound ? std::optional(timing) : std::nullopt;
}

// The words of read_timing().
std::string timing_text(const Timing& timing) {
  std::array<char, 32> number{};
  const auto end =
      std::to_chars(number.data(), number.data() + number.size(), timing.microseconds, std::chars_format::fixed, 2).ptr;
  std::string text =
      std::string(kernels::name_of(timing.variant.target)) + (timing.variant.streams == Streams::kTwo ? " 2 " : " 1 ");
  if (timing.variant.segments)
    text += std::string(*timing.variant.segments == SegmentPath::kVectors ? kLanes : kTurns) + ' ';
  return text + std::string(number.data(), end) + '\n';
}

// FNV-1a: names a file, nothing depends on its being unique.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

std::string processor_model() {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWanted{{{"model name", ""},
                                                                                  {"cpu family", "family "},
                                                                                  {"model", "model "},
                                                                                  {"stepping", "stepping "},
                                                                                  {"CPU implementer", "implementer "},
                                                                                  {"CPU part", "part "}}};
  std::map<std::string, std::string> found;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos)
      found.emplace(line.substr(0, line.find_last_not_of("\t ", colon - 1) + 1), line.substr(colon + 2));
  }
  std::string model;
  for (const auto& [key, word] : kWanted) {
    const auto value = found.find(std::string(key));
    if (value != found.end()) model += (model.empty() ? "" : ", ") + std::string(word) + value->second;
  }
  return model.empty() ? "unknown processor" : model;
}

std::string timings_text(const Timings& timings, const CalibrationKey& key) {
  std::string text = std::string(kFirstLine) + "\nversion " + key.version + "\nprocessor " + key.processor + '\n';
  for (const Timing& timing : timings.first) text += "first " + timing_text(timing);
  for (const Timing& timing : timings.indexed) text += "indexed " + timing_text(timing);
  return text;
}

std::optional<Timings> read_timings(std::string_view text_untrusted, const CalibrationKey& key) {
  if (next_line(text_untrusted) != kFirstLine || next_line(text_untrusted) != "version " + key.version ||
      next_line(text_untrusted) != "processor " + key.processor)
    return std::nullopt;
  Timings timings;
  while (!text_untrusted.empty()) {
    std::string_view line = next_line(text_untrusted);
    const std::string_view kind = next_word(line);
    const bool indexed = kind == "indexed";
    if (!indexed && kind != "first") return std::nullopt;
    const std::optional<Timing> timing = read_timing(line, indexed);
    if (!timing) return std::nullopt;
    (indexed ? timings.indexed : timings.first).push_back(*timing);
  }
  if (timings.first.empty()) return std::nullopt;
  return timings;
}

std::string calibration_path(const std::string& state_dir, const CalibrationKey& key) {
  std::array<char, 17> name{};
  std::snprintf(name.data(), name.size(), "%016llx",
                static_cast<unsigned long long>(hash_of(key.processor + '\n' + key.version)));
  return state_dir + "/calibration-" + name.data();
}

std::optional<Timings> remembered_timings(const std::string& state_dir, const CalibrationKey& key) {
  const UniqueFd file(::open(calibration_path(state_dir, key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return std::nullopt;
  std::array<char, kLargestFile> text;
  const ssize_t size = ::read(file.get(), text.data(), text.size());
  if (size <= 0) return std::nullopt;
  return read_timings({text.data(), static_cast<std::size_t>(size)}, key);
}

Result<void> remember_timings(const std::string& state_dir, const CalibrationKey& key, const Timings& timings) {
  const std::string path = calibration_path(state_dir, key);
  const std::string fresh = path + '.' + std::to_string(::getpid());
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file) return errno_error("writing " + fresh, errno);
  if (write_all(file.get(), timings_text(timings, key)) && ::rename(fresh.c_str(), path.c_str()) == 0) return {};
  const int why = errno;
  ::unlink(fresh.c_str());
  return errno_error("writing " + path, why);
}

}  // namespace millrace
