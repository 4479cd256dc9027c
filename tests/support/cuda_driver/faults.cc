#include "tests/support/cuda_driver/faults.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string>

#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

struct Rule {
  std::string operation, name;
  long nth = 1;
  Fault fault;
  std::atomic<long> seen{0};
};

void read_rule(const std::string& text, Rule& rule) {
  char operation[32], name[64], result[16];
  if (std::sscanf(text.c_str(), "%31[^:]:%63[^:]:%ld=%15s", operation, name, &rule.nth, result) != 4) {
    std::fprintf(stderr, "simulated CUDA: no rule of SIM_CUDA_FAULTS: %s\n", text.c_str());
    std::abort();
  }
  rule.operation = operation;
  rule.name = name;
  rule.fault.hangs = std::strcmp(result, "hang") == 0;
  rule.fault.result = rule.fault.hangs ? cuda::CUDA_SUCCESS : std::atoi(result);
}

std::deque<Rule>* read_rules(const std::string& all) {
  auto* const rules = new std::deque<Rule>;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(';', begin), all.size());
    if (end > begin) read_rule(all.substr(begin, end - begin), rules->emplace_back());
    begin = end + 1;
  }
  return rules;
}

}  // namespace

Fault next_fault(std::string_view operation, std::string_view name) {
  static auto* const rules = read_rules(settings().faults);
  for (Rule& rule : *rules) {
    const bool applies = rule.operation == operation && (rule.name == "*" || rule.name == name);
    if (applies && ++rule.seen == rule.nth) return rule.fault;
  }
  return {};
}

bool is_sticky(cuda::CUresult result) {
  return result == cuda::CUDA_ERROR_ILLEGAL_ADDRESS || result == cuda::CUDA_ERROR_LAUNCH_FAILED ||
         result == cuda::CUDA_ERROR_ECC_UNCORRECTABLE || result == cuda::CUDA_ERROR_UNKNOWN;
}

}  // namespace millrace::sim
