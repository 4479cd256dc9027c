// millrace-card: what simulated cards are to do next, while programs use them. By the file that MILLRACE_CARD_CONTROL
// names, for them and for this program.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "hls/card/shim/control.h"
#include "hls/card/shim/faults.h"

namespace millrace::card {
namespace {

int usage() {
  std::fprintf(stderr,
               "usage: MILLRACE_CARD_CONTROL=FILE millrace-card CARD WHAT\n"
               "  crash | hang | flip | wrong    with the next command\n"
               "  slow MICROSECONDS              the next command\n"
               "  refuse N                       the next N programmings\n"
               "  away MILLISECONDS              it cannot be opened or programmed for so long\n"
               "  celsius N | milliwatt N        what its sensors say; 0: as usual\n"
               "  show                           its commands so far, and whether it is programmed\n");
  return 2;
}

int show(unsigned card) {
  const CardLock lock(card);
  const CardControl& control = control_of(card);
  std::printf("%llu commands, %s\n", static_cast<unsigned long long>(control.commands),
              control.programmed ? "programmed" : "empty");
  return 0;
}

int change(unsigned card, const std::string& what, std::uint32_t value) {
  CardControl& control = control_of(card);
  if (const Harm harm = harm_named(what); harm != Harm::kNone) {
    control.harm_amount = value;
    control.harm = static_cast<std::uint32_t>(harm);
  } else if (what == "refuse") {
    control.refusals = value;
  } else if (what == "away") {
    control.away_until = milliseconds_now() + value;
  } else if (what == "celsius") {
    control.celsius = value;
  } else if (what == "milliwatt") {
    control.milliwatt = value;
  } else {
    return what == "show" ? show(card) : usage();
  }
  return 0;
}

int run(int count, char** arguments) {
  if (count < 3 || count > 4 || settings().control.empty()) return usage();
  char *card_end = nullptr, *value_end = nullptr;
  const unsigned long card = std::strtoul(arguments[1], &card_end, 10);
  const unsigned long value = count == 4 ? std::strtoul(arguments[3], &value_end, 10) : 0;
  if (*card_end != '\0' || card >= kMostCards || (value_end != nullptr && *value_end != '\0')) return usage();
  return change(static_cast<unsigned>(card), arguments[2], static_cast<std::uint32_t>(value));
}

}  // namespace
}  // namespace millrace::card

int main(int count, char** arguments) {
  return millrace::card::run(count, arguments);
}
