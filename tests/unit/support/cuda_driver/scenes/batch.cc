// A planned batch through both kernels, beside the host's executor.
#include <algorithm>
#include <cstdio>

#include "kernels/cuda/plan/host_run.h"
#include "kernels/cuda/plan/workspace_layout.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "tests/support/pictures/test_images.h"
#include "tests/unit/support/cuda_driver/scenes/scenes.h"

namespace millrace::cuda_scenes {
namespace {

using namespace kernels::cuda;
using kernels::Flip;

constexpr BatchRecipe kRecipe{.size = {48, 40}};

struct Pictures {
  std::vector<std::vector<std::byte>> files;
  std::vector<std::uint8_t> encoded;
  std::vector<ImageRequest> requests;
};

Pictures make_pictures() {
  Pictures made;
  for (std::uint32_t i = 0; i < 6; ++i) {
    const std::uint32_t width = 60 + 37 * i, height = 150 - 19 * i;
    made.files.push_back(make_jpeg({.pixels = make_pixels(width, height, i == 3 ? 1 : 3, i),
                                    .h_samp = 1 + static_cast<int>(i % 2),
                                    .v_samp = 1,
                                    .restart_interval = i == 4 ? 5 : 0}));
  }
  for (std::size_t i = 0; i < made.files.size(); ++i) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(made.files[i].data());
    made.requests.push_back({.file_untrusted = {begin, made.files[i].size()},
                             .at = made.encoded.size(),
                             .crop = {3, 2, 50, 40},
                             .flip = i % 2 == 0 ? Flip::kNone : Flip::kHorizontal});
    made.encoded.insert(made.encoded.end(), begin, begin + made.files[i].size());
  }
  return made;
}

// What a launcher needs of the device.
struct Kernels {
  CUfunction tokenise, reconstruct;
  int blocks = 0;

  explicit Kernels(const Gpu& gpu)
      : tokenise(gpu.function("millrace_tokenise")), reconstruct(gpu.function("millrace_reconstruct")) {
    constexpr int kShared = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    need(gpu.cu.cuFuncSetAttribute(tokenise, kShared, sizeof(TokeniseShared)), "cuFuncSetAttribute");
    need(gpu.cu.cuFuncSetAttribute(reconstruct, kShared, kTileBytes), "cuFuncSetAttribute");
    need(gpu.cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, tokenise, kUsualTokeniseThreads,
                                                            sizeof(TokeniseShared)),
         "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  }
};

struct Views {
  CUdeviceptr encoded, tables, tensors, workspace;
};

template <class T>
T* at(CUdeviceptr base, std::size_t offset) {
  return reinterpret_cast<T*>(base + offset);
}

void launch_tokenise(const Gpu& gpu, const Kernels& kernels, const BatchPlan& plan, const WorkspaceLayout& layout,
                     const Views& views, CUstream stream) {
  const CUdeviceptr base = views.workspace;
  static TokeniseArgs args;
  args = {.jobs = at<const ImageJob>(base, layout.jobs),
          .images = static_cast<std::uint32_t>(plan.jobs.size()),
          .bytes = at<const std::uint8_t>(views.encoded, 0),
          .tables = at<const DecodeTable>(views.tables, 0),
          .segments = at<const Segment>(base, layout.segments),
          .tokens = at<Token>(base, layout.tokens),
          .blocks = at<BlockEntry>(base, layout.blocks),
          .statuses = at<Status>(base, layout.statuses),
          .work = nullptr,
          .next_image = at<std::uint32_t>(base, layout.next_image),
          .scratch = at<unsigned char>(base, layout.scratch),
          .shape = {}};
  void* parameters[] = {&args};
  need(gpu.cu.cuLaunchKernel(kernels.tokenise, static_cast<unsigned>(kernels.blocks), 1, 1, kUsualTokeniseThreads, 1, 1,
                             sizeof(TokeniseShared), stream, parameters, nullptr),
       "tokenise");
  args = {};  // was copied by the call
}

void launch_reconstruct(const Gpu& gpu, const Kernels& kernels, const BatchPlan& plan, const WorkspaceLayout& layout,
                        const Views& views, CUstream stream) {
  const CUdeviceptr base = views.workspace;
  ReconstructArgs args{.spec = plan.spec,
                       .tiles = at<const Tile>(base, layout.tiles),
                       .images = at<const ImageJob>(base, layout.jobs),
                       .blocks = at<const BlockEntry>(base, layout.blocks),
                       .tokens = at<const Token>(base, layout.tokens),
                       .quants = at<const std::uint16_t>(base, layout.quants),
                       .weights = at<const std::int32_t>(base, layout.weights),
                       .store = at<const std::uint32_t>(base, layout.store),
                       .tensors = at<std::uint8_t>(views.tensors, 0),
                       .status = at<Status>(base, layout.statuses)};
  void* parameters[] = {&args};
  need(gpu.cu.cuLaunchKernel(kernels.reconstruct, static_cast<unsigned>(plan.tiles.size()), 1, 1, kTileThreads, 1, 1,
                             kTileBytes, stream, parameters, nullptr),
       "reconstruct");
}

void upload(const Gpu& gpu, const BatchPlan& plan, const WorkspaceLayout& layout, const Views& views, const void* from,
            CUstream stream) {
  const Driver& cu = gpu.cu;
  need(cu.cuMemcpyHtoDAsync_v2(views.workspace, from, layout.upload_bytes, stream), "upload");
  need(cu.cuMemsetD8Async(views.workspace + layout.statuses, 0, layout.zeroed_end - layout.statuses, stream), "zero");
  for (const TableRun& run : plan.table_runs)
    need(cu.cuMemcpyDtoDAsync_v2(views.tables + run.slot * sizeof(DecodeTable),
                                 views.workspace + layout.new_tables + run.first * sizeof(DecodeTable),
                                 run.count * sizeof(DecodeTable), stream),
         "tables");
}

// Files by one stream, all else by another. `forget`: nothing makes the second wait for the first.
int batch(Arguments arguments) {
  const bool forgets = !arguments.empty() && arguments[0] == "forget";
  Pictures pictures = make_pictures();
  Planner planner(kRecipe);
  const BatchPlan& plan = planner.plan(pictures.requests);
  const Gpu gpu;
  const Driver& cu = gpu.cu;
  const Kernels kernels(gpu);
  const std::size_t scratch =
      static_cast<std::size_t>(kernels.blocks) * scratch_bytes(TokeniseShape{}, kUsualTokeniseThreads);
  const WorkspaceLayout layout = layout_of(plan, scratch);
  const std::size_t tensor_bytes = plan.refusals.size() * plan.tensor_bytes;
  const Views views{gpu.memory(pictures.encoded.size()), gpu.memory(plan.table_slots * sizeof(DecodeTable)),
                    gpu.memory(tensor_bytes), gpu.memory(layout.bytes)};
  Pinned<std::uint8_t> encoded(gpu, pictures.encoded.size());
  Pinned<std::byte> planned(gpu, layout.upload_bytes), tensors(gpu, tensor_bytes);
  Pinned<Status> statuses(gpu, plan.jobs.size());
  std::ranges::copy(pictures.encoded, encoded.data());
  write_upload(plan, layout, planned.values());

  const CUstream files = gpu.stream(), work = gpu.stream();
  const CUevent uploaded = gpu.event();
  need(cu.cuMemcpyHtoDAsync_v2(views.encoded, encoded.data(), encoded.bytes(), files), "files");
  need(cu.cuEventRecord(uploaded, files), "cuEventRecord");
  upload(gpu, plan, layout, views, planned.data(), work);
  if (!forgets) need(cu.cuStreamWaitEvent(work, uploaded, 0), "cuStreamWaitEvent");
  launch_tokenise(gpu, kernels, plan, layout, views, work);
  launch_reconstruct(gpu, kernels, plan, layout, views, work);
  need(cu.cuMemcpyDtoHAsync_v2(statuses.data(), views.workspace + layout.statuses, statuses.bytes(), work), "statuses");
  need(cu.cuMemcpyDtoHAsync_v2(tensors.data(), views.tensors, tensors.bytes(), work), "tensors");
  gpu.synchronise(files);
  gpu.synchronise(work);

  HostRunner runner;
  const HostBatch wanted = runner.run(plan, pictures.encoded, 1);
  const bool done = std::ranges::all_of(statuses.values(), [](Status status) { return status == Status::kDone; });
  const bool untouched = std::ranges::all_of(tensors.values(), [](std::byte byte) { return byte == std::byte{0xC7}; });
  std::printf("%zu planned, %s, tensors %s\n", plan.jobs.size(), done ? "done" : "not done",
              std::ranges::equal(tensors.values(), wanted.tensors) ? "equal"
              : untouched                                          ? "untouched"
                                                                   : "different");
  return 0;
}

constexpr Scene kScenes[] = {{"batch", batch}};

}  // namespace

std::span<const Scene> batch_scenes() {
  return kScenes;
}

}  // namespace millrace::cuda_scenes
