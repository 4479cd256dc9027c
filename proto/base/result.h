// Result<T>: a value or an Error, spelled like std::expected<T, Error> (which g++ 12 lacks under C++20) so that it can
// be replaced by it.
//
//   Result<Segment> open_segment(...);
//   MILLRACE_TRY(Segment segment, open_segment(...));   // declares `segment`, or returns the error
//   MILLRACE_TRY_VOID(write_header(segment));           // for Result<void>
#pragma once

#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <variant>

#include "proto/base/error.h"

namespace millrace {

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  template <class U = T>
  requires(std::is_constructible_v<T, U&&> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error>) Result(U&& value)
      : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  // REQUIRES: has_value().
  T& operator*() & { return *std::get_if<0>(&state_); }
  const T& operator*() const& { return *std::get_if<0>(&state_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  T* operator->() { return std::get_if<0>(&state_); }
  const T* operator->() const { return std::get_if<0>(&state_); }

  // REQUIRES: !has_value().
  const Error& error() const& { return *std::get_if<1>(&state_); }
  Error&& error() && { return std::move(*std::get_if<1>(&state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)), failed_(true) {}

  bool has_value() const { return !failed_; }
  explicit operator bool() const { return has_value(); }
  const Error& error() const& { return error_; }
  Error&& error() && { return std::move(error_); }

 private:
  Error error_;
  bool failed_ = false;
};

// Aborts: our own bug, never a client's input.
[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "millrace: internal error: CHECK(%s) failed at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace millrace

#define MILLRACE_CONCAT_(a, b) a##b
#define MILLRACE_CONCAT(a, b) MILLRACE_CONCAT_(a, b)
#define MILLRACE_TRY_(name, declaration, expression)     \
  auto name = (expression);                              \
  if (!name.has_value()) return std::move(name).error(); \
  declaration = *std::move(name)

// MILLRACE_TRY(T value, expression): declares `value` from the Result, or returns its error from the enclosing
// function.
#define MILLRACE_TRY(declaration, ...) MILLRACE_TRY_(MILLRACE_CONCAT(result_, __LINE__), declaration, (__VA_ARGS__))
// MILLRACE_TRY_VOID(expression): the same for Result<void>.
#define MILLRACE_TRY_VOID(...)                                               \
  do {                                                                       \
    auto result_of_try = (__VA_ARGS__);                                      \
    if (!result_of_try.has_value()) return std::move(result_of_try).error(); \
  } while (false)

#define MILLRACE_CHECK(condition)                                               \
  do {                                                                          \
    if (!(condition)) ::millrace::check_failed(#condition, __FILE__, __LINE__); \
  } while (false)
