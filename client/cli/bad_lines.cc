#include "client/cli/bad_lines.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <vector>

#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kReasonsSummed = 10;

std::string without_figures(const std::string& message) {
  std::string text;
  for (const char c : message) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) text += c;
    if (digit && (text.empty() || text.back() != '#')) text += '#';
  }
  return text;
}

}  // namespace

void BadLines::add(const SampleError& sample, Progress& progress) {
  const std::string& message = sample.error.message;
  const auto known = reasons_.find(without_figures(message));
  if (known == reasons_.end() && reasons_.size() >= kReasonsMost) return void(++beyond_);
  Reason& reason = known != reasons_.end() ? known->second : reasons_[without_figures(message)];
  if (reason.text.empty()) reason.text = message;
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
