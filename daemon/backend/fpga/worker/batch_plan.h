// A batch of the daemon's in the words of a card, and back: commands out of orders, verdicts out of completions.
//
//   plan() ──▶ commands for the card ──▶ (its completions) ──▶ judge() ──▶ verdicts in the orders
//
// Thread-bound(the reader's).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "daemon/backend/fpga/fpga_wire.h"
#include "hls/host/completions.h"
#include "hls/host/planner.h"
#include "proto/base/result.h"

namespace millrace::fpga {

inline constexpr std::size_t kCommandBytes = std::size_t{8} << 20;  // of a batch: tables of 256 images, as a rule 3 MiB

struct BatchPlan {
  std::uint32_t images = 0;  // for the card; 0: none
  std::size_t command_bytes = 0;
};

class BatchPlanner {
 public:
  // Orders of images that are not for the card have their verdicts after it. `encoded`: the staging's part; `commands`:
  // of kCommandBytes. kUnsupported: such a batch cannot be.
  Result<BatchPlan> plan(const FpgaBatch& batch_untrusted, const FpgaStaging& layout,
                         std::span<const std::byte> encoded, std::span<FpgaOrder> orders,
                         std::span<std::byte> commands);

  // Images of the last plan.
  std::uint32_t planned() const { return static_cast<std::uint32_t>(of_cookie_.size()); }

  // The verdicts of these. kUnavailable: the card says what it cannot say, and nothing of the batch is to be believed.
  Result<void> judge(std::span<const std::byte> completions, std::uint8_t phase, std::span<FpgaOrder> orders);

 private:
  void use(const hls::BatchRecipe& recipe);

  hls::BatchRecipe recipe_;                // of the planner
  std::unique_ptr<hls::Planner> planner_;  // keeps tables: made anew for another recipe only
  FpgaImage image_ = FpgaImage::kJpeg;
  std::vector<std::size_t> of_cookie_;  // which order each image is
  std::vector<hls::ImageOutcome> outcomes_;
};

}  // namespace millrace::fpga
