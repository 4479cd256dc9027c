// Looks at the daemon from a thread of its own, so that keys are answered while a daemon is slow or away. Connects again
// when it is back.
//
// Thread-safe. The thread writes what the newest looks are; the owner reads copies.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "client/cli/top/model.h"
#include "proto/base/mutex.h"

namespace millrace::cli {

// Looks once; an error: no daemon answers. Thread-bound(its caller).
class TopLooker {
 public:
  explicit TopLooker(std::string socket) : socket_(std::move(socket)) {}
  Result<TopLook> look();

 private:
  Result<TopLook> look_at(Client& client);
  std::map<std::uint32_t, std::string> users_of(const Statistics& statistics);

  const std::string socket_;
  std::optional<Client> client_;
  std::map<std::uint32_t, std::string> users_;  // whose names are known
};

class TopLooks {
 public:
  static Result<std::unique_ptr<TopLooks>> start(std::string socket, std::chrono::milliseconds every);
  ~TopLooks();  // waits until the look that is under way has ended
  TopLooks(const TopLooks&) = delete;
  TopLooks& operator=(const TopLooks&) = delete;

  struct Newest {
    std::uint64_t number = 0;  // of the look; 0: there was none yet
    TopModel model;
  };
  Newest newest() MILLRACE_EXCLUDES(mutex_);

 private:
  TopLooks(std::string socket, std::chrono::milliseconds every) : looker_(std::move(socket)), every_(every) {}
  void go_on(const std::stop_token& stop) MILLRACE_EXCLUDES(mutex_);

  TopLooker looker_;  // the thread's
  const std::chrono::milliseconds every_;
  Mutex mutex_;
  Newest newest_ MILLRACE_GUARDED_BY(mutex_);
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace millrace::cli
