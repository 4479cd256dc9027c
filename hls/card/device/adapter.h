// From a compute unit's registers to a call of its kernel, generated from the kernel table: the function's type, where
// each argument stands, and which pointer is checked with which size.
//
//   registers ──address──▶ in one buffer, with all its bytes? ──yes──▶ pointer into the card's memory ──▶ kernel(...)
//                                          └──no──▶ the kernel is not called
//
// Values; thread-safe: plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "hls/base/burst.h"
#include "hls/card/table_view.h"
#include "hls/card/wire.h"

namespace millrace::card {

template <std::size_t I>
using Parameter = std::conditional_t<
    hls::kArguments[I].access == hls::Access::kScalar, std::uint32_t,
    std::conditional_t<hls::kArguments[I].access == hls::Access::kRead, const hls::Burst*, hls::Burst*>>;

template <class Indices>
struct Shape;
template <std::size_t... I>
struct Shape<std::index_sequence<I...>> {
  using Arguments = std::tuple<Parameter<I>...>;
  using Function = void (*)(Parameter<I>...);
};
using AllArguments = std::make_index_sequence<hls::kArgumentCount>;
using KernelFunction = Shape<AllArguments>::Function;

// A call as it arrived, and where address 0 of the card is.
struct Call {
  const Start* start;
  std::byte* memory;
};

// Whether `bytes` bytes at `address` are all in `window`, and begin where a burst may.
constexpr bool is_inside(const Window& window, std::uint64_t address, std::uint64_t bytes) {
  return window.bytes != 0 && address % sizeof(hls::Burst) == 0 && address >= window.address &&
         address - window.address <= window.bytes && bytes <= window.bytes - (address - window.address);
}

// False: the pointer's bytes are not in its buffer.
template <std::size_t I>
bool read_parameter(const Call& call, Parameter<I>& to) {
  const std::uint64_t value = read_argument(call.start->registers, I);
  if constexpr (is_pointer(I)) {
    const std::uint64_t bytes = read_argument(call.start->registers, bytes_argument(I));
    if (!is_inside(call.start->windows[pointer_number(I)], value, bytes)) return false;
    to = reinterpret_cast<Parameter<I>>(call.memory + value);
  } else {
    to = static_cast<Parameter<I>>(value);
  }
  return true;
}

template <std::size_t... I>
bool read_parameters(const Call& call, Shape<AllArguments>::Arguments& to, std::index_sequence<I...>) {
  return call.start->words >= words_needed() && (read_parameter<I>(call, std::get<I>(to)) && ...);
}

// False: the kernel was not called.
inline bool call_kernel(KernelFunction kernel, const Call& call) {
  Shape<AllArguments>::Arguments arguments;
  if (!read_parameters(call, arguments, AllArguments())) return false;
  std::apply(kernel, arguments);
  return true;
}

}  // namespace millrace::card
