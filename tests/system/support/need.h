// For a test that cannot go on without a result: its value, or an exception that says what went wrong. In a test Catch
// reports it, in a test client main() does.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "proto/base/result.h"

namespace millrace {

inline std::runtime_error unexpected(const Error& error) {
  return std::runtime_error(std::string(code_name(error.code)) + ": " + error.message);
}

template <class T>
T need(Result<T> result) {
  if (!result) throw unexpected(result.error());
  return *std::move(result);
}
inline void need(const Result<void>& result) {
  if (!result) throw unexpected(result.error());
}

}  // namespace millrace
