// XRT's own calls: they throw, and here that ends. Plain functions; thread-safe as what they call is.
#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

#include "proto/base/result.h"

namespace millrace::fpga {

// What `call` returns. kUnavailable: it threw, while `what`.
template <class Call>
auto xrt_call(const std::string& what, Call call) -> Result<std::invoke_result_t<Call>> {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      call();
      return {};
    } else {
      return call();
    }
  } catch (const std::exception& error) {
    return Error{Code::kUnavailable, what + ": " + error.what()};
  }
}

}  // namespace millrace::fpga
