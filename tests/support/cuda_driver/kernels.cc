#include "tests/support/cuda_driver/kernels.h"

#include <cstring>
#include <type_traits>

#include "kernels/cuda/augment/augment.h"
#include "kernels/cuda/host_block.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/cuda/unpack/unpack.h"
#include "tests/support/cuda_driver/illegal_access.h"
#include "tests/support/cuda_driver/memory.h"
#include "tests/support/cuda_driver/order.h"
#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

using namespace millrace::kernels::cuda;

constexpr std::size_t kCollectives = 128;  // bytes that device_block.h's have of shared memory

template <class T>
T read(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

// A device pointer to where the host finds it; for writing, unless T is const. Returns the device pointer.
template <class T>
CUdeviceptr translate(T*& pointer) {
  const auto device = reinterpret_cast<CUdeviceptr>(pointer);
  std::byte* const at = Memory::get().find(device, 1, !std::is_const_v<T>);
  if (at == nullptr) throw IllegalAddress{};
  pointer = reinterpret_cast<T*>(at);
  return device;
}

// Also says that all `count` of them are read or written.
template <class T>
void translate_all(T*& pointer, std::size_t count) {
  touch(translate(pointer), count * sizeof(T), !std::is_const_v<T>);
}

void need_shared(const Launch& launch, std::size_t bytes) {
  if (launch.shared < bytes) throw IllegalAddress{};
}

void touch_tokenised(const TokeniseArgs& args, CUdeviceptr bytes, CUdeviceptr tables, CUdeviceptr tokens) {
  for (const ImageJob& job : std::span(args.jobs, args.images)) {
    if (job.byte_count == 0) continue;
    touch(bytes + job.bytes, job.byte_count, false);
    touch(tokens + job.first_token * sizeof(Token), job.token_capacity * sizeof(Token), true);
    for (const ComponentJob& component : std::span(job.component, job.components))
      for (const std::uint16_t table : {component.dc_table, component.ac_table})
        touch(tables + table * sizeof(DecodeTable), sizeof(DecodeTable), false);
  }
}

void run_tokenise(const Launch& launch, std::span<const std::byte> parameter) {
  auto args = read<TokeniseArgs>(parameter);
  need_shared(launch, sizeof(TokeniseShared));
  translate_all(args.statuses, args.images);
  if (settings().instant) {
    std::memset(args.statuses, 0, args.images * sizeof(Status));
    return;
  }
  translate_all(args.jobs, args.images);
  const CUdeviceptr bytes = translate(args.bytes), tables = translate(args.tables), tokens = translate(args.tokens);
  translate(args.segments);
  translate(args.blocks);
  if (args.work != nullptr) translate(args.work);
  translate_all(args.next_image, 1);
  translate(args.scratch);
  touch_tokenised(args, bytes, tables, tokens);
  run_grid({launch.blocks, launch.threads, launch.seed}, [&](HostBlock& block) { tokenise(block, args); });
}

// The ranges of each group. Statuses are written where a group is damaged.
void touch_unpacked(const UnpackArgs& args, std::span<const PackedGroup> groups, CUdeviceptr bytes,
                    CUdeviceptr tokens) {
  for (const PackedGroup& group : groups) {
    touch(bytes + group.bytes / 4 * 4, group.bytes % 4 + group.byte_count, false);
    touch(tokens + (args.jobs[group.image].first_token + group.first_token) * sizeof(Token),
          token_room(group.byte_count, group.blocks) * sizeof(Token), true);
  }
}

void run_unpack(const Launch& launch, std::span<const std::byte> parameter) {
  auto args = read<UnpackArgs>(parameter);
  need_shared(launch, sizeof(UnpackShared));
  if (settings().instant) return;
  const auto groups = static_cast<std::size_t>(launch.blocks);
  translate_all(args.groups, groups);
  translate(args.jobs);
  const CUdeviceptr bytes = translate(args.bytes);
  translate_all(args.shapes, kPackedShapes);
  const CUdeviceptr tokens = translate(args.tokens);
  translate(args.blocks);
  translate(args.statuses);
  touch_unpacked(args, std::span(args.groups, groups), bytes, tokens);
  run_grid({launch.blocks, launch.threads, launch.seed}, [&](HostBlock& block) { unpack(block, args); });
}

void touch_reconstructed(const ReconstructArgs& args, int tiles, CUdeviceptr tokens, CUdeviceptr tensors) {
  const std::size_t channels = args.spec.channels == kernels::ChannelOrder::kGrey ? 1 : 3;
  std::uint32_t last = ~0U;
  for (const Tile& tile : std::span(args.tiles, static_cast<std::size_t>(tiles))) {
    if (tile.image == last) continue;  // an image's tiles come one after the other
    last = tile.image;
    const ImageJob& job = args.images[tile.image];
    touch(tokens + job.first_token * sizeof(Token), job.token_capacity * sizeof(Token), false);
    const std::size_t pixels = std::size_t{job.tensor_width} * job.tensor_height;
    touch(tensors + job.output, pixels * args.spec.element_bytes * channels, true);
  }
}

void run_reconstruct(const Launch& launch, std::span<const std::byte> parameter) {
  auto args = read<ReconstructArgs>(parameter);
  need_shared(launch, kTileBytes);
  if (settings().instant) return;
  translate_all(args.tiles, static_cast<std::size_t>(launch.blocks));
  translate(args.images);
  translate(args.blocks);
  const CUdeviceptr tokens = translate(args.tokens);
  translate(args.quants);
  translate(args.weights);
  translate(args.store);
  const CUdeviceptr tensors = translate(args.tensors);
  translate(args.status);
  touch_reconstructed(args, launch.blocks, tokens, tensors);
  run_grid({launch.blocks, launch.threads, launch.seed}, [&](HostBlock& block) { reconstruct_tile(block, args); });
}

// Each job's picture, scratch and tensor; the rest of what it says is the daemon's own.
void touch_augmented(const AugmentArgs& args, std::span<const PictureJob> jobs, CUdeviceptr pictures,
                     CUdeviceptr tensors) {
  const std::size_t channels = args.spec.channels == kernels::ChannelOrder::kGrey ? 1 : 3;
  const std::size_t frames = args.spec.patches.width == 0 ? 1 : args.spec.patches.temporal;
  for (const PictureJob& job : jobs) {
    const std::size_t pixels = std::size_t{job.width} * job.height;
    touch(pictures + job.picture,
          3 * static_cast<std::size_t>(job.inner_width) * static_cast<std::size_t>(job.inner_height), false);
    touch(tensors + job.output, pixels * args.spec.element_bytes * channels * frames, true);
  }
}

void run_augment(const Launch& launch, std::span<const std::byte> parameter) {
  auto args = read<AugmentArgs>(parameter);
  need_shared(launch, sizeof(AugmentShared));
  if (settings().instant) return;
  translate_all(args.jobs, static_cast<std::size_t>(launch.blocks));
  translate(args.steps);
  translate(args.boxes);
  translate(args.tables);
  const CUdeviceptr pictures = translate(args.pictures);
  translate(args.scratch);
  translate(args.store);
  const CUdeviceptr tensors = translate(args.tensors);
  translate(args.status);
  touch_augmented(args, std::span(args.jobs, static_cast<std::size_t>(launch.blocks)), pictures, tensors);
  run_grid({launch.blocks, launch.threads, launch.seed}, [&](HostBlock& block) { augment(block, args); });
}

constexpr HostKernel kKernels[] = {
    {"millrace_tokenise", sizeof(TokeniseArgs), 72, kCollectives, run_tokenise},
    {"millrace_unpack", sizeof(UnpackArgs), 36, kCollectives, run_unpack},
    {"millrace_reconstruct", sizeof(ReconstructArgs), 64, 0, run_reconstruct},  // which has no use for them
    {"millrace_augment", sizeof(AugmentArgs), 64, kCollectives, run_augment},
};

}  // namespace

const HostKernel* find_kernel(std::string_view name) {
  for (const HostKernel& kernel : kKernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace millrace::sim
