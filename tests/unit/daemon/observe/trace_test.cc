// Recordings: what points record, what becomes of it in the file, and what is lost.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <latch>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/observe/session_states.h"
#include "daemon/observe/trace/recorder.h"
#include "tests/support/host/eventually.h"
#include "tests/support/recordings/recorded.h"

namespace millrace::trace {
namespace {

using namespace std::chrono_literals;

constexpr Subject kHers{UserId{1}, SessionId{7}}, kHis{UserId{2}, SessionId{8}};

std::string_view some_format(std::uint8_t kind) {
  return kind == 0 ? "jpeg" : "png";
}

Event stage(std::int64_t at, std::uint64_t batch, std::string_view text, Subject of = kHers) {
  return {
      .what = What::kBatchStage, .index = 4, .of = of, .at = at, .number = batch, .more = batch + 100, .text = text};
}

Event batch_end(std::int64_t at, std::uint64_t batch, bool failed = false) {
  return {.what = What::kBatchEnds, .failed = failed, .of = kHers, .at = at, .number = batch};
}

Event state(std::int64_t at, SessionState in, Subject of = kHers) {
  return {.what = What::kSessionState, .kind = static_cast<std::uint8_t>(in), .of = of, .at = at};
}

Event work(What what, std::int64_t at, Subject of = kHers) {
  return {.what = what, .of = of, .at = at, .number = 2};
}

struct FileOfEvents {
  explicit FileOfEvents(const Scope& scope = {}) : file(scope, some_format, 1'000) {}
  FileOfEvents& add(const Event& event, std::int64_t tid = 1) {
    file.add(tid, tid == 1 ? "mr-control" : "mr-lane-0", event);
    return *this;
  }
  Recorded read() { return read_recording(file.take()); }

  TraceFile file;
};

TEST_CASE("a batch is a slice with its stages in it, and batches side by side have rows of their own", "[unit]") {
  FileOfEvents events;
  events.file.name({kHers, "train", "resnet"});
  events.add(stage(1'000, 1, "waiting")).add(stage(1'100, 1, "reading")).add(stage(1'150, 1, "reading"));
  events.add(stage(1'200, 2, "reading")).add(stage(1'300, 1, "making"));
  events.add(batch_end(1'400, 1)).add(stage(1'500, 3, "reading"));
  events.add(batch_end(1'600, 2, true)).add(batch_end(1'700, 3)).add(batch_end(1'800, 9));

  const Recorded read = events.read();

  const std::vector<RecordedSlice> batches = read.named("batches"), stages = read.named("batches", "", 1);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0].of == "session 7 \"train\", job \"resnet\"");
  CHECK(batches[0].name == "batch 101");
  CHECK(batches[0].begin == 1'000);
  CHECK(batches[0].end == 1'400);
  CHECK(batches[0].notes.at("end") == "handed over");
  CHECK(batches[0].notes.at("images") == "4");
  CHECK(batches[1].notes.at("end") == "failed");
  REQUIRE(stages.size() == 5);
  CHECK(stages[0].name == "waiting");
  CHECK(stages[1].name == "reading");
  CHECK(stages[1].end == 1'300);
  CHECK(read.open == 0);
}

TEST_CASE("a session is in one state after the other, to the recording's end", "[unit]") {
  FileOfEvents events;
  events.add(state(1'000, SessionState::kIdle)).add(state(1'500, SessionState::kIdle));
  events.add(state(2'000, SessionState::kReadTurn));
  events.file.finish(3'000);

  const std::vector<RecordedSlice> states = events.read().named("state");

  REQUIRE(states.size() == 2);
  CHECK(states[0].name == "idle");
  CHECK(states[0].end == 2'000);
  CHECK(states[1].name == "read_turn");
  CHECK(states[1].end == 3'000);
}

TEST_CASE("a lane's job has its images, with format and backend; what has not begun in the recording is not there",
          "[unit]") {
  FileOfEvents events;
  events.add(work(What::kWorkEnds, 1'000), 2);
  events.add({.what = What::kImage, .of = kHers, .at = 1'000, .until = 1'100, .text = "cpu"}, 2);
  events.add(work(What::kJobBegins, 1'200), 2);
  events.add({.what = What::kImage, .of = kHers, .at = 1'200, .until = 1'300, .text = "cpu"}, 2);
  events.add({.what = What::kImage, .kind = 1, .failed = true, .index = 5, .of = kHers, .at = 1'300, .until = 1'400},
             2);
  events.add(work(What::kWorkEnds, 1'400), 2);

  const Recorded read = events.read();

  REQUIRE(read.named("mr-lane-0").size() == 1);
  const std::vector<RecordedSlice> images = read.named("mr-lane-0", "", 1);
  REQUIRE(images.size() == 2);
  CHECK(images[0].name == "jpeg");
  CHECK(images[0].notes.at("backend") == "cpu");
  CHECK(images[1].name == "png, failed");
  CHECK(images[1].notes.at("image") == "5");
}

TEST_CASE("a recording has what its scope says, and nothing from before it", "[unit]") {
  for (const Scope& scope :
       {Scope{.user = UserId{1}, .session = {}}, Scope{.user = UserId{1}, .session = SessionId{7}}}) {
    FileOfEvents events(scope);
    events.file.name({kHis, "secret", ""});
    events.add(state(999, SessionState::kIdle)).add(state(1'000, SessionState::kMaking));
    events.add(state(1'000, SessionState::kIdle, kHis)).add(stage(1'000, 1, "reading", kHis));
    events.add(work(What::kJobBegins, 1'000, kHis), 2);
    events.add({.what = What::kPortions, .at = 1'000, .number = 3});
    const std::string bytes = events.file.take();

    const Recorded read = read_recording(bytes);

    REQUIRE(read.slices.size() == 1);
    CHECK(read.slices[0].name == "making");
    CHECK(bytes.find("secret") == std::string::npos);
    CHECK(read.counts.at("millraced/portions at fetch threads") == std::vector<std::int64_t>{3});
  }
}

TEST_CASE("what is lost ends what is open, is counted, and a gap is told", "[unit]") {
  FileOfEvents events;
  events.add(state(1'000, SessionState::kReading))
      .add(stage(1'100, 1, "reading"))
      .add(work(What::kJobBegins, 1'050), 2);
  events.file.lost(17, 1'900);
  CHECK(events.file.take_was_lost());
  CHECK_FALSE(events.file.take_was_lost());
  events.add(work(What::kWorkEnds, 2'000), 2).add(batch_end(2'000, 1)).add(state(2'000, SessionState::kMaking));
  events.file.finish(2'500);

  const Recorded read = events.read();

  CHECK(read.gaps == 1);
  CHECK(read.open == 0);
  CHECK(read.counts.at("millraced/events lost") == std::vector<std::int64_t>{0, 17});
  REQUIRE(read.named("state").size() == 2);
  CHECK(read.named("state")[0].end == 1'100);  // the last that is known of its session
  CHECK(read.named("mr-lane-0")[0].end == 1'050);
}

TEST_CASE("a session's batches may end after it", "[unit]") {
  FileOfEvents events;
  events.add(state(1'000, SessionState::kMaking)).add(stage(1'100, 1, "making")).add(stage(1'110, 2, "making"));
  events.add({.what = What::kSessionEnds, .of = kHers, .at = 1'200});
  events.add(batch_end(1'300, 1, true)).add(stage(1'350, 2, "failing")).add(batch_end(1'400, 2, true));
  events.file.finish(2'000);

  const Recorded read = events.read();

  CHECK(read.named("state")[0].end == 1'200);
  REQUIRE(read.named("batches").size() == 2);
  CHECK(read.named("batches")[0].end == 1'300);
  CHECK(read.named("batches")[1].end == 1'400);
}

TEST_CASE("a session's end ends a recording of it alone", "[unit]") {
  FileOfEvents events({.user = std::nullopt, .session = SessionId{7}});
  events.add(state(1'000, SessionState::kReading)).add(stage(1'100, 1, "reading"));
  events.add({.what = What::kSessionEnds, .of = kHers, .at = 1'200});

  CHECK(events.file.session_has_ended());
  events.file.finish(1'200);
  const Recorded read = events.read();
  CHECK(read.open == 0);
  CHECK(read.named("batches")[0].end == 1'200);
}

TEST_CASE("what lanes did for a session is in a recording of it alone, also where the end is looked at first",
          "[unit]") {
  FileOfEvents events({.user = std::nullopt, .session = SessionId{7}});
  events.add(state(1'000, SessionState::kMaking)).add({.what = What::kSessionEnds, .of = kHers, .at = 1'200});
  events.add(work(What::kJobBegins, 1'050), 2);
  events.add({.what = What::kImage, .of = kHers, .at = 1'060, .until = 1'090, .text = "cpu"}, 2);
  events.add(work(What::kWorkEnds, 1'100), 2);
  events.file.finish(1'200);

  const Recorded read = events.read();

  CHECK(read.open == 0);
  REQUIRE(read.named("mr-lane-0").size() == 1);
  CHECK(read.named("mr-lane-0")[0].end == 1'100);
  CHECK(read.named("mr-lane-0", "", 1).size() == 1);
}

// A recording by a real thread.
std::string all_of(Recording& recording) {
  std::string all;
  REQUIRE(eventually([&] { return recording.has_ended(); }));
  while (std::optional<std::string> part = recording.take()) all += *part;
  return all;
}

TEST_CASE("threads record into buffers of their own while somebody records, and not otherwise", "[unit]") {
  const Counters counters;
  Recorder recorder(counters, some_format);
  CHECK_FALSE(on());
  record(state(now(), SessionState::kIdle));

  const RecordingPtr recording = *recorder.begin({}, UserId{1}, 60s, [] {});
  CHECK(on());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int job = 0; job < 100; ++job) {
        const Work one(What::kJobBegins, kHers, 1);
        one.add({.what = What::kImage, .at = now(), .until = now(), .text = "cpu"});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  recording->end();
  const Recorded read = read_recording(all_of(*recording));

  CHECK(std::ranges::count(read.slices, std::string("job"), &RecordedSlice::name) == 400);
  CHECK(std::ranges::count(read.slices, std::string("jpeg"), &RecordedSlice::name) == 400);
  CHECK(read.named("state").empty());
  CHECK(read.counts.contains("millraced/millrace_encoded_in_flight_bytes"));
  CHECK(read.open == 0);
  CHECK(eventually([] { return !on(); }));
}

TEST_CASE("a buffer that is full loses what comes then, which the file counts", "[unit]") {
  const Counters counters;
  Recorder recorder(counters, some_format);
  const RecordingPtr recording = *recorder.begin({}, UserId{1}, 60s, [] {});
  // Faster than anybody takes it.
  for (std::size_t i = 0; i < 50 * kThreadEvents; ++i) record({.what = What::kPortions, .at = now(), .number = i});
  recording->end();

  const Recorded read = read_recording(all_of(*recording));

  const std::vector<std::int64_t>& lost = read.counts.at("millraced/events lost");
  CHECK(lost.back() > 0);
  CHECK(read.gaps > 0);
  CHECK(lost.back() + static_cast<std::int64_t>(read.counts.at("millraced/portions at fetch threads").size()) ==
        static_cast<std::int64_t>(50 * kThreadEvents));
}

TEST_CASE("what threads record for which there is no buffer is counted as lost", "[unit]") {
  const Counters counters;
  Recorder recorder(counters, some_format);
  const RecordingPtr recording = *recorder.begin({}, UserId{1}, 60s, [] {});
  constexpr std::size_t kThreads = kMostThreads + 20;
  std::latch all_have_recorded(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      record({.what = What::kPortions, .at = now(), .number = i});
      all_have_recorded.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  recording->end();

  const Recorded read = read_recording(all_of(*recording));

  const auto lost = read.counts.at("millraced/events lost").back();
  CHECK(lost >= 20);
  CHECK(lost + static_cast<std::int64_t>(read.counts.at("millraced/portions at fetch threads").size()) ==
        static_cast<std::int64_t>(kThreads));
}

TEST_CASE("a client that takes nothing has so much kept for it, and the rest is counted as lost", "[unit]") {
  const Counters counters;
  Recorder recorder(counters, some_format);
  const RecordingPtr recording = *recorder.begin({}, UserId{1}, 60s, [] {});
  const std::array<std::string, 2> stages{std::string(2'000, 'a'), std::string(2'000, 'b')};
  for (std::size_t i = 0; i < 2 * Recording::kMostUntaken / stages[0].size(); ++i) {
    record(stage(now(), 1, stages[i % 2]));
    if (i % 50 == 0) std::this_thread::sleep_for(1ms);  // its buffer is not what is full
  }
  recording->end();

  const std::string all = all_of(*recording);

  CHECK(all.size() <= Recording::kMostUntaken + 2 * Recording::kPartBytes);
  CHECK(read_recording(all).counts.at("millraced/events lost").back() > 0);
}

TEST_CASE("a few recordings at once, fewer of one user, and again once one has ended", "[unit]") {
  const Counters counters;
  Recorder recorder(counters, some_format);
  const auto begin = [&](std::uint32_t user) { return recorder.begin({}, UserId{user}, 60s, [] {}); };
  std::vector<RecordingPtr> recordings{*begin(1), *begin(1)};
  const Result<RecordingPtr> third = begin(1);
  REQUIRE(third.error().code == Code::kExhausted);
  recordings.push_back(*begin(2));
  recordings.push_back(*begin(3));
  CHECK(begin(4).error().code == Code::kExhausted);

  recordings[0]->end();

  CHECK(eventually([&] { return begin(4).has_value(); }));
}

TEST_CASE("a recording ends when its time is over, and all do with the recorder", "[unit]") {
  const Counters counters;
  RecordingPtr lasting;
  {
    Recorder recorder(counters, some_format);
    const RecordingPtr brief = *recorder.begin({}, UserId{1}, 1ms, [] {});
    lasting = *recorder.begin({}, UserId{1}, 60s, [] {});
    CHECK(eventually([&] { return brief->has_ended(); }));
    CHECK_FALSE(lasting->has_ended());
  }
  CHECK(lasting->has_ended());
  CHECK_FALSE(on());
}

}  // namespace
}  // namespace millrace::trace
