#include "proto/rpc/surroundings_message.h"

#include <algorithm>

#include "proto/rpc/enum_meaning.h"
#include "proto/rpc/field.h"

namespace millrace {
namespace {

constexpr Meaning<v1::Sampling, PixelSampling> kSamplings[] = {{v1::SAMPLING_UNSPECIFIED, PixelSampling::kNearest},
                                                               {v1::SAMPLING_NEAREST, PixelSampling::kNearest},
                                                               {v1::SAMPLING_BILINEAR, PixelSampling::kBilinear},
                                                               {v1::SAMPLING_BICUBIC, PixelSampling::kBicubic}};

}  // namespace

v1::Sampling to_message(PixelSampling sampling) {
  return message_of(kSamplings, sampling);
}

std::string fill_bytes(const Fill& fill) {
  return {fill.begin(), fill.end()};
}

void fill_surroundings(const Surroundings& around, v1::Surroundings& out) {
  out.set_sampling(to_message(around.sampling));
  out.set_fill(fill_bytes(around.fill));
}

Result<PixelSampling> sampling_from(v1::Sampling sampling) {
  return meaning_of("sampling", kSamplings, sampling);
}

Result<Fill> fill_from(const std::string& bytes) {
  if (bytes.empty()) return Fill{};
  if (bytes.size() != 3)
    return field_error("fill", "must be 3 bytes, red, green and blue, or none: has " + std::to_string(bytes.size()));
  Fill fill;
  std::transform(bytes.begin(), bytes.end(), fill.begin(), [](char c) { return static_cast<std::uint8_t>(c); });
  return fill;
}

Result<Surroundings> surroundings_from(const v1::Surroundings& around) {
  if (has_unknown_fields(around)) return unknown_field(around);
  MILLRACE_TRY(const PixelSampling sampling, sampling_from(around.sampling()));
  MILLRACE_TRY(const Fill fill, fill_from(around.fill()));
  return Surroundings{.sampling = sampling, .fill = fill};
}

}  // namespace millrace
