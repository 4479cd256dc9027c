// Starting and stopping a daemon of one's own, with scripts in its place: how it ends is theirs to choose.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "millrace/private_daemon.h"

using namespace std::chrono_literals;
using millrace::Code;
using millrace::PrivateDaemon;
namespace fs = std::filesystem;

namespace {

// A program of one shell script; gone with this.
struct Script {
  explicit Script(const std::string& text) {
    std::string folder = "/tmp/millrace-script-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    path = folder + "/millraced";
    std::ofstream(path) << "#!/bin/sh\n" << text;
    ::chmod(path.c_str(), 0700);
  }
  ~Script() { fs::remove_all(fs::path(path).parent_path()); }
  std::string path;
};

}  // namespace

TEST_CASE("a private daemon is told its socket, roots and lanes", "[client]") {
  const Script script("echo \"$@\" >&2; echo \"listening on $2\"; exec sleep 100\n");

  auto daemon = PrivateDaemon::start(
      {.roots = {"/usr", "/usr/../bin"}, .lanes = 3, .program = script.path, .arguments = {"--extra"}});

  REQUIRE(daemon);
  REQUIRE_THAT(daemon->log(), Catch::StartsWith("--socket " + daemon->socket() + " --root /usr --root "));
  REQUIRE_THAT(daemon->log(), Catch::Contains(" --lanes 3 --extra"));
  struct stat folder {};
  REQUIRE(::stat(fs::path(daemon->socket()).parent_path().c_str(), &folder) == 0);
  REQUIRE((folder.st_mode & 0777) == 0700);
}

TEST_CASE("a private daemon has its owner's environment but for what the owner's service manager told it", "[client]") {
  const Script script("env >&2; echo listening on x; exec sleep 100\n");
  const std::vector<const char*> names{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "MILLRACE_TEST_VARIABLE"};
  for (const char* name : names) ::setenv(name, "1", 1);

  auto daemon = PrivateDaemon::start({.program = script.path});

  for (const char* name : names) ::unsetenv(name);
  REQUIRE(daemon);
  REQUIRE_THAT(daemon->log(), Catch::Contains("MILLRACE_TEST_VARIABLE=1") && !Catch::Contains("NOTIFY_SOCKET=") &&
                                  !Catch::Contains("WATCHDOG_"));
}

TEST_CASE("a private daemon that ends before it listens is quoted with its last line, without its name", "[client]") {
  const Script script("echo a line before >&2; echo 'millraced: no such root' >&2; echo >&2; exit 1\n");

  const auto daemon = PrivateDaemon::start({.program = script.path});

  REQUIRE_FALSE(daemon);
  REQUIRE(daemon.error().message ==
          "private daemon: " + script.path + " ended before it listened; it says: no such root");
}

TEST_CASE("a private daemon's root has to be a folder", "[client]") {
  const Script script("exit 1\n");

  const auto daemon = PrivateDaemon::start({.roots = {script.path}, .program = script.path});

  REQUIRE(daemon.error().code == Code::kInvalid);
  REQUIRE_THAT(daemon.error().message, Catch::Contains(script.path + " is no folder"));
}

TEST_CASE("stopping a private daemon drains it and gives its exit status", "[client]") {
  const Script script("trap 'exit 5' TERM; echo listening on x; while :; do sleep 0.01; done\n");
  auto daemon = PrivateDaemon::start({.program = script.path});
  REQUIRE(daemon);

  const auto status = daemon->stop(30s);

  REQUIRE(status);
  REQUIRE(*status == 5);
  REQUIRE(*daemon->stop() == 5);
}

TEST_CASE("a private daemon that does not stop is killed", "[client]") {
  const Script script("trap '' TERM; echo listening on x; while :; do sleep 0.01; done\n");
  auto daemon = PrivateDaemon::start({.program = script.path});
  REQUIRE(daemon);

  REQUIRE(*daemon->stop(100ms) == 128 + SIGKILL);
}

TEST_CASE("a private daemon's folder goes with it", "[client]") {
  const Script script("echo listening on x; exec sleep 100\n");
  std::string folder;

  {
    auto daemon = PrivateDaemon::start({.program = script.path});
    REQUIRE(daemon);
    folder = fs::path(daemon->socket()).parent_path();
    REQUIRE(fs::exists(folder));
  }

  REQUIRE_FALSE(fs::exists(folder));
}

TEST_CASE("a private daemon that fails says what it said", "[client]") {
  const Script script("echo 'millraced: no room' >&2; exit 1\n");

  const auto daemon = PrivateDaemon::start({.program = script.path});

  REQUIRE(daemon.error().code == Code::kUnavailable);
  REQUIRE_THAT(daemon.error().message, Catch::Contains("ended before it listened"));
  REQUIRE(daemon.error().message.find('\n') == std::string::npos);
  REQUIRE_THAT(daemon.error().message, Catch::Contains("it says: no room"));
}

TEST_CASE("a private daemon that never listens is given up", "[client]") {
  const Script script("exec sleep 100\n");

  const auto daemon = PrivateDaemon::start({.program = script.path, .timeout = 100ms});

  REQUIRE_THAT(daemon.error().message, Catch::Contains("did not listen in time"));
}

TEST_CASE("a private daemon that is not there is named", "[client]") {
  REQUIRE(PrivateDaemon::start({.program = "/nonexistent/millraced"}).error().code == Code::kNotFound);
  REQUIRE(PrivateDaemon::start({.roots = {"/nonexistent/folder"}, .program = "/bin/true"}).error().code ==
          Code::kNotFound);
}

TEST_CASE("a private daemon dies with its owner, killed or not", "[client]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);  // the script inherits the writing end; its end is the daemon's
  const Script script("echo listening on x; exec sleep 100\n");

  const pid_t owner = ::fork();
  if (owner == 0) {
    ::close(ends[0]);
    auto daemon = PrivateDaemon::start({.program = script.path});
    const char good = daemon ? 'y' : 'n';
    if (::write(ends[1], &good, 1) != 1) ::_exit(1);
    ::pause();
  }
  ::close(ends[1]);
  char good = 'n';
  REQUIRE(::read(ends[0], &good, 1) == 1);
  REQUIRE(good == 'y');
  ::kill(owner, SIGKILL);
  REQUIRE(::waitpid(owner, nullptr, 0) == owner);

  REQUIRE(::read(ends[0], &good, 1) == 0);  // nobody holds the pipe any more
  ::close(ends[0]);
}

TEST_CASE("what a killed owner left behind goes with the next private daemon", "[client]") {
  const Script script("echo listening on x; exec sleep 100\n");
  const std::string base = fs::path(script.path).parent_path();
  ::setenv("XDG_RUNTIME_DIR", base.c_str(), 1);
  const auto folders = [&] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(base)) count += entry.is_directory() ? 1 : 0;
    return count;
  };
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto daemon = PrivateDaemon::start({.program = script.path});
    ::_exit(daemon ? 0 : 1);  // as if killed: nothing is tidied up
  }
  int status = -1;
  REQUIRE(::waitpid(owner, &status, 0) == owner);
  REQUIRE(status == 0);
  REQUIRE(folders() == 1);

  auto first = PrivateDaemon::start({.program = script.path});
  REQUIRE(first);
  REQUIRE(folders() == 1);
  auto second = PrivateDaemon::start({.program = script.path});
  REQUIRE(second);

  REQUIRE(folders() == 2);  // the first one's owner lives
  ::unsetenv("XDG_RUNTIME_DIR");
}
