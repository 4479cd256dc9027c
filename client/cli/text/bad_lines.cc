#include "client/cli/text/bad_lines.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>
#include <vector>

#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kReasonsSummed = 10;

// Less what is of one file alone: the bytes that it begins with.
std::string_view reason_of(std::string_view message) {
  return message.substr(0, message.find("; it begins with"));
}

std::string without_figures(std::string_view reason) {
  std::string text;
  for (const char c : reason) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) text += c;
    if (digit && (text.empty() || text.back() != '#')) text += '#';
  }
  return text;
}

}  // namespace

void BadLines::add(const SampleError& sample, Progress& progress) {
  const std::string& message = sample.error.message;
  const std::string key = without_figures(reason_of(message));
  const auto known = reasons_.find(key);
  if (known == reasons_.end() && reasons_.size() >= kReasonsMost) return void(++beyond_);
  Reason& reason = known != reasons_.end() ? known->second : reasons_[key];
  if (reason.text.empty()) reason.text = reason_of(message);
  if (shown_ >= kShownMost || reason.shown >= kShownOfAReason) return void(++reason.hidden);
  ++shown_;
  ++reason.shown;
  progress.clear();
  std::fprintf(stderr, "millrace: bad sample: %s: %s\n", printable(sample.source).c_str(), printable(message).c_str());
}

void BadLines::finish() {
  std::vector<const Reason*> hidden;
  for (const auto& [key, reason] : reasons_) {
    if (reason.hidden > 0) hidden.push_back(&reason);
  }
  std::sort(hidden.begin(), hidden.end(), [](const Reason* a, const Reason* b) { return a->hidden > b->hidden; });
  std::uint64_t others = beyond_;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    if (i >= kReasonsSummed) {
      others += hidden[i]->hidden;
      continue;
    }
    std::fprintf(stderr, "millrace: ... and %s more with %s reason: %s\n", grouped(hidden[i]->hidden).c_str(),
                 hidden[i]->shown > 0 ? "the same" : "this", printable(hidden[i]->text).c_str());
  }
  if (others > 0) std::fprintf(stderr, "millrace: ... and %s more with other reasons\n", grouped(others).c_str());
}

}  // namespace millrace::cli
