#include "client/cli/text/why_text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <sstream>
#include <utility>

#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kColumns = 80;

template <class... Values>
std::string phrase(const char* format, const Values&... values) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

// "812", "8.1": three digits of what is small, whole numbers of what is not.
std::string rate(double images) {
  return phrase(images >= 100 ? "%.0f" : images >= 10 ? "%.1f" : "%.2f", images);
}

// Words in lines of kColumns at most, but for a longer word; each line begins with `indent`, the first with `begin`.
std::string wrapped(const std::string& text, std::string begin, const std::string& indent) {
  std::string lines, line = std::move(begin);
  bool has_words = false;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (has_words && line.size() + 1 + word.size() > kColumns) {
      lines += line + '\n';
      line = indent;
      has_words = false;
    }
    line += (has_words ? " " : "") + word;
    has_words = true;
  }
  return lines + line + '\n';
}

std::string finding_text(const Finding& finding) {
  const std::string indent(8, ' ');
  std::string head = phrase("%4.0f %%  ", 100 * finding.share) + printable(finding.code);
  if (finding.images_per_second > 0) head += ": " + rate(finding.images_per_second) + " images/s without it";
  std::string text = head + '\n' + wrapped(printable(finding.text), indent, indent);
  text += wrapped("To do: " + printable(finding.advice), indent, indent);
  for (const std::string& path : finding.paths) text += indent + printable(path) + '\n';
  return text;
}

bool is_idle(const SessionFindings& session) {
  return !session.findings.empty() && session.findings.front().code == "idle";
}

}  // namespace

std::string why_text(const SessionFindings& session) {
  std::string head = "session " + std::to_string(session.id);
  if (!session.name.empty()) head += " \"" + printable(session.name, 64) + '"';
  head += phrase(" of user %u", session.uid);
  if (!session.job.empty() && session.job != session.name) head += ", job \"" + printable(session.job, 64) + '"';
  head += phrase(": %s images/s in the last %.0f s, ", rate(session.images_per_second).c_str(), session.time.count());
  head += phrase(session.waits_told ? "its program waited %.0f %% of them"
                                    : "it was at work for %.0f %% of them (its client does not say how long it waits)",
                 100 * session.waited);
  std::string text = wrapped(head, "", "  ");
  for (const Finding& finding : session.findings) text += finding_text(finding);
  return text;
}

std::vector<SessionFindings> busy_sessions(std::vector<SessionFindings> sessions) {
  std::erase_if(sessions, is_idle);
  std::ranges::stable_sort(sessions, std::ranges::greater(), &SessionFindings::waited);
  return sessions;
}

}  // namespace millrace::cli
