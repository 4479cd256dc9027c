// Recordings of a real daemon: what they have is what happened, who may have them, and how they end.
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "millrace/v1/statistics.grpc.pb.h"
#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/support/recordings/recorded.h"
#include "tests/system/support/command.h"
#include "tests/system/support/daemon.h"
#include "tests/system/support/need.h"
#include "tests/system/support/raw_session.h"
#include "tests/system/support/users.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

// A recording, read by a client of the test's own.
class RawTrace {
 public:
  RawTrace(const Daemon& daemon, double seconds, std::uint64_t session = 0)
      : stub_(v1::Statistics::NewStub(raw_channel(daemon.socket()))), handoff_(daemon.socket()) {
    handoff_.hello();
    v1::TraceRequest request;
    request.set_seconds(seconds);
    request.set_session_id(session);
    request.set_ticket(handoff_.ticket());
    context_.set_deadline(std::chrono::system_clock::now() + 60s);
    reader_ = stub_->Trace(&context_, request);
  }

  // Waits for the next part; false: there is none any more.
  bool read() {
    v1::TracePart part;
    if (!reader_->Read(&part)) return false;
    bytes_ += part.packets();
    return true;
  }
  grpc::Status finish() {
    while (read()) {
    }
    return reader_->Finish();
  }
  void cancel() { context_.TryCancel(); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::unique_ptr<v1::Statistics::Stub> stub_;
  RawHandoff handoff_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::TracePart>> reader_;
  std::string bytes_;
};

struct TraceMill {
  explicit TraceMill(DaemonSpec spec = {})
      : daemon([&] {
          paths = write_image_folder(folder / "pictures", {.images = 16, .classes = 2});
          spec.roots = {folder.path()};
          return spec;
        }()) {}

  Session open(const std::string& name) const {
    return need(daemon.connect().open_session({.name = name, .slots = 2, .slot_bytes = 1_MiB}));
  }
  BatchRequest batch() const {
    return {.samples = {{.source = Path{paths[0]}}, {.source = Path{paths[1]}}}, .recipe = Recipe::train(32)};
  }
  void work(Session& session) const {
    for (int i = 0; i < 3; ++i) CHECK_FALSE(need(session.wait(need(session.submit(batch())))).failure);
  }
  Ran trace(std::vector<std::string> words) const {
    words.insert(words.begin(), {"millrace", "trace"});
    words.insert(words.end(), {"--socket", daemon.socket()});
    return run(words);
  }

  TempFolder folder;
  std::vector<std::string> paths;
  Daemon daemon;
};

std::string contents_of(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

SessionStatistics figures_of(const Daemon& daemon, std::uint64_t session) {
  for (const SessionStatistics& one : need(daemon.connect().statistics()).sessions)
    if (one.id == session) return one;
  throw std::runtime_error("no such session");
}

bool is_recording(const Daemon& daemon) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(daemon.pid()) + "/task"))
    if (contents_of(task.path().string() + "/comm") == "mr-trace\n") return true;
  return false;
}

TEST_CASE("a recording has a session's batches, times and states as its statistics have them", "[system]") {
  const TraceMill mill;
  RawTrace trace(mill.daemon, 600);
  REQUIRE(trace.read());
  std::optional<Session> session = mill.open("train");
  const std::uint64_t id = session->id();
  const std::string title = "session " + std::to_string(id) + " ";
  {
    const Dataset dataset = need(session->open_dataset(mill.folder / "pictures"));
    Epoch epoch = session->epoch(dataset, {.batch = 2, .recipe = Recipe::train(64), .seed = 1});
    while (const std::optional<Batch> batch = need(epoch.next())) CHECK_FALSE(batch->failure);
  }
  mill.work(*session);
  const SessionStatistics told = figures_of(mill.daemon, id);
  session.reset();
  // The session's end is recorded when its row has ended.
  std::optional<Recorded> read;
  REQUIRE(eventually([&] {
    trace.read();
    read = read_recording(trace.bytes());
    const auto states = read->named("state", title);
    return !states.empty() && std::ranges::all_of(states, [](const RecordedSlice& state) { return state.end > 0; });
  }));
  trace.cancel();

  const std::vector<RecordedSlice> batches = read->named("batches", title);
  CHECK(batches.size() == told.batches);
  std::size_t images = 0;
  for (const RecordedSlice& batch : batches) {
    CHECK(batch.notes.at("end") == "handed over");
    images += std::stoul(batch.notes.at("images"));
  }
  CHECK(images == told.samples);
  std::map<std::string, std::size_t> stages;
  for (const RecordedSlice& stage : read->named("batches", title, 1)) ++stages[stage.name];
  CHECK(stages["making"] >= batches.size());
  CHECK(stages["reading"] >= 1);

  // By what they were when the statistics were asked for.
  const std::vector<RecordedSlice> states = read->named("state", title);
  const auto until = states.front().begin + static_cast<std::int64_t>(told.age.count() * 1e9);
  std::map<std::string, double> seconds;
  for (const RecordedSlice& state : states)
    seconds[state.name] +=
        static_cast<double>(std::max<std::int64_t>(0, std::min(state.end, until) - state.begin)) / 1e9;
  for (const StateTime& state : told.states) {
    CAPTURE(state.state);
    CHECK(seconds[state.state] == Approx(state.time.count()).margin(0.001).epsilon(0.01));
  }

  double lanes = 0;
  std::size_t made = 0;
  for (const RecordedSlice& slice : read->slices) {
    if (slice.depth != 1 || !slice.row.starts_with("mr-lane-")) continue;
    ++made;
    lanes += static_cast<double>(slice.end - slice.begin) / 1e9;
    CHECK(slice.notes.at("backend") == "cpu");
  }
  CHECK(made == told.samples);
  CHECK(lanes == Approx(told.lanes.count()).margin(0.001).epsilon(0.01));
  CHECK(read->counts.at("session " + std::to_string(id) + " \"train\"/slots free").size() > 1);
  CHECK(read->counts.at("millraced/jobs at cpu").size() > 1);
  CHECK(read->counts.at("millraced/events lost") == std::vector<std::int64_t>{0});
}

TEST_CASE("a recording that begins amid work has the batches and states that there are", "[system]") {
  const TraceMill mill;
  Session session = mill.open("train");
  std::vector<Batch> held;
  for (int i = 0; i < 2; ++i) held.push_back(need(session.wait(need(session.submit(mill.batch())))));
  need(session.submit(mill.batch()));                            // it waits for a slot
  REQUIRE_FALSE(session.open_dataset(mill.folder / "nowhere"));  // the daemon has both messages

  RawTrace trace(mill.daemon, 0.1, session.id());
  REQUIRE(trace.finish().ok());

  const Recorded read = read_recording(trace.bytes());
  REQUIRE(read.named("state").size() == 1);
  CHECK(read.named("state")[0].name == "client");
  REQUIRE(read.named("batches", "", 1).size() == 1);
  CHECK(read.named("batches", "", 1)[0].name == "waiting");
  CHECK(read.open == 0);
}

TEST_CASE("millrace trace writes a file, and says what it refuses", "[system]") {
  const TraceMill mill;
  Session session = mill.open("train");
  const std::string file = mill.folder / "a.pftrace", id = std::to_string(session.id());

  const Ran fine = mill.trace({"0.2", "-o", file, "--session", id});
  CAPTURE(fine.errors);
  REQUIRE(fine.status == 0);
  CHECK_THAT(fine.output, Catch::StartsWith(file + ": ") && Catch::Contains("https://ui.perfetto.dev"));
  CHECK(read_recording(contents_of(file)).named("state").size() == 1);

  const std::string before = contents_of(file);
  const Ran unknown = mill.trace({"1", "-o", file, "--session", "99"});
  CHECK(unknown.status == 1);
  CHECK(unknown.errors == "millrace: session_id: there is no session 99\n");
  CHECK(contents_of(file) == before);
  CHECK(mill.trace({"0", "-o", file}).status == 2);
  CHECK(mill.trace({"1"}).status == 2);
  CHECK(mill.trace({"1", "-o", mill.folder / "nowhere/a"}).status == 1);
  CHECK(run({"millrace", "trace", "1", "-o", file, "--socket", mill.folder / "nowhere"}).status == 3);
  CHECK(contents_of(file) == before);
}

TEST_CASE("Ctrl-C ends a recording, and the file has what was recorded", "[system]") {
  const TraceMill mill;
  Session session = mill.open("train");
  const std::string file = mill.folder / "a.pftrace";
  const Process process = Process::spawn(
      {.argv = {bin_folder() + "/millrace", "trace", "600", "-o", file, "--socket", mill.daemon.socket()}});
  REQUIRE(eventually([&] { return std::filesystem::exists(file) && std::filesystem::file_size(file) > 0; }));
  mill.work(session);
  REQUIRE(eventually([&] { return read_recording(contents_of(file)).named("batches").size() == 3; }));

  process.kill(SIGINT);

  REQUIRE(process.wait() == 130);
  CHECK_THAT(process.output(), Catch::StartsWith(file + ": "));
  CHECK(read_recording(contents_of(file)).named("batches").size() == 3);
  CHECK(eventually([&] { return !is_recording(mill.daemon); }));
}

TEST_CASE("a file that may get no longer is an error, and what it has can be read", "[system]") {
  const TraceMill mill;
  Session session = mill.open("train");
  const std::string file = mill.folder / "a.pftrace";
  const Process process =
      Process::spawn({.argv = {"/bin/sh", "-c", "ulimit -f 8; exec \"$0\" trace 600 -o \"$1\" --socket \"$2\"",
                               bin_folder() + "/millrace", file, mill.daemon.socket()}});
  REQUIRE(eventually([&] { return std::filesystem::exists(file) && std::filesystem::file_size(file) > 0; }));

  while (process.running()) mill.work(session);

  REQUIRE(process.wait() == 1);
  CHECK_THAT(process.errors(),
             Catch::Contains("writing " + file + ": File too large; it ends there, and what it has can be read"));
  CHECK_FALSE(read_recording(contents_of(file)).named("state").empty());
  CHECK(eventually([&] { return !is_recording(mill.daemon); }));
}

TEST_CASE("millrace run --trace has its session and the program's own waits by the same clock", "[system]") {
  const TraceMill mill;
  const std::string file = mill.folder / "run.pftrace";

  const Ran ran = run({"millrace", "run", "--dataset", mill.folder / "pictures", "--batch", "2", "--trace", file,
                       "--socket", mill.daemon.socket()});

  CAPTURE(ran.errors);
  REQUIRE(ran.status == 0);
  const Recorded read = read_recording(contents_of(file));
  CHECK(read.open == 0);
  const std::vector<RecordedSlice> batches = read.named("batches"), program = read.named("program", "millrace run");
  REQUIRE(batches.size() == 8);
  CHECK(std::ranges::count(program, std::string("hold"), &RecordedSlice::name) == 8);
  CHECK(std::ranges::count(program, std::string("next"), &RecordedSlice::name) == 9);
  // It has none before one was begun, and waits in vain after all were.
  const auto first_begin = std::ranges::min(batches, {}, &RecordedSlice::begin).begin;
  const auto holds = std::ranges::find(program, std::string("hold"), &RecordedSlice::name);
  CHECK(holds->begin >= first_begin);
  CHECK(program.back().begin >= std::ranges::max(batches, {}, &RecordedSlice::begin).begin);

  const Ran full = run({"millrace", "run", "--dataset", mill.folder / "pictures", "--batch", "2", "--trace",
                        "/dev/full", "--socket", mill.daemon.socket()});
  CHECK(full.status == 1);
  CHECK_THAT(full.errors, Catch::Contains("writing /dev/full: No space left on device"));
}

TEST_CASE("a recording whose reader is killed ends, and the daemon goes on", "[system]") {
  const TraceMill mill;
  Session session = mill.open("train");
  const std::string file = mill.folder / "a.pftrace";
  const Process process = Process::spawn(
      {.argv = {bin_folder() + "/millrace", "trace", "600", "-o", file, "--socket", mill.daemon.socket()}});
  REQUIRE(eventually([&] { return is_recording(mill.daemon); }));

  process.kill(SIGKILL);

  CHECK(eventually([&] { return !is_recording(mill.daemon); }));
  mill.work(session);
}

TEST_CASE("a reader that reads nothing delays nobody, and gets the rest once it reads", "[system]") {
  const TraceMill mill;
  std::optional<Session> session = mill.open("train");
  RawTrace slow(mill.daemon, 600, session->id()), other(mill.daemon, 600);
  REQUIRE(slow.read());
  REQUIRE(other.read());
  mill.work(*session);
  REQUIRE(eventually([&] {
    other.read();
    return read_recording(other.bytes()).named("batches").size() == 3;
  }));
  other.cancel();
  session.reset();  // which ends the recording of it alone

  CHECK(slow.finish().ok());
  CHECK(read_recording(slow.bytes()).named("batches").size() == 3);
}

TEST_CASE("a few recordings run at once, and no more", "[system]") {
  const TraceMill mill;
  RawTrace first(mill.daemon, 600), second(mill.daemon, 600);
  REQUIRE(first.read());
  REQUIRE(second.read());

  RawTrace third(mill.daemon, 600);
  const grpc::Status refused = third.finish();

  CHECK(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(refused.error_message() == "2 recordings of this user run, and no more may: wait until one has ended");
  first.cancel();
  first.finish();
  CHECK(eventually([&] {
    RawTrace again(mill.daemon, 0.05);
    return again.finish().ok();
  }));
}

TEST_CASE("requests that make no sense are refused with the field's name", "[system]") {
  const TraceMill mill;
  for (const double seconds :
       {0.0, -1.0, 600.5, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(seconds);
    const grpc::Status refused = RawTrace(mill.daemon, seconds).finish();
    CHECK(refused.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    CHECK_THAT(refused.error_message(), Catch::StartsWith("seconds: must be more than 0 and at most 600, is "));
  }
  CHECK(RawTrace(mill.daemon, 1, 99).finish().error_code() == grpc::StatusCode::NOT_FOUND);
  const auto stub = v1::Statistics::NewStub(raw_channel(mill.daemon.socket()));
  const std::pair<std::string, grpc::StatusCode> kTickets[] = {
      {"", grpc::StatusCode::INVALID_ARGUMENT}, {std::string(16, 'x'), grpc::StatusCode::UNAUTHENTICATED}};
  for (const auto& [ticket, code] : kTickets) {
    grpc::ClientContext context;
    v1::TraceRequest request;
    request.set_seconds(1);
    request.set_ticket(ticket);
    const auto reader = stub->Trace(&context, request);
    v1::TracePart part;
    CHECK_FALSE(reader->Read(&part));
    CHECK(reader->Finish().error_code() == code);
  }
}

TEST_CASE("who records again and again fills no log", "[system]") {
  const TraceMill mill;
  constexpr int kRecordings = 110;
  for (int i = 0; i < kRecordings; ++i) REQUIRE(RawTrace(mill.daemon, 0.001).finish().ok());

  const std::string log = mill.daemon.errors();
  int lines = 0;
  for (std::size_t at = 0; (at = log.find(" records sessions for ", at)) != std::string::npos; ++at) ++lines;
  CHECK(lines > 0);
  CHECK(lines < kRecordings);
}

TEST_CASE("a daemon that stops ends recordings, and says so", "[system]") {
  const TraceMill mill;
  Session session = mill.open("train");
  RawTrace trace(mill.daemon, 600);
  REQUIRE(trace.read());

  mill.daemon.kill(SIGTERM);
  const grpc::Status ended = trace.finish();

  CHECK(ended.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(ended.error_message(), Catch::Contains("stop"));
  const Recorded read = read_recording(trace.bytes());
  CHECK(read.open == 0);
  CHECK_FALSE(read.named("state").empty());
  CHECK(mill.daemon.wait() == 0);
}

TEST_CASE("users record their own sessions, and administrators everybody's", "[system]") {
  if (skipped_without_root("recordings of several users")) return;
  const TraceMill mill({.user = kService, .for_all_users = true});
  TempFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  const std::string program = copy_for_all_users(bin_folder() + "/millrace", folder.path());
  const Process alice = mill.daemon.client("open", {"1", "1"}, kAlice);
  REQUIRE(alice.wait_for("open"));
  const std::string id = std::to_string(need(mill.daemon.connect().statistics()).sessions[0].id);
  const auto record = [&](uid_t user, std::vector<std::string> more) {
    const std::string file = folder / ("of" + std::to_string(user));
    std::vector<std::string> argv{program, "trace", "0.1", "-o", file, "--socket", mill.daemon.socket()};
    argv.insert(argv.end(), more.begin(), more.end());
    const Process process = Process::spawn({.argv = argv, .user = user});
    const auto status = process.wait();
    return std::pair(Ran{status.value_or(-1), process.output(), process.errors()},
                     status == 0 ? read_recording(contents_of(file)) : Recorded());
  };

  for (const uid_t user : {kAlice, kService, uid_t{0}}) {
    CAPTURE(user);
    CHECK(record(user, {}).second.named("state").size() == 1);
    CHECK(record(user, {"--session", id}).second.named("state").size() == 1);
  }
  const auto [all, bobs] = record(kBob, {});
  CHECK(all.status == 0);
  CHECK(bobs.slices.empty());
  const Ran refused = record(kBob, {"--session", id}).first;
  CHECK(refused.status == 1);
  CHECK_THAT(refused.errors, Catch::StartsWith("millrace: ") && Catch::Contains("may record another user's session"));
}

}  // namespace
}  // namespace millrace
