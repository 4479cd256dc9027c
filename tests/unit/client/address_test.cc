// What is said of an address where no daemon can be.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "millrace/client.h"
#include "tests/support/host/temp_folder.h"

namespace millrace {
namespace {

TEST_CASE("a folder or a file in the place of the daemon's socket is named as such", "[client]") {
  const TempFolder folder;
  std::ofstream(folder / "file").put('x');
  REQUIRE(::mkdir((folder / "closed").c_str(), 0500) == 0);  // who is not root may not write there

  const std::string folders = "that is a folder; name the daemon's socket with --socket or MILLRACE_SOCKET";
  for (const auto& [path, what] : {std::pair(folder.path(), folders), std::pair(folder / "closed", folders),
                                   std::pair(folder / "file", std::string("that is no socket; name "))}) {
    const auto client = Client::connect(path);

    REQUIRE_FALSE(client);
    REQUIRE(client.error().code == Code::kUnavailable);
    REQUIRE_THAT(client.error().message, Catch::Contains("unix:" + path + ": " + what));
  }
}

}  // namespace
}  // namespace millrace
