// What `millrace doctor` found: one line each, with what to do about it. Values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::cli {

enum class Verdict : std::uint8_t {
  kFine,
  kNote,     // works, but could be better
  kProblem,  // something will not work
};

struct Finding {
  std::string name;   // "shared memory"
  std::string value;  // as it is
  Verdict verdict = Verdict::kFine;
  std::string advice{};  // what to do, if there is something
};
using Findings = std::vector<Finding>;

bool healthy(const Findings& findings);  // no problem among them

// For people, and for programs: {"healthy": true, "findings": [{"name": ..., "verdict": "fine", ...}]}.
std::string findings_text(const Findings& findings);
std::string findings_json(const Findings& findings);

}  // namespace millrace::cli
