#include <catch2/catch.hpp>
#include <string>

#include "daemon/memory/portion_turns.h"

namespace millrace {
namespace {

using Turns = PortionTurns<char>;
constexpr auto kUrgent = Turns::Urgency::kUrgent;
constexpr auto kRest = Turns::Urgency::kRest;

std::string taken(Turns& turns, int count) {
  std::string order;
  for (int i = 0; i < count; ++i) order += turns.next().value_or('-');
  return order;
}

TEST_CASE("turns go from user to user, and a user's own in their order", "[slots]") {
  Turns turns;
  for (const char job : {'A', 'B', 'C'}) turns.add(kUrgent, 1000, job);
  for (const char job : {'x', 'y'}) turns.add(kUrgent, 1001, job);

  REQUIRE(taken(turns, 6) == "AxByC-");
}

TEST_CASE("what is urgent goes before the rest, but the rest has every fourth turn", "[slots]") {
  Turns turns;
  for (const char job : {'a', 'b'}) turns.add(kRest, 1000, job);
  for (const char job : {'1', '2', '3', '4', '5'}) turns.add(kUrgent, 1000, job);

  REQUIRE(taken(turns, 8) == "123a45b-");
}

TEST_CASE("a user who comes back waits until the others of that kind had their turn", "[slots]") {
  Turns turns;
  turns.add(kRest, 1000, 'a');
  turns.add(kRest, 1001, 'x');
  REQUIRE(turns.next() == 'a');

  turns.add(kRest, 1000, 'b');

  REQUIRE(taken(turns, 2) == "xb");
}

}  // namespace
}  // namespace millrace
