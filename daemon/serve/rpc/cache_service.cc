#include "daemon/serve/rpc/cache_service.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "daemon/observe/log.h"
#include "daemon/serve/rpc/admin_rights.h"
#include "proto/base/start_thread.h"
#include "proto/rpc/known.h"
#include "proto/rpc/status_map.h"

namespace millrace {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostUnderWay = 2;
constexpr std::chrono::milliseconds kTellOrdersEvery{200};

}  // namespace

grpc::Status CacheService::admit(const std::string& ticket_untrusted, const char* order,
                                 grpc::CallbackServerContext& call) const {
  const AdmittedAdmin admin = admit_admin(around_, ticket_untrusted, "drop or verify what it keeps", call);
  if (!admin.status.ok()) return admin.status;
  if (cache_ == nullptr) return to_status(Error{Code::kPrecondition, "nothing is kept: cache.memory is 0"});
  if (under_way_.size() >= kMostUnderWay)
    return to_status(Error{Code::kExhausted, "the cache is being dropped or verified already: wait until it has been"});
  log_always(admin.who + " has the cache " + order);
  return grpc::Status::OK;
}

Result<void> CacheService::carry_out(std::function<void()> work, std::function<void()> done) {
  const auto place = under_way_.emplace(under_way_.end());
  Result<std::thread> thread =
      start_thread("mr-cache", [this, place, work = std::move(work), done = std::move(done)]() mutable {
        work();
        boost::asio::post(around_.control, [this, place, done = std::move(done)] {
          place->join();
          under_way_.erase(place);
          done();
        });
      });
  if (!thread) {
    under_way_.erase(place);
    return std::move(thread).error();
  }
  *place = *std::move(thread);
  return {};
}

grpc::ServerUnaryReactor* CacheService::Drop(grpc::CallbackServerContext* call,
                                             const v1::DropCacheRequest* request_untrusted, v1::DropCacheReply* reply) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  const CacheTiers tiers{.memory = request_untrusted->memory(), .disk = request_untrusted->disk()};
  if (has_unknown_fields(*request_untrusted)) {
    reactor->Finish(to_status(unknown_field(*request_untrusted)));
    return reactor;
  }
  if (!tiers.memory && !tiers.disk) {
    reactor->Finish(to_status(Error{Code::kInvalid, "say what to drop: memory, disk, or both"}));
    return reactor;
  }
  boost::asio::post(around_.control, [this, call, reactor, reply, tiers, ticket = request_untrusted->ticket()] {
    if (const grpc::Status refused = admit(ticket, "dropped", *call); !refused.ok()) return reactor->Finish(refused);
    const auto dropped = std::make_shared<Result<CacheDropped>>(CacheDropped{});  // shared by both threads, in turn
    const Result<void> begun = carry_out([this, tiers, dropped] { *dropped = cache_->drop(tiers); },
                                         [reactor, reply, dropped] {
                                           if (!*dropped) return reactor->Finish(to_status(dropped->error()));
                                           reply->set_memory_entries((*dropped)->memory.entries);
                                           reply->set_memory_bytes((*dropped)->memory.bytes);
                                           reply->set_disk_entries((*dropped)->disk.entries);
                                           reply->set_disk_bytes((*dropped)->disk.bytes);
                                           reply->set_disk_entries_left((*dropped)->left_on_disk);
                                           reactor->Finish(grpc::Status::OK);
                                         });
    if (!begun) reactor->Finish(to_status(begun.error()));
  });
  return reactor;
}

// One call of Verify. At most one message is being written; the latest figures are what the next one has. Owned by gRPC
// until OnDone, then by the posting that deletes it: the thread that reads has ended before, because Finish() comes
// after it.
class CacheService::Verification final : public grpc::ServerWriteReactor<v1::VerifyCacheProgress> {
 public:
  Verification(CacheService& service, grpc::CallbackServerContext& call, const v1::VerifyCacheRequest& untrusted)
      : service_(service), control_(service.around_.control) {
    if (has_unknown_fields(untrusted)) {
      Finish(to_status(unknown_field(untrusted)));
      return;
    }
    boost::asio::post(control_, [this, &call, ticket = untrusted.ticket()] { begin(ticket, call); });
  }

  // gRPC's threads:
  void OnCancel() override { unwanted_.store(true, std::memory_order_relaxed); }
  void OnWriteDone(bool ok) override {
    boost::asio::post(control_, [this, ok] { written(ok); });
  }
  void OnDone() override {
    boost::asio::post(control_, [this] { delete this; });
  }

 private:
  void begin(const std::string& ticket_untrusted, grpc::CallbackServerContext& call) {
    if (const grpc::Status refused = service_.admit(ticket_untrusted, "verified", call); !refused.ok())
      return Finish(refused);
    const Result<void> begun =
        service_.carry_out([this] { verified_ = service_.cache_->verify(teller()); }, [this] { ended(); });
    if (!begun) Finish(to_status(begun.error()));
  }

  // What the thread that reads calls with each entry.
  CacheOrders::Progress teller() {
    return [this, due = Clock::time_point()](std::uint64_t done, std::uint64_t all) mutable {
      if (const auto now = Clock::now(); now >= due) {
        due = now + kTellOrdersEvery;
        boost::asio::post(control_, [this, done, all] { tell(done, all); });
      }
      return !unwanted_.load(std::memory_order_relaxed);
    };
  }

  void tell(std::uint64_t done, std::uint64_t all) {
    next_.emplace();
    next_->set_entries(done);
    next_->set_all(all);
    go_on();
  }

  void ended() {
    ended_ = true;
    if (verified_) {
      next_.emplace();
      next_->set_entries(verified_->entries);
      next_->set_all(verified_->entries);
      next_->set_finished(true);
      next_->set_wrong(verified_->wrong);
    }
    go_on();
  }

  void written(bool ok) {
    writing_ = false;
    if (!ok) unwanted_.store(true, std::memory_order_relaxed);
    go_on();
  }

  void go_on() {
    if (writing_) return;
    if (next_ && !unwanted_.load(std::memory_order_relaxed)) {
      message_ = *std::exchange(next_, std::nullopt);
      writing_ = true;
      return StartWrite(&message_);
    }
    if (ended_) Finish(verified_ ? grpc::Status::OK : to_status(verified_.error()));
  }

  CacheService& service_;
  boost::asio::io_context& control_;
  // Writers: gRPC's threads, and control. Reader: the thread that reads the disk. Publishes nothing but itself.
  std::atomic<bool> unwanted_{false};
  Result<CacheVerified> verified_{CacheVerified{}};  // the reading thread's until ended()
  v1::VerifyCacheProgress message_;                  // gRPC's while it is written
  std::optional<v1::VerifyCacheProgress> next_;
  bool writing_ = false, ended_ = false;
};

grpc::ServerWriteReactor<v1::VerifyCacheProgress>* CacheService::Verify(
    grpc::CallbackServerContext* call, const v1::VerifyCacheRequest* request_untrusted) {
  return new Verification(*this, *call, *request_untrusted);  // owns itself: see there
}

}  // namespace millrace
