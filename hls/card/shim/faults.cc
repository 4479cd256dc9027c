#include "hls/card/shim/faults.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "hls/card/shim/control.h"
#include "hls/card/shim/settings.h"

namespace millrace::card {
namespace {

struct Rule {
  unsigned card = 0;
  std::string kind;
  double value = 0;  // of times, in microseconds
  char when = 0;     // @, % or none
  std::uint64_t nth = 1;
};

[[noreturn]] void refuse(const std::string& text) {
  std::fprintf(stderr, "simulated cards: no rule of MILLRACE_CARD_FAULTS: %s\n", text.c_str());
  std::abort();
}

double scale_of(const std::string& unit) {
  return unit == "s" ? 1e6 : unit == "ms" ? 1e3 : unit.empty() || unit == "us" ? 1 : -1;
}

Rule read_rule(const std::string& text) {
  Rule rule;
  char kind[16] = "", unit[4] = "";
  int begin = 0, end = 0;
  if (std::sscanf(text.c_str(), "%u:%15[a-z]%n", &rule.card, kind, &begin) != 2) refuse(text);
  rule.kind = kind;
  const char* rest = text.c_str() + begin;
  if (*rest == '=') {
    const int read = std::sscanf(rest, "=%lf%n%3[a-z]%n", &rule.value, &end, unit, &end);
    if (read < 1 || scale_of(unit) < 0 || rule.value < 0) refuse(text);
    rule.value *= scale_of(unit);
    rest += end;
  }
  if (*rest == '@' || *rest == '%') {
    rule.when = *rest;
    rule.nth = std::strtoull(rest + 1, const_cast<char**>(&rest), 10);
  }
  static const std::vector<std::string> kinds{"crash", "hang", "slow", "flip", "wrong", "refuse", "away"};
  bool known = false;
  for (const std::string& one : kinds) known |= one == rule.kind;
  if (!known || *rest != '\0' || rule.nth == 0 || rule.card >= kMostCards) refuse(text);
  return rule;
}

std::vector<Rule> read_rules(const std::string& all) {
  std::vector<Rule> rules;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find(',', begin), all.size());
    if (end > begin) rules.push_back(read_rule(all.substr(begin, end - begin)));
    begin = end + 1;
  }
  for (const Rule& rule : rules)
    if (rule.kind == "refuse") control_of(rule.card).refusals = static_cast<std::uint32_t>(rule.value);
  return rules;
}

const std::vector<Rule>& rules() {
  static const auto* const all = new std::vector<Rule>(read_rules(settings().faults));
  return *all;
}

bool applies(const Rule& rule, std::uint64_t number) {
  return rule.when == 0 || (rule.when == '@' ? number == rule.nth : number % rule.nth == 0);
}

}  // namespace

Harm harm_named(std::string_view kind) {
  return kind == "crash"   ? Harm::kCrash
         : kind == "hang"  ? Harm::kHang
         : kind == "slow"  ? Harm::kSlow
         : kind == "flip"  ? Harm::kFlip
         : kind == "wrong" ? Harm::kGarble
                           : Harm::kNone;
}

Fault next_fault(unsigned card) {
  CardControl& control = control_of(card);
  const std::uint64_t number = ++control.commands;
  const auto ordered = static_cast<Harm>(control.harm.exchange(0));
  if (ordered != Harm::kNone) return {ordered, control.harm_amount};
  for (const Rule& rule : rules()) {
    const Harm harm = harm_named(rule.kind);
    if (rule.card == card && harm != Harm::kNone && applies(rule, number))
      return {harm, harm == Harm::kSlow ? static_cast<std::uint32_t>(rule.value) : static_cast<std::uint32_t>(number)};
  }
  return {};
}

bool refuses_programming(unsigned card) {
  rules();
  std::atomic<std::uint32_t>& left = control_of(card).refusals;
  for (std::uint32_t was = left; was > 0;)
    if (left.compare_exchange_weak(was, was - 1)) return true;
  return false;
}

void note_death(unsigned card) {
  for (const Rule& rule : rules())
    if (rule.card == card && rule.kind == "away")
      control_of(card).away_until = milliseconds_now() + static_cast<std::uint64_t>(rule.value / 1e3);
}

bool is_away(unsigned card) {
  return milliseconds_now() < control_of(card).away_until;
}

}  // namespace millrace::card
