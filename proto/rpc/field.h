// How errors of a request name a field: as the proto spells it, "samples[3].box.width: must be at least 1, is 0". Inner
// parsers name their own field; their caller puts the way there in front, so that nothing is spelled out unless
// something is wrong. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "proto/base/error.h"
#include "proto/base/result.h"
#include "proto/rpc/known.h"

namespace millrace {

// kInvalid: "field: what".
inline Error field_error(std::string_view field, std::string_view what) {
  return Error{Code::kInvalid, std::string(what)}.within(field);
}

// The error of a field inside `parent`, or inside its element `index`: "parent.field: ...", "parent[3].field: ...".
inline Error inside(std::string_view parent, Error error) {
  return Error{error.code, std::string(parent) + "." + std::move(error.message)};
}
inline Error inside(std::string_view parent, int index, Error error) {
  return inside(std::string(parent) + "[" + std::to_string(index) + "]", std::move(error));
}

// "must be at least 1, is 0".
template <class Number>
Result<void> check_range(std::string_view field, Number value, Number least, Number most) {
  if (value < least)
    return field_error(field, "must be at least " + std::to_string(least) + ", is " + std::to_string(value));
  if (value > most)
    return field_error(field, "must be at most " + std::to_string(most) + ", is " + std::to_string(value));
  return {};
}

}  // namespace millrace

// MILLRACE_TRY with the way to the field put in front of the error.
#define MILLRACE_TRY_IN(parent, declaration, expression) \
  MILLRACE_TRY_IN_(MILLRACE_CONCAT(result_of_try_, __LINE__), parent, declaration, expression)
#define MILLRACE_TRY_IN_(name, parent, declaration, expression)                      \
  auto name = (expression);                                                          \
  if (!name.has_value()) return ::millrace::inside(parent, std::move(name).error()); \
  declaration = *std::move(name)
