// What a batch's cards are told: headers read, tables found, crops turned into weights. On the host, off the card's way:
// a Planner works on the next batch while the card has the last one.
//
//   Planner planner(recipe);                                  // one a stream of batches
//   planner.begin(commands, most_images);
//   if (const auto reason = planner.add(request); !reason.empty()) ...   // the CPU makes that image
//   planner.finish();                                         // then the first command_bytes() are the batch's commands
//
// The images' bytes are hostile. An image that cannot be made by a card is refused with a reason, and touches no other.
// What only the data tells comes back in its completion (completions.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "hls/host/axis_tables.h"
#include "hls/host/command_writer.h"
#include "hls/wire/words.h"
#include "kernels/jpeg/header.h"
#include "kernels/packed/packed_image.h"
#include "kernels/tensor/orientation.h"
#include "kernels/tensor/resample_spec.h"
#include "kernels/tensor/store_spec.h"

namespace millrace::hls {

// What the tensors of a planner's batches have in common.
struct BatchRecipe {
  kernels::StoreSpec store;
  kernels::Filter filter = kernels::Filter::kBilinear;
  kernels::PassOrder order = kernels::PassOrder::kAsPillow13;
};

// One tensor, of the window's size. The crop is resampled to `resized`, of which the tensor is `window`.
struct ImageRequest {
  kernels::jpeg::FileBytes file_untrusted;  // a file, a packed image whose checksum was compared, or pixels
  std::uint64_t at = 0;                     // where these bytes begin in `encoded`
  kernels::Box crop;
  kernels::Size resized;
  kernels::Box window;
  kernels::Flip flip = kernels::Flip::kNone;
  kernels::Orientation orientation = kernels::Orientation::kUpright;
  std::uint64_t tensor = 0;  // byte in `tensors`: a multiple of kUnit
  Source kind = Source::kJpegScan;
  // Of the picture, as the caller knows it; of kRows it has to be said. Empty: whatever the bytes say.
  kernels::Size stored{};
};

// The reason of a packed image that is refused because it is damaged, or none that an encoder makes.
inline constexpr std::string_view kBrokenPacked = "a damaged packed image";

// False: no card makes such tensors, whatever the images.
bool is_possible(const BatchRecipe& recipe);

// Thread-bound(its owner). Costs some microseconds an image; keeps the axis tables that it made.
class Planner {
 public:
  // REQUIRES: is_possible(recipe).
  explicit Planner(const BatchRecipe& recipe);

  // REQUIRES: 1 <= most_images <= kMostImages; `commands` has at least least_command_bytes(most_images), and stays until
  // finish().
  void begin(std::span<std::byte> commands, std::uint32_t most_images);
  static constexpr std::size_t least_command_bytes(std::uint32_t most_images) {
    return CommandWriter::before_tables(most_images);
  }

  // Why the image is not made by a card; empty: it is number images() - 1 of the batch, which is its cookie.
  std::string_view add(const ImageRequest& request);
  static constexpr std::string_view kFull = "the batch is full";  // the next one may have room

  // Completes the head. REQUIRES: images() > 0.
  void finish();
  std::uint32_t images() const { return images_; }
  std::size_t command_bytes() const { return commands_.bytes(); }

 private:
  std::string_view plan(const ImageRequest& request, Descriptor& image);
  std::string_view plan_scan(const ImageRequest& request, Descriptor& image);
  std::string_view plan_packed(const ImageRequest& request, Descriptor& image);
  std::string_view plan_rows(const ImageRequest& request, Descriptor& image);
  std::string_view put_source(const ImageRequest& request, std::size_t skipped, Descriptor& image);
  std::string_view put_geometry(const ImageRequest& request, kernels::Size stored, Descriptor& image);
  std::string_view put_axes(const ImageRequest& request, Descriptor& image);
  std::string_view put_tensor(const ImageRequest& request, Descriptor& image);

  const BatchRecipe recipe_;
  Batch batch_{};
  AxisTables axes_;
  kernels::packed::PackedImage packed_;
  CommandWriter commands_;
  std::uint32_t images_ = 0, most_images_ = 0;
};

}  // namespace millrace::hls
