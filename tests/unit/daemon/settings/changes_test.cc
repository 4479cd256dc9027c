// What counts at once of a file that is read again, and what from the next start on.
#include <algorithm>
#include <catch2/catch.hpp>

#include "daemon/backend/backend_table.h"
#include "daemon/backend/cpu/cpu_settings.h"
#include "daemon/settings/changes.h"

namespace millrace {
namespace {

const KeyTable& keys_with_changes() {
  static const KeyTable kKeys(backend_settings());
  return kKeys;
}

Settings settings(std::string_view text) {
  return *parse_settings(text, "m.toml", keys_with_changes());
}

TEST_CASE("changes are told by key, as the file spells them", "[settings]") {
  const Settings before = settings("limits.pixels = 1000\nmemory.segments = \"1 GiB\"\nlanes.cpu = 2\n");
  const Settings after =
      settings("limits.pixels = 2000\nmemory.segments = \"1 GiB\"\nlanes.cpu = 3\nfiles.roots = [\"/a\"]\n");

  const SettingChanges found = changes(before, after, keys_with_changes());

  REQUIRE(found.live.size() == 2);
  REQUIRE(found.live[0].name == "files.roots");
  REQUIRE(found.live[0].before == "[]");
  REQUIRE(found.live[0].now == "[\"/a\"]");
  REQUIRE(found.live[1].name == "limits.pixels");
  REQUIRE(found.live[1].before == "1000");
  REQUIRE(found.live[1].now == "2000");
  REQUIRE(found.at_start.size() == 1);
  REQUIRE(found.at_start[0].name == "lanes.cpu");
  REQUIRE(found.unchanged == keys_with_changes().keys().size() - 3);
}

TEST_CASE("of settings that are read again only the live ones are taken", "[settings]") {
  const Settings before = settings("limits.pixels = 1000\nlanes.cpu = 2\n");
  const Settings after = settings("limits.pixels = 2000\nlanes.cpu = 3\naccess.admins = [\"root\"]\n");

  const Settings now = with_live(before, after, keys_with_changes());

  REQUIRE(now.limits.sample.pixels == 2000);
  REQUIRE(now.admins == std::vector<std::string>{"root"});
  REQUIRE(now.groups.of<CpuSettings>().lanes == 2);
  REQUIRE(changes(now, after, keys_with_changes()).live.empty());
  REQUIRE(changes(now, after, keys_with_changes()).at_start.size() == 1);
}

TEST_CASE("every key can be copied from settings to others", "[settings]") {
  const Settings from = settings(
      "daemon.socket = \"/s\"\ndaemon.log_level = \"error\"\ncache.packed = false\ndaemon.state_dir = \"/state\"\n"
      "memory.segments = \"5 MiB\"\nlimits.time_milliseconds = 7\ndaemon.drain_seconds = 8\nfiles.roots = [\"/a\"]\n");
  Settings to = default_settings();

  for (const Key& key : keys_with_changes().keys()) copy_value(key, from, to);

  REQUIRE(to_toml(to, keys_with_changes()) == to_toml(from, keys_with_changes()));
}

TEST_CASE("the example and the check say which settings are live", "[settings]") {
  const std::string example = to_toml(default_settings(), keys_with_changes(), TomlStyle::kExample);
  const std::string marked = to_toml(default_settings(), keys_with_changes(), TomlStyle::kMarked);

  REQUIRE_THAT(marked, Catch::Contains("drain_seconds = 30  # live\n"));
  REQUIRE_THAT(marked, Catch::Contains("fetch_threads = 4\n"));
  REQUIRE(parse_settings(marked, "m.toml", keys_with_changes()));
  std::size_t live = 0, words = 0;
  for (const Key& key : keys_with_changes().keys()) live += key.live() ? 1 : 0;
  for (std::size_t at = example.find("Live.\n"); at != example.npos; at = example.find("Live.\n", at + 1)) ++words;
  REQUIRE(words == live);
}

}  // namespace
}  // namespace millrace
