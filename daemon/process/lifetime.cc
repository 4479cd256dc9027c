#include "daemon/process/lifetime.h"

#include <boost/asio/post.hpp>

#include "daemon/model/stopping.h"
#include "daemon/observe/log.h"
#include "proto/base/printable.h"

namespace millrace {

// A client that does not read keeps its connection for so long once everything is answered.
constexpr std::chrono::milliseconds kFlush{500};

void Lifetime::run(const Parts& parts) {
  parts_.emplace(parts);
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) drain();
  });
  boost::asio::post(control_, [this] {
    supervisor_.ready(status());
    report();
  });
  control_.run();
}

// For whoever looks at the service.
std::string Lifetime::status() const {
  std::string text = "serving " + printable(settings_.socket);
  for (const std::string& root : parts_->fetcher.missing_roots()) text += "; root not there: " + printable(root);
  return text;
}

// The service manager hears from the control thread itself, so it notices when that one hangs.
void Lifetime::report() {
  if (!supervisor_.interval()) return;
  reports_.expires_after(*supervisor_.interval());
  reports_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    supervisor_.alive(draining_ ? "" : status());
    report();
  });
}

// No new work; what is under way is finished, within daemon.drain_seconds. A second signal ends the wait.
void Lifetime::drain() {
  log_info("stopping: finishing what is under way");
  draining_ = true;
  supervisor_.stopping("finishing what is under way");
  parts_->grpc.stop_accepting();
  parts_->sessions.refuse_opening(stopping());
  parts_->pipeline.drain([this] { stop(); });
  patience_.expires_after(settings_.drain);
  patience_.async_wait([this](boost::system::error_code error) {
    if (!error) stop();
  });
  signals_.async_wait([this](boost::system::error_code error, int) {
    if (!error) stop();
  });
}

// Everything is answered; what is left is to flush it.
void Lifetime::stop() {
  if (stopping_) return;
  stopping_ = true;
  patience_.cancel();
  signals_.cancel();
  parts_->grpc.shutdown(std::chrono::system_clock::now() + kFlush, [this] { control_.stop(); });
}

}  // namespace millrace
