// What clients may not read: foreign paths, links that lead outside, other users' files. And two users at once.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/users.h"

namespace millrace {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The verdict of one line of act `read`, without its number.
std::string verdict(const std::string& line) {
  return line.substr(line.find(' ') + 1);
}

// A root with a good picture, and things beside it that no client may reach.
struct Fences {
  Fences() {
    chmod(outer.path().c_str(), 0755);
    std::filesystem::create_directory(outer / "root");
    write_file(good, some_picture(1));
    write_file(outer / "secret.jpg", some_picture(2));
    std::filesystem::create_symlink(outer / "secret.jpg", outer / "root/link_out.jpg");
    std::filesystem::create_symlink(outer / "missing.jpg", outer / "root/link_to_nothing.jpg");
    std::filesystem::create_symlink("../secret.jpg", outer / "root/relative_link_out.jpg");
    std::filesystem::create_symlink("good.jpg", outer / "root/link_inside.jpg");
    std::filesystem::create_directory_symlink(outer.path(), outer / "root/folder_out");
  }

  TempFolder outer;
  std::string root = outer / "root";
  std::string good = outer / "root/good.jpg";
};

TEST_CASE("paths that lead out of the roots are denied, in the same words whether they exist or not", "[system]") {
  const Fences fences;
  const Daemon daemon({.roots = {fences.root}});

  const auto lines = lines_of(daemon.run_client(
      "read",
      {fences.good, fences.root + "/link_inside.jpg", fences.outer / "secret.jpg", fences.outer / "missing.jpg",
       "/etc/passwd", "/no/such/folder/x.jpg", fences.root + "/../secret.jpg", fences.root + "/../missing.jpg",
       fences.root + "/link_out.jpg", fences.root + "/link_to_nothing.jpg", fences.root + "/relative_link_out.jpg",
       fences.root + "/folder_out/secret.jpg", fences.root + "/folder_out/missing.jpg",
       "/proc/self/root" + fences.outer / "secret.jpg", fences.root + "x/good.jpg"}));

  REQUIRE(lines.size() == 15);
  REQUIRE(verdict(lines[0]) == "ok");
  REQUIRE(verdict(lines[1]) == "ok");
  for (std::size_t i = 2; i < lines.size(); ++i) {
    CAPTURE(lines[i]);
    REQUIRE_THAT(verdict(lines[i]), Catch::StartsWith("PERMISSION_DENIED "));
    REQUIRE(verdict(lines[i]) == verdict(lines[2]));
  }
}

TEST_CASE("a dataset outside the roots is denied, in the same words whether it exists or not", "[system]") {
  const Fences fences;
  const Daemon daemon({.roots = {fences.root}});

  // The words without the path, with which they begin.
  const auto words = [&](const std::string& path) {
    const std::string said = daemon.run_client("list", {path});
    const std::string begin = "PERMISSION_DENIED " + path + ": ";
    REQUIRE_THAT(said, Catch::StartsWith(begin));
    return said.substr(begin.size());
  };
  const std::string there = words(fences.outer.path());
  const std::string nowhere = words(fences.outer / "missing");
  const std::string by_link = words(fences.root + "/folder_out");

  REQUIRE_THAT(there, Catch::StartsWith("not readable: "));
  REQUIRE(nowhere == there);
  REQUIRE(by_link == there);
}

TEST_CASE("a file that its caller may not read is denied although the daemon could read it", "[system]") {
  if (skipped_without_root("files of another user")) return;
  const Fences fences;
  write_file(fences.root + "/private.jpg", some_picture(3));
  give_to(fences.root + "/private.jpg", kOther, kOther, 0600);
  std::filesystem::create_directory(fences.root + "/closed");
  write_file(fences.root + "/closed/there.jpg", some_picture(4));
  give_to(fences.root + "/closed/there.jpg", kOther, kOther, 0644);
  give_to(fences.root + "/closed", kOther, kOther, 0700);
  const Daemon daemon({.roots = {fences.root}, .for_all_users = true});
  const std::vector<std::string> paths{fences.good, fences.root + "/private.jpg", fences.root + "/closed/there.jpg",
                                       fences.root + "/closed/missing.jpg"};

  const auto stranger = lines_of(daemon.run_client("read", paths, kStranger));
  const auto owner = lines_of(daemon.run_client("read", paths, kOther));

  REQUIRE(verdict(stranger[0]) == "ok");
  for (std::size_t i = 1; i < 4; ++i) {
    REQUIRE_THAT(verdict(stranger[i]), Catch::StartsWith("PERMISSION_DENIED "));
    REQUIRE(verdict(stranger[i]) == verdict(stranger[1]));
  }
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(verdict(owner[i]) == "ok");
  REQUIRE_THAT(verdict(owner[3]), Catch::StartsWith("NOT_FOUND "));
}

TEST_CASE("a folder that its caller may not list is denied as a dataset", "[system]") {
  if (skipped_without_root("folders of another user")) return;
  const Fences fences;
  std::filesystem::create_directory(fences.root + "/closed");
  write_file(fences.root + "/closed/there.jpg", some_picture(4));
  give_to(fences.root + "/closed", kOther, kOther, 0700);
  const Daemon daemon({.roots = {fences.root}, .for_all_users = true});

  REQUIRE_THAT(daemon.run_client("list", {fences.root + "/closed"}, kStranger),
               Catch::StartsWith("PERMISSION_DENIED "));
  REQUIRE(daemon.run_client("list", {fences.root + "/closed"}, kOther) == "samples 1\n");
}

TEST_CASE("a client of another user than the daemon's cannot get write access to its segment", "[system]") {
  if (skipped_without_root("write access of another user")) return;
  const TempFolder folder;
  const Daemon daemon({.for_all_users = true});

  const auto lines = lines_of(daemon.run_client("reopen", {}, kStranger));

  REQUIRE(lines.size() == 6);
  for (const std::string& line : lines) {
    CAPTURE(line);
    const bool succeeded = line.ends_with(": succeeded");
    REQUIRE(succeeded == line.starts_with("map for reading"));
  }
}

TEST_CASE("two users at once: kill -9 of one, the other's batches are those of a run alone", "[system]") {
  if (skipped_without_root("sessions of two users")) return;
  const TempFolder folder;
  chmod(folder.path().c_str(), 0755);
  const std::string pictures = folder / "pictures";
  write_image_folder(pictures, {.images = 48, .classes = 3});
  const Daemon daemon({.roots = {pictures}, .user = kService, .for_all_users = true});
  const std::string alone = daemon.run_client("epoch", {pictures}, kStranger);

  const Process reader = daemon.client("epoch", {pictures, "step=1"}, kStranger);
  for (int i = 0; i < 3; ++i) reader.say("next");
  REQUIRE(reader.wait_for("batch 2:"));
  const Process victim = daemon.client("hold", {pictures, "4"}, kOther);
  REQUIRE(victim.wait_for("holding 4"));
  REQUIRE(daemon.metric("millrace_sessions") == 2);
  victim.kill(SIGKILL);
  for (int i = 3; i < 13; ++i) reader.say("next");
  REQUIRE(reader.wait() == 0);

  REQUIRE(alone.ends_with("complete\n"));
  REQUIRE(reader.output() == alone);
  REQUIRE(eventually([&] { return daemon.metric("millrace_sessions") == 0; }));
}

}  // namespace
}  // namespace millrace
