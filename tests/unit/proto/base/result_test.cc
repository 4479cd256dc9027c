#include "proto/base/result.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
#include <string>

namespace millrace {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return Error{Code::kInvalid, std::to_string(number) + " is odd"};
  return number / 2;
}

Result<int> quarter(int number) {
  MILLRACE_TRY(const int once, half(number));
  MILLRACE_TRY(const int twice, half(once));
  return twice;
}

Result<void> must_be_even(int number, int& visited) {
  MILLRACE_TRY_VOID(Result<void>(half(number) ? Result<void>() : Result<void>(half(number).error())));
  ++visited;
  return {};
}

TEST_CASE("a result holds a value or an error", "[base]") {
  const Result<int> good = half(4);
  const Result<int> bad = half(3);

  REQUIRE(good);
  REQUIRE(*good == 2);
  REQUIRE_FALSE(bad);
  REQUIRE(bad.error().code == Code::kInvalid);
  REQUIRE(bad.error().message == "3 is odd");
}

TEST_CASE("TRY passes the first error on and the value through", "[base]") {
  REQUIRE(*quarter(12) == 3);
  REQUIRE(quarter(7).error().message == "7 is odd");
  REQUIRE(quarter(6).error().message == "3 is odd");

  int visited = 0;
  REQUIRE(must_be_even(2, visited));
  REQUIRE_FALSE(must_be_even(3, visited));
  REQUIRE(visited == 1);
}

TEST_CASE("a result carries what can only be moved", "[base]") {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(5));

  std::unique_ptr<int> taken = *std::move(made);

  REQUIRE(*taken == 5);
}

TEST_CASE("a result of something made from text tells value and error apart", "[base]") {
  const Result<std::string> value = std::string("fine");
  const Result<std::string> literal = "fine";
  const Result<std::string> error = Error{Code::kNotFound, "gone"};

  REQUIRE(*value == "fine");
  REQUIRE(*literal == "fine");
  REQUIRE(error.error().code == Code::kNotFound);
}

TEST_CASE("an error says where it happened in front of what", "[base]") {
  const Error inner{Code::kInvalid, "must be at least 1"};

  const Error outer = inner.within("limits.pixels").within("millrace.toml:12");

  REQUIRE(outer.code == Code::kInvalid);
  REQUIRE(outer.message == "millrace.toml:12: limits.pixels: must be at least 1");
}

TEST_CASE("errno becomes a code that a caller can branch on", "[base]") {
  REQUIRE(errno_error("opening /x", ENOENT).code == Code::kNotFound);
  REQUIRE(errno_error("opening /x", EACCES).code == Code::kDenied);
  REQUIRE(errno_error("opening /x", ENOSPC).code == Code::kExhausted);
  REQUIRE(errno_error("opening /x", EMFILE).code == Code::kExhausted);
  REQUIRE(errno_error("opening /x", ECONNREFUSED).code == Code::kUnavailable);
  REQUIRE(errno_error("opening /x", EIO).code == Code::kInternal);
  REQUIRE(errno_error("opening /x", ENOENT).message == "opening /x: No such file or directory");
}

TEST_CASE("every code has gRPC's name for it", "[base]") {
  REQUIRE(code_name(Code::kInvalid) == "INVALID_ARGUMENT");
  REQUIRE(code_name(Code::kDenied) == "PERMISSION_DENIED");
  REQUIRE(code_name(Code::kExhausted) == "RESOURCE_EXHAUSTED");
  REQUIRE(code_name(Code::kPrecondition) == "FAILED_PRECONDITION");
  REQUIRE(code_name(Code::kInternal) == "INTERNAL");
}

}  // namespace
}  // namespace millrace
