#include "daemon/serve/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <string>
#include <string_view>

#include "daemon/observe/bounded_log.h"
#include "proto/base/mutex.h"
#include "proto/base/printable.h"

namespace millrace {
namespace {

constexpr std::size_t kLongest = 400;  // characters of a line

// gRPC logs on whichever thread it is.
class Lines {
 public:
  void take(std::string_view text) MILLRACE_EXCLUDES(mutex_) {
    const std::string line = "gRPC says: " + printable(text.substr(0, kLongest));
    MutexLock lock(mutex_);
    lines_.warn(line);
  }

 private:
  Mutex mutex_;
  SeldomLine lines_ MILLRACE_GUARDED_BY(mutex_);
};

void log(gpr_log_func_args* said) {
  static Lines& lines = *new Lines;  // gRPC's threads may outlive every object
  lines.take(said->message);
}

}  // namespace

void take_over_grpc_log() {
  gpr_set_log_function(log);
}

}  // namespace millrace
