// Sessions whose memory is being made: nobody runs out of time meanwhile, and who leaves keeps nobody waiting.
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <thread>

#include "proto/shm/segment_layout.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/short_of_room.h"
#include "tests/support/skip.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

Bytes free_room() {
  struct statvfs status {};
  return ::statvfs("/dev/shm", &status) == 0 ? Bytes{status.f_bavail} * status.f_frsize : Bytes{};
}

bool has_room() {
  const bool has = free_room() > 2_GiB;
  if (!has) skip_loudly("large sessions: /dev/shm has less than 2 GiB free");
  return has;
}

// Asks for a session of one slot and hangs up at once.
void ask_and_leave(Front& front, Bytes slot) {
  RawClient client(front.socket());
  v1::OpenSessionRequest request = client.open_request();
  request.set_slot_bytes(slot.count);
  grpc::ClientContext call;
  grpc::CompletionQueue queue;
  const auto reader = client.sessions().AsyncOpen(&call, request, &queue);
  client.hang_up();
  grpc::Status status;
  v1::OpenSessionReply reply;
  reader->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  REQUIRE(queue.Next(&tag, &ok));
  queue.Shutdown();
  REQUIRE_FALSE(queue.Next(&tag, &ok));
}

v1::OpenSessionRequest request_of(const RawClient& client, std::uint32_t slots, Bytes slot) {
  v1::OpenSessionRequest request = client.open_request(slots);
  request.set_slot_bytes(slot.count);
  return request;
}

std::uint64_t object_bytes(const RawClient& client) {
  struct stat status {};
  REQUIRE(::fstat(client.segment(), &status) == 0);
  return static_cast<std::uint64_t>(status.st_size);
}

v1::SessionStatistics statistics_of(RawClient& client) {
  const v1::GetStatisticsReply statistics = client.statistics();
  REQUIRE(statistics.sessions_size() == 1);
  return statistics.sessions(0);
}

}  // namespace

TEST_CASE("memory may take longer to fill than a client may take to ask for it", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = 512_MiB, .session_within = 20ms});

  // On a busy machine the time may run out before the client has asked; then another one does.
  const bool opened = eventually([&] {
    RawClient client(front.socket());
    v1::OpenSessionRequest request = client.open_request();
    request.set_slot_bytes((128_MiB).count);
    return client.open(request).ok();
  });

  CHECK(opened);
}

TEST_CASE("a session's memory is its user's from Open on, refused with the figures, and back when it has ended",
          "[serve]") {
  Front front({.segments = 8_MiB});
  RawClient client(front.socket()), other(front.socket());
  const auto account = front.ledger().account({UserId{::geteuid()}, SessionId{1}});
  const Bytes one = shm::segment_bytes(2, 3_MiB);
  REQUIRE(client.open(request_of(client, 2, 3_MiB)).ok());
  for (const Bound of : {Bound::kSession, Bound::kUser, Bound::kTotal})
    CHECK(account->in_use(Resource::kSegments, of) == one.count);

  const grpc::Status refused = other.open(request_of(other, 2, 3_MiB));

  CHECK(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK_THAT(refused.error_message(),
             Catch::Contains(to_text(one) + " asked for, " + to_text(one) + " of " + to_text(8_MiB) + " in use") &&
                 Catch::Contains("memory.segments"));
  client.hang_up();
  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
  for (const Bound of : {Bound::kSession, Bound::kUser}) CHECK(account->in_use(Resource::kSegments, of) == 0);
  CHECK(other.open(request_of(other, 2, 3_MiB)).ok());
}

TEST_CASE("a client that goes away while its memory is being made leaves nothing", "[serve]") {
  Front front;

  for (int i = 0; i < 20; ++i) ask_and_leave(front, 16_MiB);

  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
  CHECK(eventually([&] { return front.counters().stored(MetricId::sessions) == 0; }));
}

TEST_CASE("nobody waits for memory that those who asked for it do not want any more", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = Bytes{std::uint64_t{1} << 45}});

  for (int i = 0; i < 40; ++i) ask_and_leave(front, 1_GiB);
  RawClient client(front.socket());

  CHECK(client.open(client.open_request()).ok());
  CHECK(eventually([&] { return front.memory_in_use() < 1_GiB; }));
}

TEST_CASE("a daemon that stops says so to a client that waits for memory, and makes no more of it", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = Bytes{std::uint64_t{1} << 40}});
  RawClient client(front.socket());
  v1::OpenSessionRequest request = client.open_request();
  request.set_slot_bytes((1_GiB).count);

  std::jthread stopper([&] {
    static_cast<void>(eventually([&] { return front.memory_in_use() > 0_B; }));
    front.refuse_opening();
  });
  const grpc::Status status = client.open(request);

  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK_THAT(status.error_message(), Catch::Contains("millraced is stopping"));
  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
}

TEST_CASE("a session of a client that can do with slots later opens before they are filled, charged whole", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = 2_GiB});
  RawClient client(front.socket());
  const v1::OpenSessionRequest request = request_of(client, 4, 256_MiB);

  REQUIRE(client.open_with_slots_later(request).ok());

  CHECK(object_bytes(client) < (1_GiB).count);
  CHECK(front.memory_in_use() > 1_GiB);
  CHECK(statistics_of(client).slots() == 4);
}

TEST_CASE("a session of any other client opens when all of it is filled", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = 2_GiB});
  RawClient client(front.socket());

  REQUIRE(client.open(request_of(client, 3, 32_MiB)).ok());

  CHECK(object_bytes(client) == shm::segment_bytes(3, 32_MiB).count);
  CHECK(statistics_of(client).slots_not_ready() == 0);
  CHECK(statistics_of(client).slots_free() == 3);
}

TEST_CASE("a batch waits for the slot that is being filled", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = 2_GiB});
  RawClient client(front.socket());
  REQUIRE(client.open_with_slots_later(request_of(client, 1, 256_MiB)).ok());
  client.attach();

  client.send(submit_message(1, {"/a", "/b"}));
  const std::optional<v1::ServerMessage> answer = client.read();

  REQUIRE(answer);
  CHECK(answer->completed().batch_id() == 1);
  CHECK(answer->completed().handle().slot() == 0);
  CHECK(object_bytes(client) == shm::segment_bytes(1, 256_MiB).count);
}

TEST_CASE("another user's small session opens while a large one is being filled", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = Bytes{std::uint64_t{1} << 40}});
  RawClient large(front.socket()), small(front.socket());
  REQUIRE(large.open_with_slots_later(request_of(large, 2, 512_MiB)).ok());

  REQUIRE(small.open_with_slots_later(request_of(small, 4, 5_MiB)).ok());

  CHECK(object_bytes(large) < (1_GiB).count);
}

TEST_CASE("without room for the later slots they are withdrawn, and batches go on in the others", "[serve]") {
  Front front({.segments = 2_GiB});
  RawClient client(front.socket());
  {
    const ShortOfRoom full(76_MiB);
    REQUIRE(client.open_with_slots_later(request_of(client, 8, 20_MiB)).ok());
    CHECK(eventually([&] { return statistics_of(client).slots_withdrawn() == 5; }));
  }

  client.attach();  // told even though it came before

  const std::optional<v1::ServerMessage> told = client.read();
  REQUIRE(told);
  CHECK(told->slots_withdrawn().slots() == 3);
  CHECK_THAT(told->slots_withdrawn().message(), Catch::Contains("/dev/shm") && Catch::Contains("--shm-size"));
  CHECK(statistics_of(client).slots() == 3);
  CHECK(statistics_of(client).slots_not_ready() == 0);
  CHECK(front.memory_in_use() == shm::data_offset(8) + 60_MiB);
  for (std::uint64_t batch = 1; batch <= 3; ++batch) client.send(submit_message(batch, {"/a"}));
  for (int i = 0; i < 3; ++i) CHECK(client.read()->has_completed());
  client.hang_up();
  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
}

TEST_CASE("a batch under way while slots are withdrawn is made", "[serve]") {
  Front front({.segments = 2_GiB});
  RawClient client(front.socket());
  front.fetcher().hold();
  const ShortOfRoom full(250_MiB);
  REQUIRE(client.open_with_slots_later(request_of(client, 20, 20_MiB)).ok());
  client.attach();
  client.send(submit_message(1, {"/a"}));

  const std::optional<v1::ServerMessage> told = client.read();
  front.fetcher().let_go();
  const std::optional<v1::ServerMessage> made = client.read();

  REQUIRE(told);
  CHECK(told->slots_withdrawn().slots() == 12);
  REQUIRE(made);
  CHECK(made->completed().batch_id() == 1);
}

TEST_CASE("where no slot at all finds room every batch fails and says why", "[serve]") {
  Front front({.segments = 2_GiB});
  RawClient client(front.socket());
  const ShortOfRoom full(76_MiB);
  REQUIRE(client.open_with_slots_later(request_of(client, 2, 128_MiB)).ok());
  client.attach();

  client.send(submit_message(1, {"/a"}));  // before it is known or after

  bool told = false;
  std::optional<v1::ServerMessage> failed;
  while (!told || !failed) {
    std::optional<v1::ServerMessage> message = client.read();
    REQUIRE(message);
    if (message->has_slots_withdrawn()) {
      told = true;
      CHECK(message->slots_withdrawn().slots() == 0);
    } else {
      failed = std::move(message);
    }
  }
  CHECK(failed->failed().batch_id() == 1);
  CHECK(failed->failed().code() == "RESOURCE_EXHAUSTED");
  CHECK_THAT(failed->failed().message(), Catch::Contains("no slot") && Catch::Contains("/dev/shm"));
  client.send(submit_message(2, {"/a"}));
  const std::optional<v1::ServerMessage> later = client.read();
  REQUIRE(later);
  CHECK(later->failed().code() == "RESOURCE_EXHAUSTED");
}

TEST_CASE("a client that goes away while its later slots are being filled leaves nothing", "[serve]") {
  if (!has_room()) return;
  Front front({.segments = Bytes{std::uint64_t{1} << 45}});
  RawClient client(front.socket());
  const Bytes most{free_room().count / 5};  // filling all would take longer than anybody waits here
  REQUIRE(client.open_with_slots_later(request_of(client, 4, most)).ok());
  const UniqueFd kept(::dup(client.segment()));

  client.hang_up();

  CHECK(eventually([&] { return front.memory_in_use() == 0_B; }));
  CHECK(eventually([&] {
    struct stat status {};
    return ::fstat(kept.get(), &status) == 0 && status.st_size == 0;
  }));
  CHECK(eventually([&] { return front.counters().stored(MetricId::segment_bytes) == 0; }));
}
