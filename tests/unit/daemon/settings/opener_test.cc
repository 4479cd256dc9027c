// Which opener the settings mean, and whether it can read them.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "daemon/settings/key_table.h"
#include "daemon/settings/settings.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

TEST_CASE("the usual opener is for a daemon with the usual socket, and one that is named for any", "[settings]") {
  const auto in_use = [](std::string_view text) {
    return opener_in_use(*parse_settings(text, "millrace.toml", KeyTable({})));
  };

  REQUIRE(in_use("") == "auto");
  REQUIRE(in_use("[daemon]\nsocket = \"/tmp/m.sock\"\n").empty());
  REQUIRE(in_use("[daemon]\nsocket = \"/tmp/m.sock\"\n[files]\nopener = \"/tmp/o.sock\"\n") == "/tmp/o.sock");
  REQUIRE(in_use("[files]\nopener = \"\"\n").empty());
}

TEST_CASE("a settings file that an opener may not read is remarked upon", "[settings]") {
  const KeyTable keys({});
  const TempFolder folder;
  const std::string path = folder / "m.toml", without = folder / "without.toml";
  std::ofstream(path) << "[files]\nopener = \"/run/o.sock\"\n";
  std::ofstream(without) << "[files]\nopener = \"\"\n";

  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  const auto readable = load_settings(path, keys);
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  REQUIRE(::chmod(without.c_str(), 0640) == 0);
  const auto hidden = load_settings(path, keys), of_no_opener = load_settings(without, keys);

  REQUIRE(readable->remarks.empty());
  REQUIRE(of_no_opener->remarks.empty());
  REQUIRE(hidden->remarks.size() == 1);
  REQUIRE_THAT(hidden->remarks.front(), Catch::Contains(path) && Catch::Contains("chmod o+r"));
}

}  // namespace
}  // namespace millrace
