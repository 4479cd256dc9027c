#include "client/cli/text/findings.h"

#include <algorithm>

#include "client/cli/text/json.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

const char* word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFine:
      return "fine";
    case Verdict::kNote:
      return "note";
    case Verdict::kProblem:
      return "problem";
  }
  return "problem";
}

}  // namespace

bool healthy(const Findings& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& finding) { return finding.verdict == Verdict::kProblem; });
}

std::string findings_text(const Findings& findings) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.name.size());
  std::string text;
  for (const Finding& finding : findings) {
    std::string mark = finding.verdict == Verdict::kFine ? "" : std::string(word(finding.verdict)) + ": ";
    std::transform(mark.begin(), mark.end(), mark.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    text += finding.name + std::string(width - finding.name.size() + 2, ' ') + mark + printable(finding.value) + '\n';
    if (!finding.advice.empty()) text += std::string(width + 2, ' ') + "-> " + printable(finding.advice) + '\n';
  }
  return text;
}

std::string findings_json(const Findings& findings) {
  Json json;
  json.begin_object().member("healthy", healthy(findings)).key("findings").begin_array();
  for (const Finding& finding : findings) {
    json.begin_object().member("name", finding.name).member("verdict", word(finding.verdict));
    json.member("value", finding.value).member("advice", finding.advice).end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace millrace::cli
