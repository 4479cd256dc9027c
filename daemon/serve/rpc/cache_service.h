// The service Cache: orders about what is kept of images, from administrators. Each order has a thread of its own while it is carried out, for it frees gigabytes or reads a disk.
//
//   gRPC's thread ──post──▶ control thread: who is asking? ──▶ mr-cache: CacheOrders ──post──▶ control thread: the answer
//
// Thread-bound(control), but for Drop() and Verify(), which gRPC calls.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "daemon/model/cache_orders.h"
#include "daemon/serve/rpc/grpc_stream.h"
#include "millrace/v1/cache.grpc.pb.h"

namespace millrace {

class CacheService final : public v1::Cache::CallbackService {
 public:
  // `around` outlives this. `cache`, too; nullptr: nothing is kept.
  CacheService(StreamSurroundings& around, CacheOrders* cache) : around_(around), cache_(cache) {}

  grpc::ServerUnaryReactor* Drop(grpc::CallbackServerContext* call, const v1::DropCacheRequest* request_untrusted,
                                 v1::DropCacheReply* reply) override;
  grpc::ServerWriteReactor<v1::VerifyCacheProgress>* Verify(grpc::CallbackServerContext* call,
                                                            const v1::VerifyCacheRequest* request_untrusted) override;

 private:
  class Verification;

  // Not OK: the order is refused with that.
  // `order`: for the log.
  grpc::Status admit(const std::string& ticket_untrusted, const char* order, grpc::CallbackServerContext& call) const;
  // `work` on a thread of its own, and when that has ended, `done`.
  // kUnavailable: there is no thread for it, and neither is called.
  [[nodiscard]] Result<void> carry_out(std::function<void()> work, std::function<void()> done);

  StreamSurroundings& around_;
  CacheOrders* const cache_;
  std::list<std::thread> under_way_;
};

}  // namespace millrace
