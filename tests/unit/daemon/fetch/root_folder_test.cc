// Roots that are not there yet, go, or become others.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "daemon/fetch/open/root_folder.h"
#include "tests/unit/daemon/fetch/strangers.h"
#include "tests/unit/daemon/fetch/tree.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a root that is no absolute path is refused by its name", "[fetch]") {
  const auto relative = Roots::open({.folders = {"data"}});

  REQUIRE(relative.error().code == Code::kInvalid);
  REQUIRE(relative.error().message.find("data") != std::string::npos);
}

TEST_CASE("a look for a root says why it cannot be opened", "[fetch]") {
  const Tree tree;

  REQUIRE(RootFolder::look_for(tree.root));
  for (const char* name : {"missing", "a/b/file"}) {
    const Result<void> look = RootFolder::look_for(tree / name);
    REQUIRE(look.error().code == Code::kNotFound);
    REQUIRE(look.error().message.find(tree / name) != std::string::npos);
  }
}

TEST_CASE("a root that is not there is named to callers that ask beneath it, and the others are served", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root, tree.temp / "later"});

  for (const Caller& caller : everybody(tree.root)) {
    REQUIRE(text_or_error(*roots, tree / "a/b/file", caller) == "inside");
    REQUIRE(text_or_error(*roots, tree.temp / "later/file", caller) ==
            "the root " + tree.temp / "later" + " is not there (yet): once it is, asking again is enough");
    REQUIRE(code_of(*roots, tree.temp / "later/file", caller) == Code::kNotFound);
    REQUIRE(roots->open_folder(tree.temp / "later", caller).error().code == Code::kNotFound);
  }
  REQUIRE(roots->missing() == std::vector<std::string>{tree.temp / "later"});
}

TEST_CASE("a root that comes later is served from then on", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.temp / "later"});
  REQUIRE(code_of(*roots, tree.temp / "later/file", myself()) == Code::kNotFound);

  fs::create_directories(tree.temp / "later");
  write_file(tree.temp / "later/file", std::string("inside"));

  for (const Caller& caller : everybody(tree.root))
    REQUIRE(text_or_error(*roots, tree.temp / "later/file", caller) == "inside");
  REQUIRE(roots->missing().empty());
}

TEST_CASE("a root is not looked for more often than its interval", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.temp / "later", tree.root}, std::chrono::hours(1));
  fs::create_directories(tree.temp / "later");
  write_file(tree.temp / "later/file", std::string("inside"));
  fs::rename(tree.root, tree.temp / "away");

  REQUIRE(code_of(*roots, tree.temp / "later/file", myself()) == Code::kNotFound);
  REQUIRE(text_or_error(*roots, tree / "a/b/file", myself()) == "inside");
}

TEST_CASE("a root that was taken away is not there any more, and another one in its place is served", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root});
  REQUIRE(text_or_error(*roots, tree / "a/b/file", myself()) == "inside");

  fs::rename(tree.root, tree.temp / "away");
  const std::string meanwhile = text_or_error(*roots, tree / "a/b/file", myself());
  const std::vector<std::string> missing = roots->missing();
  fs::create_directories(tree / "a/b");
  write_file(tree / "a/b/file", std::string("new"));

  REQUIRE(meanwhile.find("is not there (yet)") != std::string::npos);
  REQUIRE(missing == std::vector<std::string>{tree.root});
  for (const Caller& caller : everybody(tree.root)) REQUIRE(text_or_error(*roots, tree / "a/b/file", caller) == "new");
}

TEST_CASE("a link in a root's place leads nowhere once the daemon runs", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree.root, tree.temp / "later"});
  REQUIRE(text_or_error(*roots, tree / "a/b/file", myself()) == "inside");

  fs::rename(tree.root, tree.temp / "away");
  fs::create_symlink(tree.outside, tree.root);
  fs::create_symlink(tree.outside, tree.temp / "later");

  for (const Caller& caller : everybody(tree.temp / "away")) {
    REQUIRE(code_of(*roots, tree / "file", caller) == Code::kNotFound);
    REQUIRE(code_of(*roots, tree.temp / "later/file", caller) == Code::kNotFound);
  }
}

TEST_CASE("a root whose link leads to what comes later is served by both its names", "[fetch]") {
  const Tree tree;
  fs::create_symlink("later/data", tree.temp / "link");
  const auto roots = open_roots({tree.temp / "link"});
  REQUIRE(code_of(*roots, tree.temp / "link/file", myself()) == Code::kNotFound);

  fs::create_directories(tree.temp / "later/data");
  write_file(tree.temp / "later/data/file", std::string("inside"));

  for (const Caller& caller : everybody(tree.root)) {
    REQUIRE(text_or_error(*roots, tree.temp / "link/file", caller) == "inside");
    REQUIRE(text_or_error(*roots, tree.temp / "later/data/file", caller) == "inside");
  }
}

TEST_CASE("a folder above a root that takes another's place is asked for its permissions", "[fetch]") {
  const Tree tree;
  if (!strangers_reach(tree.root)) return;
  fs::create_directories(tree / "above/inner");
  write_file(tree / "above/inner/file", std::string("inside"));
  const auto roots = open_roots({tree / "above/inner"});
  REQUIRE(text_or_error(*roots, tree / "above/inner/file", stranger()) == "inside");

  fs::rename(tree / "above", tree / "before");
  fs::create_directory(tree / "above");
  fs::rename(tree / "before/inner", tree / "above/inner");
  chmod((tree / "above").c_str(), 0700);

  REQUIRE(roots->type_of(tree / "above/inner", stranger()).error().message == kDenied);
  REQUIRE(roots->type_of(tree / "above/inner", myself()));
}

TEST_CASE("what lies beneath two roots is served as long as one of them is there", "[fetch]") {
  const Tree tree;
  const auto roots = open_roots({tree / "a", tree / "missing", tree.root});

  REQUIRE(text_or_error(*roots, tree / "a/b/file", myself()) == "inside");
  REQUIRE(text_or_error(*roots, tree / "missing/file", myself()) == "no such file or folder");
}

TEST_CASE("a root that nobody wants is let go of, and looked for again by the next caller that wants it", "[fetch]") {
  const Tree tree;
  RootFolder root(tree.root, std::chrono::hours(1));
  const auto descriptors = [&] {
    int found = 0;
    std::error_code gone;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd"))
      found += fs::read_symlink(entry, gone).string().starts_with(tree.temp.path()) ? 1 : 0;
    return found;
  };

  const bool held = root.let_go_unless_wanted(RootFolder::Clock::now() - std::chrono::seconds(60));
  const int while_held = descriptors();
  const bool held_later = root.let_go_unless_wanted(RootFolder::Clock::now() + std::chrono::seconds(1));
  const int after = descriptors();

  REQUIRE(held);
  REQUIRE(while_held > 0);
  REQUIRE_FALSE(held_later);
  REQUIRE(after == 0);
  REQUIRE_FALSE(root.missing());
  REQUIRE(root.opened() != nullptr);
  REQUIRE(descriptors() == while_held);
}

TEST_CASE("what an opener says of a root counts", "[fetch]") {
  const Tree tree;
  RootFolder root(tree.temp / "later", std::chrono::hours(1), RootFolder::FirstLook::kWhenWanted);
  const bool at_first = root.missing();

  root.heard(false);
  const bool heard_missing = root.missing();
  root.heard(true);

  REQUIRE_FALSE(at_first);
  REQUIRE(heard_missing);
  REQUIRE_FALSE(root.missing());
}

}  // namespace
}  // namespace millrace
