// A thread, or why there is none: a server must not end because the host has no thread left for it.
#pragma once

#include <pthread.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "proto/base/result.h"

namespace millrace {

// `name`: of at most 15 bytes, as the kernel shows it. kUnavailable: the process may have no further thread.
template <class Work>
Result<std::thread> start_thread(const char* name, Work work) {
  try {
    std::thread thread(std::move(work));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& failed) {
    return Error{Code::kUnavailable, std::string("no further thread can be had (") + failed.what() +
                                         "): the process, its user or its control group has as many as it may "
                                         "(TasksMax= in the unit)"};
  }
}

}  // namespace millrace
