// How a batch's memory on the GPU is divided.
#include <catch2/catch.hpp>
#include <cstring>

#include "kernels/cuda/plan/workspace_layout.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/kernels/jpeg/jpeg_rig.h"

namespace millrace::kernels::cuda {
namespace {

template <class Range>
bool lies_at(std::size_t offset, const Range& range, const std::vector<std::byte>& memory) {
  const std::size_t bytes = range.size() * sizeof *range.data();
  return offset + bytes <= memory.size() && std::memcmp(memory.data() + offset, range.data(), bytes) == 0;
}

TEST_CASE("the parts of a batch's memory follow each other, aligned, without overlapping", "[cuda][plan]") {
  const File files[] = {make_jpeg({.pixels = make_pixels(90, 70, 3, 1), .restart_interval = 4}),
                        make_jpeg({.pixels = make_pixels(40, 30, 1, 2), .optimise = true})};
  const std::vector<ImageRequest> requests{
      {.file_untrusted = file_bytes(files[0]), .crop = {1, 2, 80, 60}},
      {.file_untrusted = file_bytes(files[1]), .at = 5000, .crop = {0, 0, 40, 30}}};
  Planner planner({.size = {24, 20}, .filter = kernels::Filter::kLanczos});
  BatchPlan plan = planner.plan(requests);
  REQUIRE(plan.jobs.size() == 2);
  plan.groups.resize(33);  // as of a packed image
  for (PackedGroup& group : plan.groups) group.first_token = static_cast<std::uint32_t>(&group - plan.groups.data());
  plan.shapes.resize(kPackedShapes, {7});

  const WorkspaceLayout layout = layout_of(plan, 1000);
  std::vector<std::byte> upload(layout.upload_bytes);
  write_upload(plan, layout, upload);

  const std::size_t parts[][2] = {{layout.jobs, plan.jobs.size() * sizeof(ImageJob)},
                                  {layout.tiles, plan.tiles.size() * sizeof(Tile)},
                                  {layout.segments, plan.segments.size() * sizeof(Segment)},
                                  {layout.groups, plan.groups.size() * sizeof(PackedGroup)},
                                  {layout.shapes, plan.shapes.size() * sizeof(PackedShape)},
                                  {layout.quants, plan.quants.size() * sizeof(QuantTable)},
                                  {layout.weights, plan.weights.size() * 4},
                                  {layout.store, plan.store.size() * 4},
                                  {layout.new_tables, plan.new_tables.size() * sizeof(DecodeTable)},
                                  {layout.statuses, plan.jobs.size() * sizeof(Status)},
                                  {layout.next_image, 4},
                                  {layout.blocks, plan.blocks * sizeof(BlockEntry)},
                                  {layout.tokens, plan.tokens * sizeof(Token)},
                                  {layout.scratch, 1000},
                                  {layout.bytes, 0}};
  std::size_t end = 0;
  for (const auto& [at, bytes] : parts) {
    REQUIRE(at >= end);
    REQUIRE(at % 256 == 0);
    end = at + bytes;
  }
  REQUIRE(layout.upload_bytes <= layout.statuses);
  REQUIRE((layout.zeroed_end > layout.next_image && layout.zeroed_end <= layout.blocks));
  REQUIRE(lies_at(layout.jobs, plan.jobs, upload));
  REQUIRE(lies_at(layout.tiles, plan.tiles, upload));
  REQUIRE(lies_at(layout.segments, plan.segments, upload));
  REQUIRE(lies_at(layout.groups, plan.groups, upload));
  REQUIRE(lies_at(layout.shapes, plan.shapes, upload));
  REQUIRE(lies_at(layout.quants, plan.quants, upload));
  REQUIRE(lies_at(layout.weights, plan.weights, upload));
  REQUIRE(lies_at(layout.store, plan.store, upload));
  REQUIRE(lies_at(layout.new_tables, plan.new_tables, upload));
}

TEST_CASE("tensors without a size, or that are no whole groups of patches, are not for the kernels", "[cuda][plan]") {
  const auto has_patches = [](const kernels::Patches& patches) {
    return is_possible({.size = {56, 84}, .store = {.patches = patches}});
  };

  REQUIRE(is_possible({.size = {224, 224}}));
  REQUIRE(is_possible({.size = {1, 65535}}));
  REQUIRE_FALSE(is_possible({.size = {0, 224}}));
  REQUIRE_FALSE(is_possible({.size = {224, -1}}));
  REQUIRE_FALSE(is_possible({.size = {65536, 224}}));
  REQUIRE(has_patches({14, 14, 2, 2}));
  REQUIRE(has_patches({28, 14, 1, 1}));
  REQUIRE_FALSE(has_patches({14, 14, 3, 1}));
  REQUIRE_FALSE(has_patches({28, 28, 2, 1}));
  REQUIRE_FALSE(has_patches({28, 56, 1, 1}));
  REQUIRE_FALSE(has_patches({0, 14, 1, 1}));
  REQUIRE_FALSE(has_patches({14, -14, 1, 1}));
  REQUIRE_FALSE(has_patches({14, 14, 0, 1}));
  REQUIRE_FALSE(has_patches({14, 14, 1, 0}));
  REQUIRE_FALSE(has_patches({14, 14, 65536, 1}));
}

}  // namespace
}  // namespace millrace::kernels::cuda
