// What a client can make the daemon keep is bounded, refused with words that say what to do, and given back; and another
// user's work goes on beside it.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/host/eventually.h"
#include "tests/support/pictures/image_folder.h"
#include "tests/system/support/raw_mill.h"
#include "tests/system/support/raw_session.h"

namespace millrace {
namespace {

constexpr uid_t kVictim = 54'321;
constexpr int kManySamples = 2'000;  // a batch of them takes more than a megabyte

// Pictures that everybody may read, and a daemon with little room.
struct SmallMill {
  explicit SmallMill(const std::string& memory, const std::string& limits = "", bool several_users = false)
      : paths(write_image_folder(pictures, {.images = 64, .classes = 2})),
        daemon({.roots = {folder.path()}, .memory = memory, .limits = limits, .for_all_users = several_users}) {
    std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
  }

  double in_use() const { return daemon.metric("millrace_requests_bytes"); }
  // The attacker: this process.
  RawSession session() const { return {daemon.socket(), {.slots = 1, .slot_bytes = 1 << 20}}; }

  v1::ClientMessage open_dataset(std::uint64_t id) const {
    v1::ClientMessage message;
    message.mutable_open_dataset()->set_dataset_id(id);
    message.mutable_open_dataset()->set_path(pictures);
    return message;
  }

  TempFolder folder;
  std::string pictures = folder / "pictures";
  std::vector<std::string> paths;
  Daemon daemon;
};

v1::ClientMessage batch_of(std::uint64_t id, int samples, const std::string& path) {
  v1::ClientMessage message;
  v1::Submit& request = *message.mutable_submit();
  request.set_batch_id(id);
  for (int i = 0; i < samples; ++i) request.add_samples()->set_path(path);
  request.mutable_recipe()->mutable_resize()->mutable_exact()->set_width(1);
  request.mutable_recipe()->mutable_resize()->mutable_exact()->set_height(1);
  request.set_on_error(v1::ON_ERROR_SKIP);
  return message;
}

v1::ClientMessage shuffled_epoch(std::uint64_t stream, std::uint64_t seed) {
  v1::ClientMessage message = RawMill::start_epoch(stream, 1);
  message.mutable_start_epoch()->set_shuffle(true);
  message.mutable_start_epoch()->set_seed(seed);
  return message;
}

// Every message until one for which `last` holds.
template <class Last>
std::vector<v1::ServerMessage> receive_until(const RawSession& session, Last last) {
  std::vector<v1::ServerMessage> all;
  do all.push_back(session.receive());
  while (!last(all.back()));
  return all;
}

bool is_opened(const v1::ServerMessage& message) {
  return message.has_dataset_opened();
}
bool is_failed(const v1::ServerMessage& message) {
  return message.has_failed();
}

// The session's only slot has a tensor in it that nobody gives back: what is submitted from here on waits.
void occupy(const RawSession& session, const SmallMill& mill) {
  session.send(batch_of(1'000, 1, mill.paths[0]));
  receive_until(session, [](const auto& message) { return message.has_completed(); });
}

}  // namespace

TEST_CASE("a session starts no more epochs than its limit, and one more once one has been stopped",
          "[bounds][system]") {
  const SmallMill mill("", "epochs = 3\n");
  const RawSession session = mill.session();
  session.send(mill.open_dataset(1));
  receive_until(session, is_opened);

  for (std::uint64_t stream = 1; stream <= 4; ++stream) session.send(shuffled_epoch(stream, stream));
  const v1::Failed refused = receive_until(session, is_failed).back().failed();

  CHECK(refused.stream_id() == 4);
  CHECK_THAT(
      refused.message(),
      Catch::Contains("3 epochs of this session are running or being prepared: wait for one to end, or stop one, "
                      "or raise limits.epochs"));
  v1::ClientMessage stop;
  stop.mutable_stop_epoch()->set_stream_id(2);
  session.send(stop);
  receive_until(session, [](const auto& message) { return message.has_epoch_ended(); });
  session.send(shuffled_epoch(5, 5));
  const v1::ServerMessage fifth =
      receive_until(session, [](const auto& message) {
        return message.epoch_started().stream_id() == 5 || message.failed().stream_id() == 5;
      }).back();
  CHECK(fifth.has_epoch_started());
}

TEST_CASE("batches that wait are charged with all their samples, refused when there is no room, and given back",
          "[bounds][system]") {
  const SmallMill mill("requests = \"4 MiB\"\n");
  {
    const RawSession session = mill.session();
    occupy(session, mill);
    for (std::uint64_t id = 1; id <= 8; ++id) session.send(batch_of(id, kManySamples, mill.folder / "is not there"));

    std::map<std::uint64_t, std::string> refused;
    receive_until(session, [&](const v1::ServerMessage& message) {
      if (message.has_failed()) refused[message.failed().batch_id()] = message.failed().message();
      return message.has_failed() && message.failed().batch_id() == 8;
    });

    CHECK(refused.size() >= 5);
    CHECK_THAT(refused[8], Catch::StartsWith("memory for requests: ") && Catch::Contains(" asked for, ") &&
                               Catch::Contains("of 4.2 MB in use (user " + std::to_string(::getuid()) + ": ") &&
                               Catch::Contains("or raise memory.requests in the daemon's settings"));
  }
  REQUIRE(eventually([&] { return mill.in_use() == 0; }));
}

TEST_CASE("encoded bytes that wait within requests are charged", "[bounds][system]") {
  const SmallMill mill("requests = \"3 MiB\"\n");
  const RawSession session = mill.session();
  occupy(session, mill);
  for (std::uint64_t id = 1; id <= 6; ++id) {
    v1::ClientMessage message = batch_of(id, 1, "");
    message.mutable_submit()->mutable_samples(0)->set_encoded(std::string(1'000'000, 'x'));
    message.mutable_submit()->mutable_samples()->Add()->set_path(mill.paths[0]);
    session.send(message);
  }

  const auto all = receive_until(session, [](const auto& message) {
    return message.has_failed() && message.failed().message().find("memory for requests") != std::string::npos;
  });

  CHECK(all.back().failed().batch_id() >= 3);
  CHECK(mill.in_use() <= 3 << 20);
}

TEST_CASE("a client that leaves its messages unread is cut off when there is no room to keep them",
          "[bounds][system]") {
  const SmallMill mill("requests = \"1 MiB\"\n");
  const RawSession session = mill.session();
  v1::ClientMessage malformed = batch_of(1, 1, "relative/" + std::string(100, 'x'));
  bool writes = true;
  for (int i = 0; writes && i < 200'000; ++i) writes = session.send(malformed);

  const grpc::Status end = session.stream->finish();

  CHECK(end.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(end.error_message(), Catch::Contains("read the reply socket all the while; memory for requests: "));
  REQUIRE(eventually([&] { return mill.in_use() == 0; }));
}

TEST_CASE("a listing for which there is no room is refused, and one that two sessions have is charged once",
          "[bounds][system]") {
  SmallMill mill("requests = \"1 MiB\"\n");
  const std::string crowded = mill.folder / "crowded";
  std::filesystem::create_directory(crowded);
  for (int i = 0; i < 20'000; ++i)
    std::filesystem::create_hard_link(mill.paths[0], crowded + "/" + std::to_string(i) + ".png");
  const RawSession one = mill.session(), two = mill.session();

  v1::ClientMessage too_much = mill.open_dataset(9);
  too_much.mutable_open_dataset()->set_path(crowded);
  one.send(too_much);
  const v1::Failed refused = receive_until(one, is_failed).back().failed();
  one.send(mill.open_dataset(1));
  receive_until(one, is_opened);
  const double once = mill.in_use();
  two.send(mill.open_dataset(1));
  receive_until(two, is_opened);

  CHECK(refused.dataset_id() == 9);
  CHECK_THAT(refused.message(), Catch::Contains("memory for requests: "));
  CHECK(once > 0);
  CHECK(mill.in_use() == once);
}

TEST_CASE("one user cannot take all shared memory, and a refusal says who has it", "[bounds][system][root]") {
  if (!is_root()) return skip_loudly("two users beside each other (needs root, to be several users)");
  const SmallMill mill("segments = \"16 MiB\"\n", "", true);
  std::vector<RawSession> held;
  std::string refused;
  while (refused.empty()) {
    try {
      held.emplace_back(mill.daemon.socket(), RawSessionSpec{.slots = 1, .slot_bytes = 1 << 20});
    } catch (const std::runtime_error& error) {
      refused = error.what();
    }
  }

  const std::string victim = mill.daemon.run_client("epoch", {mill.pictures}, kVictim);

  CHECK(held.size() >= 8);
  CHECK_THAT(refused, Catch::Contains("the daemon's shared memory: ") && Catch::Contains("(user 0: ") &&
                          Catch::Contains("the rest is kept for others"));
  CHECK_THAT(victim, Catch::Contains("complete"));
}

TEST_CASE("another user's epochs run while one user asks for all memory for requests", "[bounds][system][root]") {
  if (!is_root()) return skip_loudly("two users beside each other (needs root, to be several users)");
  const SmallMill mill("requests = \"8 MiB\"\n", "", true);
  const RawSession session = mill.session();
  for (std::uint64_t id = 1; id <= 40; ++id) session.send(batch_of(id, kManySamples, mill.folder / "is not there"));
  session.send(mill.open_dataset(1));
  for (std::uint64_t stream = 100; stream < 140; ++stream) session.send(shuffled_epoch(stream, stream));

  const std::string victim = mill.daemon.run_client("epoch", {mill.pictures}, kVictim);

  CHECK_THAT(victim, Catch::Contains("complete"));
  CHECK(mill.in_use() <= 8 << 20);
}

}  // namespace millrace
