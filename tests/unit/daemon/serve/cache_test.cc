// The service Cache: how many orders are under way at a time, what ends one, and that nobody waits for it but who gave it.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "millrace/v1/cache.grpc.pb.h"
#include "tests/support/host/eventually.h"
#include "tests/unit/daemon/serve/fixture.h"

using namespace millrace;
using namespace std::chrono_literals;

namespace {

// A disk that is never through.
class EndlessCache final : public CacheOrders {
 public:
  Result<CacheDropped> drop(CacheTiers tiers) override {
    return CacheDropped{.memory = {.entries = tiers.memory ? 3U : 0U, .bytes = 4}, .disk = {}, .left_on_disk = 5};
  }
  Result<CacheVerified> verify(const Progress& progress) override {
    under_way += 1;
    std::uint64_t done = 0;
    while (progress(++done, 1'000'000)) std::this_thread::sleep_for(1ms);
    under_way -= 1;
    return CacheVerified{.entries = done};
  }

  // Writers: the orders' threads. Reader: the test. Publishes nothing but itself.
  std::atomic<int> under_way{0};
};

// One call of Verify, with a hand-off connection of its own.
struct Verifying {
  explicit Verifying(const Front& front) : client(front.socket()), stub(v1::Cache::NewStub(client.channel())) {
    context.set_deadline(std::chrono::system_clock::now() + 20s);  // so that a failing test ends
    v1::VerifyCacheRequest request;
    request.set_ticket(client.ticket());
    reader = stub->Verify(&context, request);
  }
  bool read() { return reader->Read(&progress); }
  grpc::Status end() {
    while (read()) {
    }
    return reader->Finish();
  }

  RawClient client;
  std::unique_ptr<v1::Cache::Stub> stub;
  grpc::ClientContext context;
  v1::VerifyCacheProgress progress;
  std::unique_ptr<grpc::ClientReader<v1::VerifyCacheProgress>> reader;
};

struct Rig {
  EndlessCache cache;  // outlives the front
  Front front{{.cache = &cache, .cache_owner = ::geteuid()}};
};

}  // namespace

TEST_CASE("verifying tells how far it is, again and again, and ends with its call", "[serve]") {
  Rig rig;
  Verifying verifying(rig.front);
  REQUIRE(verifying.read());
  const std::uint64_t first = verifying.progress.entries();
  REQUIRE(verifying.read());
  REQUIRE(verifying.progress.entries() > first);
  REQUIRE(verifying.progress.all() == 1'000'000);
  REQUIRE_FALSE(verifying.progress.finished());

  verifying.context.TryCancel();

  REQUIRE(verifying.end().error_code() == grpc::StatusCode::CANCELLED);
  REQUIRE(eventually([&] { return rig.cache.under_way == 0; }));
}

TEST_CASE("verifying needs its hand-off connection no more once it goes on, and holds nobody up", "[serve]") {
  Rig rig;
  Verifying verifying(rig.front);
  REQUIRE(verifying.read());
  verifying.client.hang_up();

  RawClient other(rig.front.socket());
  other.open();
  REQUIRE(other.statistics().sessions_size() == 1);
  REQUIRE(verifying.read());
  REQUIRE(verifying.read());
}

TEST_CASE("a third order is refused while two are under way", "[serve]") {
  Rig rig;
  {
    Verifying one(rig.front), two(rig.front);
    REQUIRE(one.read());
    REQUIRE(two.read());
    Verifying three(rig.front);
    const grpc::Status refused = three.end();
    REQUIRE(refused.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
    REQUIRE(refused.error_message() == "the cache is being dropped or verified already: wait until it has been");
    one.context.TryCancel();
    two.context.TryCancel();
  }
  REQUIRE(eventually([&] { return Verifying(rig.front).read(); }));
}

TEST_CASE("a daemon that stops ends the orders that are under way", "[serve]") {
  Rig rig;
  Verifying verifying(rig.front);
  REQUIRE(verifying.read());

  rig.front.shut_down(100ms);

  REQUIRE(rig.cache.under_way == 0);
  REQUIRE_FALSE(verifying.end().ok());
}

TEST_CASE("what was dropped is told", "[serve]") {
  Rig rig;
  RawClient client(rig.front.socket());
  v1::DropCacheRequest request;
  request.set_ticket(client.ticket());
  request.set_memory(true);
  grpc::ClientContext context;
  v1::DropCacheReply reply;

  REQUIRE(v1::Cache::NewStub(client.channel())->Drop(&context, request, &reply).ok());
  REQUIRE(reply.memory_entries() == 3);
  REQUIRE(reply.memory_bytes() == 4);
  REQUIRE(reply.disk_entries() == 0);
  REQUIRE(reply.disk_entries_left() == 5);
}

TEST_CASE("where the daemon's user is not told from others, only root may give orders", "[serve]") {
  EndlessCache cache;
  Front front{{.cache = &cache, .cache_owner = std::nullopt}};
  Verifying verifying(front);
  const bool may = verifying.read();
  REQUIRE(may == (::geteuid() == 0));
}
