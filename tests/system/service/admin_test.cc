// Who may give orders to a daemon, what its status tells, and sessions that are closed by force.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <utility>

#include "millrace/v1/admin.grpc.pb.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/skip.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/operator.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

constexpr uid_t kService = 64001, kMember = 64002, kStranger = 64003;

// `millrace admin`, where every user may run it.
struct Program {
  Program() {
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
    path = copy_for_all_users(bin_folder() + "/millrace", folder.path());
  }
  Ran by(uid_t user, const Daemon& daemon, const std::string& what) const {
    const Process process = Process::spawn({.argv = {path, "admin", what, "--socket", daemon.socket()}, .user = user});
    const auto status = process.wait();
    return {status.value_or(-1), process.output(), process.errors()};
  }

  TempFolder folder;
  std::string path;
};

TEST_CASE("those whom access.admins names may give orders, by user or by group, and nobody else", "[system]") {
  if (!is_root()) return skip_loudly("administrators among several users (needs root, to be several users)");
  const Program program;
  const Daemon daemon(
      {.limits = "slots = 8\n\n[access]\nadmins = [\"@64002\"]\n", .user = kService, .for_all_users = true});

  for (const char* const what : {"status", "reload", "drain", "resume"}) {
    const Ran refused = program.by(kStranger, daemon, what);
    CAPTURE(what, refused.errors);
    REQUIRE(refused.status == 1);
    REQUIRE_THAT(
        refused.errors,
        Catch::StartsWith("millrace: the daemon is everybody's: only root, the daemon's own user (uid 64001) and "
                          "those of access.admins in its settings may ") &&
            Catch::EndsWith("; you are uid 64003\n"));
    for (const uid_t user : {kMember, kService, uid_t{0}}) {
      const Ran done = program.by(user, daemon, what);
      CAPTURE(user, done.errors);
      REQUIRE(done.status == 0);
    }
  }
  REQUIRE(logs(daemon, "user 64003, pid "));
  REQUIRE(logs(daemon, "is no administrator, and wanted to "));
  REQUIRE(logs(daemon, "user 64002, pid "));
  REQUIRE(logs(daemon, " has it drained"));

  edit(daemon, "@64002", "64003");
  REQUIRE(program.by(kMember, daemon, "reload").status == 0);
  REQUIRE(program.by(kMember, daemon, "status").status == 1);
  REQUIRE(program.by(kStranger, daemon, "status").status == 0);
}

TEST_CASE("a daemon whose administrators do not exist says so, and does not start", "[system]") {
  const TempFolder folder;
  const std::string file = folder / "millrace.toml";
  write_file(file, "[access]\nadmins = [\"root\", \"@no-such-group\"]\n");

  const Ran check = run({"millraced", "--config", file, "--check-config"});

  REQUIRE(check.status == 2);
  REQUIRE_THAT(check.errors,
               Catch::Contains(file + ":2: access.admins: there is no group \"no-such-group\" on this host"));
}

TEST_CASE("what an administrator does is in the log, whatever its level", "[system]") {
  const Daemon daemon({.log_level = "error"});

  REQUIRE(admin(daemon, {"drain"}).status == 0);
  REQUIRE(admin(daemon, {"resume"}).status == 0);
  REQUIRE(run({"millrace", "cache", "drop", "--socket", daemon.socket()}).status == 0);

  const std::string who = "info user " + std::to_string(::getuid()) + ", pid ";
  for (const std::string& line : {who, std::string(" has it drained: 0 batches are under way"),
                                  std::string(" has it take new work again"), std::string(" has the cache dropped")}) {
    CAPTURE(line);
    REQUIRE(logs(daemon, line));
  }
}

TEST_CASE("its status tells who holds what of each budget, and in how many sessions", "[system]") {
  const Daemon daemon({.limits = "sessions = 5\nsessions_per_user = 3\n"});
  const Session one = need(daemon.connect().open_session({.name = "train", .slots = 3, .slot_bytes = 1_MiB}));
  const Session two = need(daemon.connect().open_session({.name = "eval", .slots = 2, .slot_bytes = 1_MiB}));

  const Ran text = admin(daemon, {"status"});
  const auto json = parsed(admin(daemon, {"status", "--json"}).output);

  CAPTURE(text.output);
  REQUIRE_THAT(text.output,
               Catch::Contains(": serving; 0 batches under way\nsettings: " + daemon.settings() + ", all in force\n"));
  REQUIRE_THAT(text.output, Catch::Contains("user " + std::to_string(::getuid()) + ":\n"));
  REQUIRE_THAT(text.output, Catch::Contains("session 2, pid " + std::to_string(::getpid()) + ", \"eval\": 2.1 MB"));
  const auto& user = json.get_child("users").front().second;
  REQUIRE(user.get<unsigned>("uid") == ::getuid());
  const auto held = [&](const std::string& name) {
    for (const auto& [none, use] : user.get_child("holds"))
      if (use.get<std::string>("name") == name) return std::pair(use.get<int>("in_use"), use.get<int>("bound", 0));
    return std::pair(0, 0);
  };
  REQUIRE(held("sessions") == std::pair(2, 3));
  REQUIRE(held("slots").first == 5);
  REQUIRE(json.get_child("sessions").size() == 2);
}

TEST_CASE("a session that an administrator closes ends with words, and gives all back, and no other does", "[system]") {
  const TempFolder folder;
  const auto files = write_image_folder(folder.path(), {.images = 1});
  const Daemon daemon({.roots = {folder.path()}});
  const SessionOptions options{.slots = 2, .batch = 1, .recipe = Recipe::train(32)};
  Session closed = need(daemon.connect().open_session(options)), other = need(daemon.connect().open_session(options));
  const BatchRequest request{.samples = {{.source = Path{files[0]}}}};
  REQUIRE(need(closed.wait(need(closed.submit(request)))).failure == std::nullopt);

  const Ran close = admin(daemon, {"close", std::to_string(closed.id())});

  CAPTURE(close.output, close.errors);
  REQUIRE(close.status == 0);
  REQUIRE_THAT(close.output, Catch::Contains("session 1 of user " + std::to_string(::getuid()) + ", pid "));
  const auto after = [&] {
    const Result<Ticket> ticket = closed.submit(request);
    if (!ticket) return ticket.error();
    const Result<Batch> batch = closed.wait(*ticket);
    return batch ? batch->failure.value() : batch.error();
  };
  const Error why = after();
  REQUIRE(why.code == Code::kUnavailable);
  CAPTURE(why.message);
  REQUIRE_THAT(why.message, Catch::Contains("an administrator of the daemon has closed this session"));
  REQUIRE(eventually([&] { return daemon.metric("millrace_sessions") == 1; }));
  REQUIRE(eventually([&] { return daemon.segments().size() <= 1; }));
  REQUIRE(need(other.wait(need(other.submit(request)))).failure == std::nullopt);
  const Ran again = admin(daemon, {"close", "1"});
  REQUIRE(again.status == 1);
  REQUIRE(again.errors ==
          "millrace: there is no session 1 (any more): `millrace admin status` shows those that are open\n");
}

TEST_CASE("orders without a ticket, or of a later version, are refused", "[system]") {
  const Daemon daemon({});
  RawHandoff handoff(daemon.socket());
  handoff.hello();
  const auto stub = v1::Admin::NewStub(raw_channel(daemon.socket()));
  const auto drain = [&](const v1::DrainRequest& request) {
    grpc::ClientContext context;
    v1::DrainProgress progress;
    const auto reader = stub->Drain(&context, request);
    while (reader->Read(&progress)) {
    }
    return reader->Finish();
  };
  v1::DrainRequest forged, cut, newer;
  forged.set_ticket(std::string(16, 'x'));
  cut.set_ticket("x");
  newer.set_ticket(handoff.ticket());
  newer.GetReflection()->MutableUnknownFields(&newer)->AddVarint(500, 1);

  REQUIRE(drain(forged).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  REQUIRE_THAT(drain(cut).error_message(), Catch::StartsWith("ticket: must be the 16 bytes"));
  REQUIRE_THAT(drain(newer).error_message(), Catch::StartsWith("500: a field of DrainRequest"));
  REQUIRE(run({"millrace", "ping", "--socket", daemon.socket()}).status == 0);
}

}  // namespace
}  // namespace millrace
