#include "daemon/pipeline/batch/error_policy.h"

#include <algorithm>
#include <numeric>

namespace millrace {
namespace {

using Samples = std::span<const FinishedSample>;

std::uint32_t count_of(Samples samples) {
  return static_cast<std::uint32_t>(samples.size());
}

FinalSlot as_it_is(Samples samples, Bytes tensor) {
  FinalSlot slot{.order = std::vector<std::uint32_t>(samples.size()), .tensor = tensor};
  std::iota(slot.order.begin(), slot.order.end(), 0U);
  slot.places.reserve(samples.size());
  for (const FinishedSample& sample : samples) slot.places.push_back(sample.place);
  return slot;
}

// Moves the good samples down over the bad ones, keeping their order.
FinalSlot skip_bad(const TensorLayout& layout, Samples samples, Bytes tensor) {
  FinalSlot slot = as_it_is(samples, tensor);
  slot.order.clear();
  Bytes end{0};
  for (std::uint32_t i = 0; i < count_of(samples); ++i) {
    if (!samples[i].good) continue;
    const SlotRange was = *samples[i].place;
    const SlotRange place{layout.after(end).count, was.bytes};
    if (place != was) slot.repairs.push_back(Repair{place, was.offset});
    slot.places[i] = place;
    slot.order.push_back(i);
    end = Bytes{place.offset} + place.bytes;
  }
  slot.tensor = end;
  return slot;
}

FinalSlot zero_bad(const TensorLayout& layout, Samples samples, Bytes tensor) {
  FinalSlot slot = as_it_is(samples, tensor);
  for (std::uint32_t i = 0; i < count_of(samples); ++i) {
    if (samples[i].good) continue;
    const SlotRange place = samples[i].place.value_or(layout.blank(i).place);
    if (place.bytes.count > 0) slot.repairs.push_back(Repair{place, std::nullopt});
    slot.places[i] = place;
    slot.zeroed.push_back(i);
  }
  return slot;
}

// The nearest good sample before `index`, else after it. REQUIRES: there is one.
std::uint32_t stand_in(Samples samples, std::uint32_t index) {
  for (std::uint32_t i = index; i-- > 0;) {
    if (samples[i].good) return i;
  }
  std::uint32_t after = index + 1;
  while (!samples[after].good) ++after;
  return after;
}

FinalSlot substitute_bad(const TensorLayout& layout, Samples samples, Bytes tensor) {
  FinalSlot slot = as_it_is(samples, tensor);
  for (std::uint32_t i = 0; i < count_of(samples); ++i) {
    if (samples[i].good) continue;
    const std::uint32_t other = stand_in(samples, i);
    slot.order[i] = other;
    if (!layout.copies_stand_ins()) continue;
    const SlotRange place = samples[i].place.value_or(layout.blank(i).place);
    slot.repairs.push_back(Repair{place, samples[other].place->offset});
    slot.places[i] = place;
  }
  return slot;
}

// The samples' first views are final; the same is done to the others, each of which stays where it begins.
FinalSlot with_all_views(FinalSlot slot, const TensorLayout& layout, std::uint32_t samples, Bytes tensor) {
  if (layout.recipe().views.empty()) return slot;
  for (std::size_t view = 1; view < layout.recipe().views.size(); ++view) {
    const auto place = [&](std::uint32_t index) { return layout.place_of_view(view, index, samples); };
    for (std::uint32_t i = 0; i < slot.order.size(); ++i) {
      if (slot.order[i] != i) slot.repairs.push_back(Repair{place(i), place(slot.order[i]).offset});
    }
    for (const std::uint32_t i : slot.zeroed) slot.repairs.push_back(Repair{place(i), std::nullopt});
  }
  slot.tensor = tensor;
  return slot;
}

std::optional<FinalSlot> apply_to_first_views(const TensorLayout& layout, OnError on_error, Samples samples,
                                              Bytes tensor) {
  const auto good = [](const FinishedSample& sample) { return sample.good; };
  switch (on_error) {
    case OnError::kFail:
      return std::nullopt;
    case OnError::kSkip:
      return skip_bad(layout, samples, tensor);
    case OnError::kZero:
      return zero_bad(layout, samples, tensor);
    case OnError::kSubstitute:
      if (std::none_of(samples.begin(), samples.end(), good)) return std::nullopt;
      return substitute_bad(layout, samples, tensor);
  }
  return std::nullopt;
}

}  // namespace

std::optional<FinalSlot> apply_error_policy(const TensorLayout& layout, OnError on_error, Samples samples,
                                            Bytes tensor) {
  const auto good = [](const FinishedSample& sample) { return sample.good; };
  if (std::all_of(samples.begin(), samples.end(), good)) return as_it_is(samples, tensor);
  std::optional<FinalSlot> slot = apply_to_first_views(layout, on_error, samples, tensor);
  if (!slot) return std::nullopt;
  return with_all_views(*std::move(slot), layout, count_of(samples), tensor);
}

}  // namespace millrace
