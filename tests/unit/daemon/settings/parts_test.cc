// Settings that parts of the daemon bring: backends, and whatever has keys of its own.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string_view>

#include "daemon/backend/backend_table.h"
#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"

namespace millrace {
namespace {

const KeyTable& keys_of_parts() {
  static const KeyTable kKeys(backend_settings());
  return kKeys;
}

TEST_CASE("every key is there once, in a table that is explained", "[settings]") {
  std::set<std::string_view> names, tables;

  for (const KeyGroup& group : keys_of_parts().groups()) REQUIRE(tables.insert(group.table).second);
  for (const Key& key : keys_of_parts().keys()) {
    CAPTURE(key.name);
    REQUIRE(names.insert(key.name).second);
    REQUIRE(tables.contains(key.table()));
  }
  for (const GoneKey& gone : keys_of_parts().gone()) REQUIRE_FALSE(names.contains(gone.name));
}

TEST_CASE("a backend's rules for its settings are told with file and line, as all others", "[settings]") {
  REQUIRE(parse_settings("[backends]\nfake = \"speed=3\"", "millrace.toml", keys_of_parts()).error().message ==
          "millrace.toml:2: backends.fake: \"speed=3\" is not an option; use delay_us, fail_every, lose_after, "
          "back_after, depth, first or instant, each with =NUMBER");
}

struct PartSettings {
  std::uint32_t devices = 1;
};

TEST_CASE("a part's settings are read, bounded and printed as the daemon's own are", "[settings]") {
  const Key part_keys[] = {{"part.devices", number(in_group<&PartSettings::devices>, 1, 4), "How many."}};
  const KeyGroup part_groups[] = {{"part", "A part."}};
  const SettingsPart part{.keys = part_keys, .groups = part_groups};
  const KeyTable table(std::span(&part, 1));

  const auto settings = parse_settings("part.devices = 3", "m.toml", table);
  const auto too_many = parse_settings("part.devices = 5", "m.toml", table);
  const auto of_another = parse_settings("lanes.cpu = 3", "m.toml", table);

  REQUIRE(settings);
  REQUIRE(settings->groups.of<PartSettings>().devices == 3);
  REQUIRE(default_settings().groups.of<PartSettings>().devices == 1);
  REQUIRE(to_toml(*settings, table).find("[part]\ndevices = 3\n") != std::string::npos);
  REQUIRE(too_many.error().message == "m.toml:1: part.devices: must be at most 4, is 5");
  REQUIRE(of_another.error().message.find("lanes.cpu: no such setting") != std::string::npos);
}

TEST_CASE("budgets that are left to the daemon add up to less than the host or the control group has", "[settings]") {
  const Settings usual{};
  for (const std::uint32_t lanes : {1U, 2U, 7U, 8U, 64U, 192U}) {
    const Bytes least = 3_GiB + 64_MiB * (std::max(lanes, 7U) - 7);
    for (const Bytes memory : {least, least + 1_GiB, Bytes{least.count * 2}, least + 20_GiB, least + 2'000_GiB}) {
      const AutomaticBudgets budgets = automatic_budgets(memory, memory, lanes);
      const Bytes sum = budgets.segments + budgets.decoding + budgets.cache + budgets.requests;
      CAPTURE(lanes, to_text(memory), to_text(sum));
      CHECK(sum + own_memory(lanes, usual.encoded_in_flight, readers_of(usual)) < memory);
    }
  }
}

}  // namespace
}  // namespace millrace
