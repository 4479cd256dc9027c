#include "daemon/serve/rpc/call_meter.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_interceptor.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kRemembered = 256;  // users, before those who have been idle are forgotten

double saved_up(double before, std::chrono::duration<double> since) {
  return std::min<double>(CallMeter::kBurst, before + since.count() * CallMeter::kPerSecond);
}

class Teller final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Teller(std::function<void(int)> begun) : begun_(std::move(begun)) {}

  // None: that it begins is all there is to know.
  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* call) override {
    constexpr std::string_view kScheme = "fd:";
    const std::string peer = call->server_context()->peer();
    int socket = -1;
    if (peer.starts_with(kScheme)) std::from_chars(peer.data() + kScheme.size(), peer.data() + peer.size(), socket);
    if (socket >= 0) begun_(socket);
    return nullptr;
  }

 private:
  const std::function<void(int)> begun_;
};

}  // namespace

bool CallMeter::begun(uid_t user, Clock::time_point now) {
  MutexLock lock(mutex_);
  if (users_.size() >= kRemembered) forget_the_idle(now);
  Saved& saved = users_.try_emplace(user, Saved{kBurst, now}).first->second;
  saved = {saved_up(saved.calls, now - saved.at) - 1, now};
  if (saved.calls >= 0) return true;
  saved.calls = kPerSecond;
  return false;
}

void CallMeter::forget_the_idle(Clock::time_point now) {
  std::erase_if(users_,
                [now](const auto& entry) { return saved_up(entry.second.calls, now - entry.second.at) >= kBurst; });
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> tell_of_calls(
    std::function<void(int socket)> begun) {
  return std::make_unique<Teller>(std::move(begun));
}

}  // namespace millrace
