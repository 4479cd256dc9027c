// Steps that change each pixel by itself and wait to be taken together, part by part of the picture, so that a part
// stays in the nearest cache. Adjacent tables are one. Internal to kernels/augment.
#pragma once

#include <vector>

#include "kernels/augment/kernels.h"
#include "kernels/augment/tables.h"

namespace millrace::kernels::augment {

class Pointwise {
 public:
  bool is_empty() const { return steps_.empty(); }
  void clear() { steps_.clear(); }

  // A table of each channel that comes after all other steps, to be changed until the next step is added.
  std::array<Table, 3>& tables() {
    if (steps_.empty() || steps_.back().kind != Kind::kTables) {
      steps_.push_back({Kind::kTables, 0, {identity_table(), identity_table(), identity_table()}, {}});
    }
    return steps_.back().tables;
  }
  void add(const Table& table) {
    for (Table& of_channel : tables()) chain(of_channel, table);
  }
  void add_saturation(const Kernels& kernels, float factor) {
    steps_.push_back({Kind::kSaturation, 0, {}, {}});
    kernels.prepare(factor, steps_.back().blend);
  }
  void add_hue(Byte shift) { steps_.push_back({Kind::kHue, shift, {}, {}}); }
  void add_grey() { steps_.push_back({Kind::kGrey, 0, {}, {}}); }

  static void chain(Table& first, const Table& second) {
    for (std::uint8_t& value : first) value = second[value];
  }

  // `planes` from their beginning.
  void apply(const Kernels& kernels, const Planes& planes, std::size_t padded) const {
    for (const Step& step : steps_) {
      switch (step.kind) {
        case Kind::kTables:
          for (std::size_t c = 0; c < 3; ++c) kernels.map(step.tables[c].data(), planes.plane[c], padded);
          break;
        case Kind::kSaturation:
          kernels.saturate(step.blend, planes, padded);
          break;
        case Kind::kHue:
          kernels.hue(step.shift, planes, padded);
          break;
        case Kind::kGrey:
          kernels.grey(planes, padded);
          break;
      }
    }
  }

 private:
  enum class Kind : std::uint8_t { kTables, kSaturation, kHue, kGrey };
  struct Step {
    Kind kind;
    Byte shift;
    std::array<Table, 3> tables;
    Blend blend;
  };

  std::vector<Step> steps_;
};

}  // namespace millrace::kernels::augment
