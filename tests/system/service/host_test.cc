// The daemon on its host: user namespaces, roots that come and go, the service manager.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "daemon/fetch/open/unmapped_ids.h"
#include "proto/base/sockets/handoff_path.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/notify_socket.h"
#include "tests/system/support/operator.h"
#include "tests/system/support/users.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

const std::string kOnlyRoot = "0 0 1\n";

std::string in_namespace_program() {
  return tests_folder() + "/millrace_in_user_namespace";
}

bool skipped_without_namespaces() {
  if (is_root() && run_program({in_namespace_program(), kOnlyRoot, "/bin/true"}).status == 0) return false;
  skip_loudly("a daemon in a user namespace (needs root, and namespaces that are permitted)");
  return true;
}

// Pictures of two users; the daemon's group may read all of them.
struct TwoUsers {
  TwoUsers() {
    chmod(folder.path().c_str(), 0755);
    write_file(open, some_picture(1));
    write_file(bobs, some_picture(2));
    give_to(bobs, kBob, 0, 0640);
    fs::create_directory(folder / "bob");
    write_file(in_bobs, some_picture(3));
    give_to(folder / "bob", kBob, 0, 0750);
    write_file(alices, some_picture(4));
    give_to(alices, kAlice, 0, 0640);
  }

  TempFolder folder;
  std::string open = folder / "open.jpg", bobs = folder / "bobs.jpg", in_bobs = folder / "bob/in.jpg",
              alices = folder / "alices.jpg";
  std::vector<std::string> paths{open, bobs, in_bobs, alices};
};

TEST_CASE("in a namespace that maps neither, one user does not get the files of another", "[system]") {
  if (skipped_without_namespaces()) return;
  const TwoUsers files;
  const Daemon daemon({.roots = {files.folder.path()}, .for_all_users = true, .user_namespace = kOnlyRoot});

  const std::vector<std::string> alice = verdicts(daemon, files.paths, kAlice);
  const std::vector<std::string> root = verdicts(daemon, files.paths);
  const std::string listed = daemon.run_client("list", {files.folder / "bob"}, kAlice);

  for (const std::string& verdict : alice) {
    REQUIRE_THAT(verdict, Catch::StartsWith("PERMISSION_DENIED ") && Catch::Contains("does not map your user"));
    REQUIRE(verdict == alice[0]);
  }
  REQUIRE_THAT(listed, Catch::StartsWith("PERMISSION_DENIED "));
  for (const std::string& verdict : root) REQUIRE(verdict == "ok");
}

TEST_CASE("in a namespace that maps one user, he gets what is his and not what is not mapped", "[system]") {
  if (skipped_without_namespaces()) return;
  const TwoUsers files;
  const std::string alice_too = kOnlyRoot + std::to_string(kAlice) + " " + std::to_string(kAlice) + " 1\n";
  const Daemon daemon({.roots = {files.folder.path()}, .for_all_users = true, .user_namespace = alice_too});

  const std::vector<std::string> alice = verdicts(daemon, files.paths, kAlice);
  const std::vector<std::string> bob = verdicts(daemon, files.paths, kBob);

  REQUIRE(alice[0] == "ok");
  REQUIRE_THAT(alice[1], Catch::StartsWith("PERMISSION_DENIED not readable"));
  REQUIRE_THAT(alice[2], Catch::StartsWith("PERMISSION_DENIED not readable"));
  REQUIRE(alice[3] == "ok");
  for (const std::string& verdict : bob) REQUIRE_THAT(verdict, Catch::Contains("does not map your user"));
}

TEST_CASE("where every id is mapped, nobody reads his own files", "[system]") {
  if (!is_root() || unmapped_ids().user)
    return skip_loudly("files of the user nobody (needs root, and every id mapped)");
  constexpr uid_t kNobody = 65'534;
  const TwoUsers files;
  give_to(files.bobs, kNobody, kNobody, 0600);
  const Daemon daemon({.roots = {files.folder.path()}, .for_all_users = true});

  REQUIRE(verdicts(daemon, {files.open, files.bobs}, kNobody) == std::vector<std::string>{"ok", "ok"});
}

TEST_CASE("a user who cannot be told from others takes no folder for its own", "[system]") {
  if (skipped_without_namespaces()) return;
  const TempFolder state;
  const std::vector<std::pair<std::string, std::string>> env{{"XDG_STATE_HOME", state.path()}};
  const std::string program = bin_folder() + "/millraced";

  const Ran known = run_program({program, "--check-config"}, env);
  const Ran stand_in = run_program({in_namespace_program(), "65534 0 1\n", program, "--check-config"}, env);

  CAPTURE(known.output, stand_in.output);
  REQUIRE_THAT(known.output, Catch::Contains("state_dir = \"" + state.path() + "/millrace\"") ||
                                 Catch::Contains("state_dir = \"/var/lib/millrace\""));
  REQUIRE_THAT(stand_in.output, Catch::Contains("state_dir = \"\""));
}

TEST_CASE("a root that is not there yet stops nobody, is named everywhere, and is served once it comes", "[system]") {
  const TempFolder folder;
  const std::string later = folder / "later", there = folder / "there";
  fs::create_directory(there);
  write_file(there + "/good.jpg", some_picture(1));
  const Daemon daemon({.roots = {there, later}});

  const std::vector<std::string> before = verdicts(daemon, {there + "/good.jpg", later + "/good.jpg"});
  const std::string listed = daemon.run_client("list", {later});
  const Ran doctor = run_program({bin_folder() + "/millrace", "doctor", "--socket", daemon.socket()});
  const std::vector<std::string> missing = need(daemon.connect().statistics()).missing_roots;
  fs::create_directory(later);
  write_file(later + "/good.jpg", some_picture(2));
  const bool served = eventually([&] { return verdicts(daemon, {later + "/good.jpg"})[0] == "ok"; });

  REQUIRE(before[0] == "ok");
  REQUIRE_THAT(before[1], Catch::StartsWith("NOT_FOUND the root " + later + " is not there (yet)"));
  REQUIRE_THAT(listed, Catch::StartsWith("NOT_FOUND ") && Catch::Contains("the root " + later + " is not there (yet)"));
  REQUIRE_THAT(doctor.output, Catch::Contains(later + ": it is not there"));
  REQUIRE(missing == std::vector<std::string>{later});
  REQUIRE(served);
  REQUIRE(need(daemon.connect().statistics()).missing_roots.empty());
  REQUIRE_THAT(daemon.errors(), Catch::Contains("warning opening the root " + later) &&
                                    Catch::Contains("the root " + later + " is there now"));
}

TEST_CASE("a daemon of which no root is there starts and waits for them", "[system]") {
  const TempFolder folder;
  const std::string later = folder / "later";
  const Daemon daemon({.roots = {later}});

  fs::create_directory(later);
  write_file(later + "/good.jpg", some_picture(1));

  REQUIRE(eventually([&] { return verdicts(daemon, {later + "/good.jpg"})[0] == "ok"; }));
}

TEST_CASE("a file system that is mounted on a root, and taken away again, is seen", "[system]") {
  if (!can_have_own_shm()) return skip_loudly("mounting on a root (needs root)");
  const TempFolder folder;
  const std::string root = folder / "root", good = folder / "root/good.jpg";
  fs::create_directory(root);
  write_file(folder / "good.jpg", some_picture(1));
  const Daemon daemon({.roots = {root}, .shm_size = "8m"});  // with mounts of its own, gone with it
  const auto mount_there = [&](const std::string& script) {
    const std::string pid = std::to_string(daemon.pid());
    return run_program({"nsenter", "--target", pid, "--mount", "--root", "sh", "-c", script, folder.path()}).status;
  };
  const auto is = [&](const std::string& verdict) {
    return eventually([&] { return verdicts(daemon, {good})[0].starts_with(verdict); });
  };
  REQUIRE(is("NOT_FOUND no such file"));

  REQUIRE(mount_there("mount -t tmpfs tmpfs \"$0/root\" && cp \"$0/good.jpg\" \"$0/root\"") == 0);
  const bool mounted = is("ok");
  REQUIRE(mount_there("umount -l \"$0/root\"") == 0);
  const bool taken_away = is("NOT_FOUND no such file");

  REQUIRE(mounted);
  REQUIRE(taken_away);
}

TEST_CASE("a root of the command line has to be there", "[system]") {
  const TempFolder folder;
  const std::string program = bin_folder() + "/millraced", socket = folder / "millrace.sock";

  const Ran missing = run_program({program, "--socket", socket, "--root", folder / "nope"});

  CAPTURE(missing.errors);
  REQUIRE(missing.status == 1);
  REQUIRE_THAT(missing.errors, Catch::Contains("the root " + folder / "nope") && Catch::Contains("No such file"));
}

TEST_CASE("--check-config says which root is not there, beside the settings", "[system]") {
  const TempFolder folder;
  write_file(folder / "good.toml", "[files]\nroots = [\"" + folder.path() + "\", \"" + folder / "later" + "\"]\n");

  const Ran ran = run_program({bin_folder() + "/millraced", "--config", folder / "good.toml", "--check-config"});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_THAT(ran.errors, Catch::Contains("the root " + folder / "later" + ": No such file"));
  REQUIRE_THAT(ran.errors, !Catch::Contains("the root " + folder.path() + ":"));
  REQUIRE_THAT(ran.output, !Catch::Contains("No such file"));
}

bool connects(const std::string& path, int type) {
  const UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

TEST_CASE("the service manager hears that the daemon is ready once both sockets take connections", "[system]") {
  const NotifySocket manager;
  const TempFolder folder;
  const std::string socket = folder / "millrace.sock";
  const Process daemon = Process::spawn(
      {.argv = {bin_folder() + "/millraced", "--socket", socket}, .env = {{"NOTIFY_SOCKET", manager.path()}}});

  const std::string first = manager.next();
  const bool control = connects(socket, SOCK_STREAM), handoff = connects(handoff_path(socket), SOCK_SEQPACKET);
  Result<Client> client = Client::connect(socket);

  REQUIRE_THAT(first, Catch::StartsWith("READY=1\n") && Catch::Contains("STATUS=serving " + socket));
  REQUIRE(control);
  REQUIRE(handoff);
  REQUIRE(client);
  REQUIRE(client->ping());
}

TEST_CASE("the service manager gets signs of life from a daemon that it watches, and hears that it stops", "[system]") {
  const NotifySocket manager;
  const TempFolder folder;
  const std::string later = folder / "later";
  Daemon daemon({.roots = {later}, .env = {{"NOTIFY_SOCKET", manager.path()}, {"WATCHDOG_USEC", "200000"}}});
  const std::string ready = manager.next();

  const std::string alive = manager.next(), again = manager.next();
  daemon.kill(SIGTERM);
  std::string last = manager.next();
  while (last.starts_with("WATCHDOG=1")) last = manager.next();

  REQUIRE_THAT(ready, Catch::StartsWith("READY=1\n") && Catch::Contains("root not there: " + later));
  REQUIRE_THAT(alive, Catch::StartsWith("WATCHDOG=1\n"));
  REQUIRE_THAT(again, Catch::StartsWith("WATCHDOG=1\n"));
  REQUIRE_THAT(last, Catch::StartsWith("STOPPING=1\nEXTEND_TIMEOUT_USEC="));
  REQUIRE(daemon.wait() == 0);
}

TEST_CASE("a daemon whose lanes do not come back long after their limit gives no further sign of life", "[system]") {
  const NotifySocket manager;
  const TempFolder folder;
  write_file(folder / "good.jpg", some_picture(1));
  const Daemon daemon({.roots = {folder.path()},
                       .limits = "time_milliseconds = 10\n",
                       .fake = "delay_us=60000000",
                       .env = {{"NOTIFY_SOCKET", manager.path()}, {"WATCHDOG_USEC", "200000"}}});
  Session session = need(daemon.connect().open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  need(session.submit({.samples = {{.source = Path{folder / "good.jpg"}}}, .backend = "fake"}));

  std::string message = manager.next();
  for (int i = 0; i < 300 && !message.starts_with("STATUS=stuck"); ++i) message = manager.next();
  bool alive = false;
  for (int i = 0; i < 5; ++i) alive = alive || manager.next().starts_with("WATCHDOG=1");

  REQUIRE_THAT(message, Catch::StartsWith("STATUS=stuck"));
  REQUIRE_FALSE(alive);
  REQUIRE(logs(daemon, "given anything back"));
}

TEST_CASE("a daemon whose lanes take long, but no longer than they may, is alive", "[system]") {
  const NotifySocket manager;
  const TempFolder folder;
  write_file(folder / "good.jpg", some_picture(1));
  const Daemon daemon({.roots = {folder.path()},
                       .fake = "delay_us=60000000",
                       .env = {{"NOTIFY_SOCKET", manager.path()}, {"WATCHDOG_USEC", "200000"}}});
  Session session = need(daemon.connect().open_session({.slots = 1, .batch = 1, .recipe = Recipe::train(32)}));
  need(session.submit({.samples = {{.source = Path{folder / "good.jpg"}}}, .backend = "fake"}));
  REQUIRE(manager.next().starts_with("READY=1"));

  bool alive = true;
  for (int i = 0; i < 20; ++i) alive = alive && manager.next().starts_with("WATCHDOG=1");

  REQUIRE(alive);
}

TEST_CASE("a private daemon does not speak to its owner's service manager", "[system]") {
  const NotifySocket manager;

  const Ran ran = run_program({bin_folder() + "/millrace", "ping", "--private"}, {{"NOTIFY_SOCKET", manager.path()}});

  CAPTURE(ran.output, ran.errors);
  REQUIRE(ran.status == 0);
  REQUIRE_FALSE(manager.has_more());
}

}  // namespace
}  // namespace millrace
