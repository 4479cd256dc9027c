// What a batch's kernels are told: headers read, tables found, crops cut into tiles, memory divided. On the host, off
// the GPU's way: a Planner works on the next batch while the GPU has the last one.
//
//   Planner planner(recipe);                                    // one a stream
//   const BatchPlan& plan = planner.plan(requests);             // good until the next plan()
//   for (std::string_view reason : plan.refusals) ...           // empty: the kernels try; else the CPU has to
//
// The images' bytes and indexes are hostile. An image that cannot be done here is refused with a reason, and touches no
// other. What only the data tells shows in its Status afterwards.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cuda/batch.h"
#include "kernels/cuda/plan/table_cache.h"
#include "kernels/cuda/plan/view_plan.h"
#include "kernels/cuda/reconstruct/reconstruct_args.h"
#include "kernels/cuda/unpack/unpack_args.h"
#include "kernels/jpeg/seek_index.h"
#include "kernels/packed/packed_image.h"
#include "kernels/tensor/orientation.h"

namespace millrace::kernels::cuda {

// What the tensors of a batch are. They lie one after the other without gaps: those of each request, view by view.
struct BatchRecipe {
  Size size{};  // where the request says none
  StoreSpec store;
  Filter filter = Filter::kBilinear;  // likewise
  PassOrder order = PassOrder::kAsPillow13;
  Fidelity fidelity = Fidelity::kExact;
};

TensorSpec tensor_spec(const BatchRecipe& recipe);

// What an image's bytes are. A packed image's checksum was compared before (packed::Check::kShape).
enum class ImageKind : std::uint8_t { kJpegFile, kPacked };

// The reason of a packed image that is refused because it is damaged, or none that an encoder makes.
inline constexpr std::string_view kBrokenPacked = "a damaged packed image";
// Of an image that has another size than ImageRequest::stored.
inline constexpr std::string_view kAnotherSize = "an image of another size than was announced";

// An image: one tensor, or what `views` says in place of crop, flip, resized and window.
struct ImageRequest {
  jpeg::FileBytes file_untrusted;
  std::uint64_t at = 0;  // where the file begins in the batch's encoded bytes on the GPU
  Box crop;
  Orientation orientation = Orientation::kUpright;
  Flip flip = Flip::kNone;
  Size resized{};
  Box window{};
  jpeg::IndexBytes index_untrusted{};  // of this file; empty: none
  std::uint64_t index_owner = 0;       // see SeekIndex
  ImageKind kind = ImageKind::kJpegFile;
  Size stored{};  // of the picture, as the caller knows it; empty: whatever the bytes say
  std::span<const ViewRequest> views{};
};

// Where a tensor lies in the batch's.
struct TensorPlace {
  std::uint64_t at = 0, bytes = 0;
};

using QuantTable = std::array<std::uint16_t, 64>;

struct BatchPlan {
  TensorSpec spec{};                       // of what K2 makes: the tensors, or the pictures that `pictures` is about
  std::vector<std::string_view> refusals;  // a request each; empty: it is planned
  std::vector<std::uint32_t> requests;     // which one each job is of; a request's jobs are its views, in order
  std::vector<std::uint32_t> views;        // which view of the batch's each job is, all requests' counted
  std::vector<TensorPlace> places;         // of each job's tensor
  std::vector<ImageJob> jobs;
  std::vector<Tile> tiles;
  std::vector<Segment> segments;
  std::vector<PackedGroup> groups;
  std::vector<PackedShape> shapes;  // empty where no image is packed
  std::vector<QuantTable> quants;
  std::vector<std::int32_t> weights;
  std::vector<std::uint32_t> store;  // a table of 256 elements for each channel of what K2 makes

  // Where one view of the batch is augmented, all are made as pictures first. No jobs: none is.
  PicturePlan pictures;
  std::uint64_t picture_bytes = 0;          // of all pictures
  TensorSpec tensor_spec{};                 // of the tensors
  std::vector<std::uint32_t> tensor_store;  // likewise

  std::span<const DecodeTable> new_tables;  // see TableCache
  std::span<const TableRun> table_runs;
  std::uint32_t table_slots = 0;

  std::uint32_t scans = 0;               // jobs that are files: those of K1
  std::uint64_t tokens = 0, blocks = 0;  // of the batch, in all
  std::uint64_t tensor_bytes = 0;        // of one of the recipe's size
  std::uint64_t tensors_bytes = 0;       // of all requests
};

struct PlannerSettings {
  std::uint32_t table_slots = 4096;  // 2,368 bytes each on the GPU; up to 65,536
  // Thread blocks that keep the GPU busy: few images are cut into more tiles.
  std::uint32_t wanted_tiles = 1024;
  // One thread block walks a scan, one thread an interval between restarts: longer ones would hold up the batch.
  std::uint32_t most_scan_bytes = 64U << 20;
  std::uint32_t most_interval_bytes = 256U << 10;
};

// False: the kernels make no such tensors, whatever the images. An empty size is possible: requests say theirs.
bool is_possible(const BatchRecipe& recipe);

// Thread-bound(its owner). Costs some microseconds an image; keeps the memory of the largest batch.
class Planner {
 public:
  // REQUIRES: is_possible(recipe).
  explicit Planner(const BatchRecipe& recipe, const PlannerSettings& settings = {});

  const BatchPlan& plan(std::span<const ImageRequest> requests);

 private:
  void clear();
  void choose_form(std::span<const ImageRequest> requests);
  std::uint64_t image_bytes(Size size) const;
  void take_views(const ImageRequest& request);
  std::string_view add(const ImageRequest& request);
  const jpeg::Header* read_packed(const ImageRequest& request);
  std::string_view add_scan(const ImageRequest& request, const jpeg::Header& header, ImageJob& job);
  std::string_view add_quants(const jpeg::Header& header, ImageJob& job);
  std::string_view add_tables(const jpeg::Header& header, ImageJob& job);
  std::string_view add_views(const ImageRequest& request, const ImageJob& image, McuBox& mcus);
  std::string_view add_start_points(const ImageRequest& request, const jpeg::Header& header, const McuBox& mcus,
                                    ImageJob& job);
  std::string_view cut(const McuBox& mcus);
  std::string_view add_pictures();
  void divide_memory(ImageJob& job);
  void add_groups(const ImageRequest& request, const McuBox& mcus, ImageJob& job);
  void add_jobs();
  std::optional<std::uint16_t> quant_of(const QuantTable& table);

  const BatchRecipe recipe_;
  const PlannerSettings settings_;
  bool by_pictures_ = false;
  TableCache tables_;
  std::map<QuantTable, std::uint16_t> quants_;
  jpeg::SeekIndex index_;
  packed::PackedImage packed_;
  int tiles_of_tensor_ = 1;
  std::uint32_t first_view_ = 0;  // of the request that is planned, as the next three
  std::vector<ViewRequest> views_;
  std::vector<TensorPlace> places_;
  std::vector<ImageJob> jobs_;
  BatchPlan plan_;
};

}  // namespace millrace::kernels::cuda
