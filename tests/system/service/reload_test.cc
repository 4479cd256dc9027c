// A settings file that is read again by a running daemon: `millrace admin reload`, SIGHUP.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <map>
#include <set>

#include "daemon/backend/backend_table.h"
#include "daemon/settings/key_table.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/notify_socket.h"
#include "tests/system/support/operator.h"

namespace millrace {
namespace {

Session open(const Daemon& daemon) {
  return need(daemon.connect().open_session({.slots = 2, .batch = 2, .recipe = Recipe::train(32)}));
}

// What became of one file: "" or why it is bad.
std::string reads(Session& session, const std::string& path) {
  const Batch batch =
      need(session.wait(need(session.submit({.samples = {{.source = Path{path}}}, .on_error = OnError::kZero}))));
  if (batch.failure) return batch.failure->message;
  return batch.errors.empty() ? "" : batch.errors.front().error.message;
}

TEST_CASE("a root that the settings name anew is served to an open session at once, one that they drop no more",
          "[system]") {
  const TempFolder first, second;
  const auto old_files = write_image_folder(first.path(), {.images = 1}),
             new_files = write_image_folder(second.path(), {.images = 1});
  const Daemon daemon({.roots = {first.path()}});
  Session session = open(daemon);
  REQUIRE(reads(session, old_files[0]).empty());
  REQUIRE_THAT(reads(session, new_files[0]), Catch::Contains("not readable") && Catch::Contains(first.path()));

  edit(daemon, first.path(), second.path());
  const Ran reload = admin(daemon, {"reload"});

  CAPTURE(reload.output, reload.errors);
  REQUIRE(reload.status == 0);
  REQUIRE_THAT(reload.output,
               Catch::StartsWith(daemon.settings() + ": 1 setting changed and in force, 0 from the next"));
  REQUIRE_THAT(reload.output,
               Catch::Contains("files.roots  [\"" + first.path() + "\"] -> [\"" + second.path() + "\"]\n"));
  REQUIRE(reads(session, new_files[0]).empty());
  REQUIRE_THAT(reads(session, old_files[0]), Catch::Contains("not readable") && Catch::Contains(second.path()));
  REQUIRE(need(daemon.connect().statistics()).roots == std::vector<std::string>{second.path()});
}

TEST_CASE("an epoch whose root the settings name no more ends as unavailable, and no sample of it is bad", "[system]") {
  const TempFolder first, second;
  write_image_folder(first.path(), {.images = 40});
  const Daemon daemon({.roots = {first.path()}});
  Session session = open(daemon);
  auto epoch = session.epoch(need(session.open_dataset(first.path())), {});
  REQUIRE(need(epoch.next())->errors.empty());

  edit(daemon, first.path(), second.path());
  REQUIRE(admin(daemon, {"reload"}).status == 0);
  std::optional<Error> ended;
  while (!ended) {
    Result<std::optional<Batch>> next = epoch.next();
    if (!next) ended = next.error();
    REQUIRE((ended || next->has_value()));
    if (!ended) CHECK((*next)->errors.empty());
  }

  CHECK(ended->code == Code::kUnavailable);
  CHECK_THAT(ended->message, Catch::Contains("a position goes on where it is"));
}

TEST_CASE("a file with a mistake in it changes nothing, and its lines are told", "[system]") {
  const TempFolder folder;
  const auto files = write_image_folder(folder.path(), {.images = 1});
  const Daemon daemon({.roots = {folder.path()}, .limits = "pixels = 1000000\nside = 5000\n"});

  edit(daemon, folder.path(), "/elsewhere");
  edit(daemon, "pixels = 1000000", "pixels = 0");
  edit(daemon, "side = 5000", "sides = 5000");
  const Ran reload = admin(daemon, {"reload"});
  const auto json = parsed(admin(daemon, {"reload", "--json"}).output);

  CAPTURE(reload.output, reload.errors);
  REQUIRE(reload.status == 1);
  REQUIRE(reload.output.empty());
  REQUIRE_THAT(reload.errors, Catch::StartsWith("millrace: the settings were not taken, and nothing has changed:\n"));
  REQUIRE_THAT(reload.errors, Catch::Contains("limits.pixels: must be at least 1, is 0\n"));
  REQUIRE_THAT(reload.errors, Catch::Matches("(.|\n)*millrace.toml:[0-9]+: limits.sides: no such setting; (.|\n)*"));
  REQUIRE(json.get_child("complaints").size() == 2);
  Session session = open(daemon);
  REQUIRE(reads(session, files[0]).empty());
  const Ran status = admin(daemon, {"status"});
  REQUIRE_THAT(status.output, Catch::Contains("which could not be taken now:\n"));
  REQUIRE(::unlink(daemon.settings().c_str()) == 0);
  REQUIRE_THAT(admin(daemon, {"reload"}).errors, Catch::Contains("No such file or directory"));
  REQUIRE(reads(session, files[0]).empty());
}

// Another value for each live key: a key that becomes live is to be added here.
const std::map<std::string, std::string>& other_values() {
  static const std::map<std::string, std::string> kValues{{"daemon.log_level", "\"info\""},
                                                          {"daemon.drain_seconds", "7"},
                                                          {"daemon.slow_milliseconds", "77"},
                                                          {"memory.segments", "\"33 MiB\""},
                                                          {"memory.encoded_in_flight", "\"9 MiB\""},
                                                          {"memory.decoding", "\"77 MiB\""},
                                                          {"memory.requests", "\"55 MiB\""},
                                                          {"memory.user_percent", "55"},
                                                          {"files.roots", "[\"/\"]"},
                                                          {"access.admins", "[\"daemon\"]"},
                                                          {"fair.weights", "[\"daemon=3\"]"},
                                                          {"limits.encoded", "\"1 MiB\""},
                                                          {"limits.pixels", "123456"},
                                                          {"limits.side", "4321"},
                                                          {"limits.time_milliseconds", "9999"},
                                                          {"limits.samples", "99"},
                                                          {"limits.path_bytes", "999"},
                                                          {"limits.inline_message", "5000"},
                                                          {"limits.sessions", "9"},
                                                          {"limits.sessions_per_user", "8"},
                                                          {"limits.connections", "99"},
                                                          {"limits.connections_per_user", "88"},
                                                          {"limits.slots", "17"},
                                                          {"limits.queued_batches", "18"},
                                                          {"limits.datasets", "3"},
                                                          {"limits.epochs", "4"},
                                                          {"limits.dataset_files", "1000"},
                                                          {"limits.ring", "\"2 MiB\""}};
  return kValues;
}

TEST_CASE("every live key is in force after a reload, and each of the others is named", "[system]") {
  const KeyTable keys(backend_settings());
  std::set<std::string> live, listed;
  for (const Key& key : keys.keys())
    if (key.live()) live.emplace(key.name);
  for (const auto& [name, value] : other_values()) listed.insert(name);
  REQUIRE(live == listed);
  const Daemon daemon({});
  std::string text = "daemon.socket = \"/elsewhere.sock\"\ndaemon.state_dir = \"\"\nlanes.cpu = 1\n";
  for (const auto& [name, value] : other_values()) text += name + " = " + value + '\n';
  write_file(daemon.settings(), text);

  const Ran before = admin(daemon, {"status"});
  const auto reload = parsed(admin(daemon, {"reload", "--json"}).output);
  const auto status = parsed(admin(daemon, {"status", "--json"}).output);

  CAPTURE(before.output, daemon.errors());
  REQUIRE_THAT(before.output, Catch::Contains("not in force until `millrace admin reload`:\n"));
  REQUIRE(reload.get_child("complaints").empty());
  std::set<std::string> changed, at_start;
  for (const auto& [none, change] : reload.get_child("changed")) {
    changed.insert(change.get<std::string>("name"));
    CHECK(change.get<std::string>("in_file") == other_values().at(change.get<std::string>("name")));
  }
  for (const auto& [none, change] : reload.get_child("at_start")) at_start.insert(change.get<std::string>("name"));
  REQUIRE(changed == live);
  REQUIRE(at_start == std::set<std::string>{"daemon.socket", "lanes.cpu"});
  REQUIRE(status.get_child("reloadable").empty());
  REQUIRE(status.get_child("at_start").size() == 2);
  REQUIRE(eventually([&] {
    return daemon.errors().find("setting lanes.cpu stays 2 until the daemon is restarted; the file says 1") !=
           std::string::npos;
  }));
}

TEST_CASE("limits hold for open sessions as soon as they are read again, and so do higher ones", "[system]") {
  const TempFolder folder;
  const auto files = write_image_folder(folder.path(), {.images = 2, .min_side = 100, .max_side = 120});
  const Daemon daemon({.roots = {folder.path()}, .limits = "pixels = 1000000\nsamples = 10\nsessions_per_user = 1\n"});
  Session session = open(daemon);
  const auto second = [&] { return daemon.connect().open_session({.slots = 1, .slot_bytes = 1_MiB}); };
  const auto two = [&] {
    const Batch batch =
        need(session.wait(need(session.submit({.samples = {{.source = Path{files[0]}}, {.source = Path{files[1]}}}}))));
    return batch.failure ? batch.failure->message : "";
  };
  REQUIRE(reads(session, files[0]).empty());
  REQUIRE(second().error().code == Code::kExhausted);

  edit(daemon, "pixels = 1000000\nsamples = 10\nsessions_per_user = 1\n", "pixels = 9000\nsamples = 1\n");
  REQUIRE(admin(daemon, {"reload"}).status == 0);

  REQUIRE_THAT(reads(session, files[0]), Catch::Contains("over the limit of 9000 (limits.pixels)"));
  REQUIRE_THAT(two(), Catch::Contains("must be at most 1 (limits.samples), are 2"));
  REQUIRE(second());

  edit(daemon, "pixels = 9000\nsamples = 1\n", "side = 5000\n");
  REQUIRE(admin(daemon, {"reload"}).status == 0);
  REQUIRE(reads(session, files[0]).empty());
  REQUIRE(two().empty());
}

TEST_CASE("memory that is lowered below what is in use lets nothing new in until it is given back", "[system]") {
  const Daemon daemon({.memory = "segments = \"20 MiB\"\n"});
  const auto eight = [&] { return daemon.connect().open_session({.slots = 1, .slot_bytes = 8_MiB}); };
  std::optional<Session> first = need(eight());

  edit(daemon, "20 MiB", "10 MiB");
  REQUIRE(admin(daemon, {"reload"}).status == 0);

  REQUIRE_THAT(eight().error().message, Catch::Contains(" of 10.5 MB in use") && Catch::Contains("memory.segments"));
  first.reset();
  REQUIRE(eventually([&] { return eight().has_value(); }));
}

TEST_CASE("SIGHUP reads the settings again, and the service manager hears of it", "[system]") {
  const NotifySocket manager;
  const Daemon daemon({.env = {{"NOTIFY_SOCKET", manager.path()}}});
  REQUIRE_THAT(manager.next(), Catch::StartsWith("READY=1"));

  edit(daemon, "log_level = \"debug\"", "log_level = \"info\"");
  daemon.kill(SIGHUP);

  std::string told = manager.next();
  while (told.starts_with("WATCHDOG=1")) told = manager.next();
  REQUIRE_THAT(told, Catch::Matches("RELOADING=1\nMONOTONIC_USEC=[0-9]+"));
  REQUIRE(manager.next() == "READY=1");
  REQUIRE(logs(daemon, "info SIGHUP has " + daemon.settings() + " read again: 1 setting changed"));
  REQUIRE(logs(daemon, "setting daemon.log_level is \"info\" now, was \"debug\""));
}

TEST_CASE("SIGHUP ends a daemon without a settings file, as a terminal's end does", "[system]") {
  const TempFolder folder;
  const std::string socket = folder / "millrace.sock";
  const Process process = Process::spawn({.argv = {bin_folder() + "/millraced", "--socket", socket, "--lanes", "1"},
                                          .env = {{"XDG_STATE_HOME", "/dev/null"}}});
  REQUIRE(process.wait_for("listening on"));
  const Ran reload = run({"millrace", "admin", "reload", "--socket", socket});

  process.kill(SIGHUP);

  REQUIRE(reload.status == 1);
  REQUIRE_THAT(reload.errors, Catch::Contains("started without --config: there is no file to read again"));
  REQUIRE(process.wait() == 0);
}

}  // namespace
}  // namespace millrace
