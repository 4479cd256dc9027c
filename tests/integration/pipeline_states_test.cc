// In which state a session is while a whole pipeline works for it.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "proto/base/sanitized.h"
#include "tests/integration/holding_backend.h"
#include "tests/integration/pipeline_fixture.h"
#include "tests/integration/pipeline_work.h"
#include "tests/support/host/descriptor_limit.h"
#include "tests/support/host/eventually.h"
#include "tests/support/host/temp_folder.h"
#include "tests/support/skip.h"

namespace millrace {
namespace {

// A pipeline whose one backend, a device, keeps its jobs, and sessions of this process's user.
struct StatesMill {
  struct Opened {
    std::shared_ptr<SessionStates> states = std::make_shared<SessionStates>();
    CollectingSink sink;
  };

  explicit StatesMill(PipelineSetup setup, std::uint32_t jobs = 1) {
    auto holding = std::make_unique<HoldingBackend>(jobs);
    backend = holding.get();
    setup.backend = std::move(holding);
    fixture.emplace(std::move(setup));
  }

  Opened& open(std::uint64_t number) {
    Opened& opened = sessions.emplace_back();
    fixture->open_another(SessionId{number}, UserId{::geteuid()}, opened.sink, opened.states);
    return opened;
  }
  void submit(std::uint64_t session, BatchRequest request) {
    requests.push_back(request);  // which its samples point into
    REQUIRE(fixture->on_control([&] { return fixture->pipeline().submit(SessionId{session}, std::move(request)); }));
  }
  void release(std::uint64_t session, const SealedTensor& tensor) {
    REQUIRE(fixture->on_control(
        [&] { return fixture->pipeline().release(SessionId{session}, raw(tensor.slot), raw(tensor.generation)); }));
  }
  // The backend lets go of what it has until the session's next batch is handed over.
  SealedTensor complete(Opened& opened) {
    REQUIRE(eventually([&] {
      backend->finish_all();
      return !opened.sink.quiet();
    }));
    return *opened.sink.wait_completed().tensor;
  }
  bool comes_to(const Opened& opened, SessionState state) {
    return eventually([&] { return now(opened) == state; });
  }
  SessionState now(const Opened& opened) {
    return fixture->on_control([&] { return opened.states->now_in(); });
  }

  HoldingBackend* backend = nullptr;
  std::deque<Opened> sessions;
  std::deque<BatchRequest> requests;
  std::optional<PipelineFixture> fixture;
};

// Inline headers of pictures that claim 4000 x 4000 pixels.
BatchRequest large_pictures(const std::vector<std::byte>& header, std::uint32_t count) {
  BatchRequest request = batch_of(count, 8);
  for (SampleRequest& sample : request.samples)
    sample.source = InlineSource{{reinterpret_cast<const char*>(header.data()), header.size()}};
  return request;
}

TEST_CASE("a session's state goes from its batch at a device to its client, and another's waits for its turn",
          "[pipeline][integration]") {
  StatesMill mill({.slots = 2});
  auto& first = mill.open(2);
  auto& second = mill.open(3);
  CHECK(mill.now(first) == SessionState::kIdle);

  mill.submit(2, batch_of(2, 8));
  CHECK(mill.comes_to(first, SessionState::kDevice));
  mill.submit(3, batch_of(2, 8));
  CHECK(mill.comes_to(second, SessionState::kLaneTurn));
  const SealedTensor held = mill.complete(first);
  CHECK(mill.now(first) == SessionState::kRequest);
  mill.complete(second);
  CHECK(mill.now(second) == SessionState::kRequest);
  mill.submit(2, batch_of(2, 8));
  const SealedTensor other = mill.complete(first);
  CHECK(mill.now(first) == SessionState::kClient);
  mill.submit(2, batch_of(2, 8));  // for which there is no slot
  CHECK(mill.now(first) == SessionState::kClient);
  mill.release(2, held);
  CHECK(mill.comes_to(first, SessionState::kDevice));
  mill.release(2, mill.complete(first));
  mill.release(2, other);

  CHECK(mill.comes_to(first, SessionState::kIdle));
  const SessionStates::Times times =
      mill.fixture->on_control([&] { return first.states->times(SessionStates::Clock::now()); });
  CHECK(times[static_cast<std::size_t>(SessionState::kReading)].count() > 0);
  CHECK(times[static_cast<std::size_t>(SessionState::kMaking)].count() == 0);
  CHECK(times[static_cast<std::size_t>(SessionState::kSettling)].count() > 0);
}

TEST_CASE("a picture that finds no memory to be decoded in is its session's state", "[pipeline][integration]") {
  StatesMill mill({.decoding = 60_MiB}, 8);
  const std::vector<std::byte> header = make_png_header(4000, 4000);  // 48 MB
  auto& first = mill.open(2);
  auto& second = mill.open(3);
  mill.submit(2, large_pictures(header, 1));
  REQUIRE(mill.comes_to(first, SessionState::kDevice));

  mill.submit(3, large_pictures(header, 1));

  CHECK(mill.comes_to(second, SessionState::kDecodingBudget));
  mill.backend->finish_all();
  CHECK(mill.comes_to(second, SessionState::kDevice));
}

TEST_CASE("a session that may read no more bytes says so", "[pipeline][integration]") {
  StatesMill mill({.encoded_in_flight = 1_KiB}, 8);
  auto& first = mill.open(2);
  auto& second = mill.open(3);
  mill.submit(2, batch_of(16, 64));
  REQUIRE(mill.comes_to(first, SessionState::kDevice));

  mill.submit(3, batch_of(16, 64));

  CHECK(mill.comes_to(second, SessionState::kReadBudget));
  REQUIRE(eventually([&] {
    mill.backend->finish_all();
    return mill.now(second) == SessionState::kRequest;
  }));
}

TEST_CASE("a daemon without descriptors is the host's want, until it has some", "[pipeline][integration]") {
  if (kSanitized) return skip_loudly("a daemon without descriptors: a sanitizer needs some of its own");
  const TempFolder folder;
  write_images(folder.path(), 4);
  StatesMill mill({.roots = {folder.path()}});
  auto& session = mill.open(2);
  {
    const auto limit = DescriptorLimit::none();
    mill.submit(2, request_of(folder.path(), 4, square(16)));
    CHECK(mill.comes_to(session, SessionState::kHost));
  }

  CHECK(mill.comes_to(session, SessionState::kDevice));
}

TEST_CASE("the batch after a failed one begins at once: the session never waits for its client",
          "[pipeline][integration]") {
  StatesMill mill({.slots = 1});
  auto& session = mill.open(2);
  BatchRequest broken = batch_of(1, 8);
  broken.samples[0].source = InlineSource{{"no picture", 10}};
  broken.on_error = OnError::kFail;
  mill.submit(2, std::move(broken));
  BatchRequest behind = batch_of(1, 8);
  behind.id = BatchId{8};
  mill.submit(2, std::move(behind));

  session.sink.wait_failed();

  CHECK(mill.comes_to(session, SessionState::kDevice));
  const SessionStates::Times times =
      mill.fixture->on_control([&] { return session.states->times(SessionStates::Clock::now()); });
  CHECK(times[static_cast<std::size_t>(SessionState::kClient)].count() == 0);
  CHECK(times[static_cast<std::size_t>(SessionState::kFilling)].count() == 0);
}

TEST_CASE("an epoch is shuffled first; one of a client's order waits for its client", "[pipeline][integration]") {
  const TempFolder folder;
  write_images(folder.path(), 4);
  StatesMill mill({.roots = {folder.path()}});
  auto& shuffled = mill.open(2);
  auto& given = mill.open(3);
  const std::shared_ptr<const Dataset> dataset = *mill.fixture->list(folder.path());
  EpochRequest of_client = epoch_of(dataset, 4);
  of_client.order_by = OrderBy::kClient;

  mill.fixture->on_control([&] {
    mill.fixture->pipeline().start_epoch(SessionId{2}, epoch_of(dataset, 4));
    CHECK(shuffled.states->now_in() == SessionState::kShuffling);
    mill.fixture->pipeline().start_epoch(SessionId{3}, of_client);
    CHECK(given.states->now_in() == SessionState::kRequest);
  });

  CHECK(mill.comes_to(shuffled, SessionState::kDevice));
  mill.fixture->on_control([&] {
    mill.fixture->pipeline().lists(SessionId{3}, true);
    CHECK(given.states->now_in() == SessionState::kListing);
    mill.fixture->pipeline().close_session(SessionId{3});
    CHECK(given.states->now_in() == SessionState::kIdle);
  });
}

}  // namespace
}  // namespace millrace
