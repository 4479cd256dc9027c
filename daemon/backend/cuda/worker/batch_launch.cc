#include "daemon/backend/cuda/worker/batch_launch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/cuda/augment/augment_args.h"
#include "kernels/cuda/reconstruct/reconstruct.h"
#include "kernels/cuda/tokenise/tokenise.h"
#include "kernels/cuda/unpack/unpack.h"

namespace millrace::cuda {

namespace {

using kernels::cuda::AugmentArgs;
using kernels::cuda::AugmentShared;
using kernels::cuda::AugmentStep;
using kernels::cuda::BlockEntry;
using kernels::cuda::DecodeTable;
using kernels::cuda::ErasedBox;
using kernels::cuda::ImageJob;
using kernels::cuda::kAugmentThreads;
using kernels::cuda::kTileBytes;
using kernels::cuda::kTileThreads;
using kernels::cuda::kTokeniseThreads;
using kernels::cuda::kUnpackThreads;
using kernels::cuda::PackedGroup;
using kernels::cuda::PackedShape;
using kernels::cuda::PictureJob;
using kernels::cuda::ReconstructArgs;
using kernels::cuda::Segment;
using kernels::cuda::Status;
using kernels::cuda::Tile;
using kernels::cuda::Token;
using kernels::cuda::TokeniseArgs;
using kernels::cuda::TokeniseShared;
using kernels::cuda::UnpackArgs;
using kernels::cuda::UnpackShared;

constexpr int kLeastCapability = 8;          // sm_80
constexpr int kLeastCudaVersion = 13;        // of the compiler that makes the image
constexpr const char* kLeastDriver = "580";  // the first of CUDA 13

unsigned blocks_of(const BatchPlan& plan, const GpuShape& gpu) {
  return static_cast<unsigned>(std::min(gpu.tokenise_blocks, static_cast<int>(plan.scans)));
}

template <class T>
T* pointer(CUdeviceptr address) {
  return reinterpret_cast<T*>(address);
}

bool is_of_the_image(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

std::string version_text(int major, int minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

// Why `device` or its driver does not take an image that it rejected with `rejected`.
Result<void> rejected_image(const Driver& driver, CUdevice device, CUresult rejected) {
  int version = 0, major = 0, minor = 0;
  MILLRACE_TRY_VOID(driver.checked(driver.cuDriverGetVersion(&version), "cuDriverGetVersion"));
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device),
                     "cuDeviceGetAttribute(compute capability, major)"));
  MILLRACE_TRY_VOID(
      driver.checked(driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device),
                     "cuDeviceGetAttribute(compute capability, minor)"));
  const std::string cuda = version_text(version / 1000, version % 1000 / 10), capability = version_text(major, minor);
  if (major < kLeastCapability)
    return Error{Code::kUnsupported, "this GPU's compute capability " + capability + " is older than " +
                                         version_text(kLeastCapability, 0) + ", the oldest that has GPU kernels"};
  if (version / 1000 < kLeastCudaVersion)
    return Error{Code::kUnsupported, "GPU kernels of this build want a driver of version " + std::string(kLeastDriver) +
                                         " or newer; this one's CUDA version is " + cuda};
  return Error{Code::kUnsupported, "the driver takes none of this build's GPU kernels: " + driver.name(rejected) +
                                       ", its CUDA version is " + cuda + ", the GPU's compute capability " +
                                       capability + "; a newer driver may"};
}

}  // namespace

WorkspaceLayout workspace_layout(const BatchPlan& plan, const GpuShape& gpu) {
  return layout_of(
      plan, blocks_of(plan, gpu) * kernels::cuda::scratch_bytes(kernels::cuda::TokeniseShape{}, kTokeniseThreads));
}

Result<Kernels> Kernels::load(const Driver& driver, CUdevice device, std::span<const std::byte> image) {
  if (image.empty())
    return Error{Code::kUnsupported, "this build has no GPU kernels: build it where a CUDA compiler of version " +
                                         std::to_string(kLeastCudaVersion) + " or newer is"};
  Kernels kernels(driver);
  const CUresult loaded = driver.cuModuleLoadData(&kernels.module_, image.data());
  if (is_of_the_image(loaded)) MILLRACE_TRY_VOID(rejected_image(driver, device, loaded));
  MILLRACE_TRY_VOID(driver.checked(loaded, "cuModuleLoadData"));
  MILLRACE_TRY_VOID(kernels.prepare(device));
  return kernels;
}

Result<void> Kernels::prepare(CUdevice device) {
  const Driver& cu = *driver_;
  constexpr int kTokeniseShared = sizeof(TokeniseShared);
  int on_multiprocessor = 0;
  MILLRACE_TRY_VOID(cu.checked(cu.cuModuleGetFunction(&tokenise_, module_, "millrace_tokenise"),
                               "cuModuleGetFunction(millrace_tokenise)"));
  MILLRACE_TRY_VOID(
      cu.checked(cu.cuModuleGetFunction(&unpack_, module_, "millrace_unpack"), "cuModuleGetFunction(millrace_unpack)"));
  MILLRACE_TRY_VOID(cu.checked(cu.cuModuleGetFunction(&reconstruct_, module_, "millrace_reconstruct"),
                               "cuModuleGetFunction(millrace_reconstruct)"));
  MILLRACE_TRY_VOID(cu.checked(cu.cuModuleGetFunction(&augment_, module_, "millrace_augment"),
                               "cuModuleGetFunction(millrace_augment)"));
  MILLRACE_TRY_VOID(
      cu.checked(cu.cuFuncSetAttribute(tokenise_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kTokeniseShared),
                 "cuFuncSetAttribute(millrace_tokenise)"));
  MILLRACE_TRY_VOID(
      cu.checked(cu.cuFuncSetAttribute(reconstruct_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kTileBytes),
                 "cuFuncSetAttribute(millrace_reconstruct)"));
  MILLRACE_TRY_VOID(
      cu.checked(cu.cuDeviceGetAttribute(&shape_.multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device),
                 "cuDeviceGetAttribute(multiprocessors)"));
  MILLRACE_TRY_VOID(cu.checked(
      cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&on_multiprocessor, tokenise_, kTokeniseThreads, kTokeniseShared),
      "cuOccupancyMaxActiveBlocksPerMultiprocessor(millrace_tokenise)"));
  shape_.tokenise_blocks = shape_.multiprocessors * on_multiprocessor;
  return {};
}

Kernels::Kernels(Kernels&& other) noexcept
    : driver_(other.driver_),
      module_(std::exchange(other.module_, nullptr)),
      tokenise_(other.tokenise_),
      unpack_(other.unpack_),
      reconstruct_(other.reconstruct_),
      augment_(other.augment_),
      shape_(other.shape_) {}

Kernels& Kernels::operator=(Kernels&& other) noexcept {
  std::swap(driver_, other.driver_);
  std::swap(module_, other.module_);
  std::swap(tokenise_, other.tokenise_);
  std::swap(unpack_, other.unpack_);
  std::swap(reconstruct_, other.reconstruct_);
  std::swap(augment_, other.augment_);
  std::swap(shape_, other.shape_);
  return *this;
}

Kernels::~Kernels() {
  if (module_ != nullptr) static_cast<void>(driver_->cuModuleUnload(module_));  // what fails ends with the context
}

Result<void> Kernels::launch(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                             CUstream stream) const {
  if (plan.jobs.empty()) return {};
  MILLRACE_TRY_VOID(upload(plan, layout, views, stream));
  MILLRACE_TRY_VOID(tokenise(plan, layout, views, stream));
  MILLRACE_TRY_VOID(unpack(plan, layout, views, stream));
  MILLRACE_TRY_VOID(reconstruct(plan, layout, views, stream));
  MILLRACE_TRY_VOID(augment(plan, layout, views, stream));
  return download(plan, layout, views, stream);
}

Result<void> Kernels::upload(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                             CUstream stream) const {
  const Driver& cu = *driver_;
  MILLRACE_TRY_VOID(cu.checked(cu.cuMemcpyHtoDAsync_v2(views.workspace, views.upload, layout.upload_bytes, stream),
                               "cuMemcpyHtoDAsync(upload)"));
  MILLRACE_TRY_VOID(
      cu.checked(cu.cuMemsetD8Async(views.workspace + layout.statuses, 0, layout.zeroed_end - layout.statuses, stream),
                 "cuMemsetD8Async(statuses)"));
  const CUdeviceptr tables = views.workspace + layout.new_tables;
  for (const kernels::cuda::TableRun& run : plan.table_runs) {
    MILLRACE_TRY_VOID(cu.checked(
        cu.cuMemcpyDtoDAsync_v2(views.tables + run.slot * sizeof(DecodeTable), tables + run.first * sizeof(DecodeTable),
                                run.count * sizeof(DecodeTable), stream),
        "cuMemcpyDtoDAsync(tables)"));
  }
  return {};
}

Result<void> Kernels::tokenise(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                               CUstream stream) const {
  if (plan.scans == 0) return {};
  const CUdeviceptr work = views.workspace;
  TokeniseArgs args{.jobs = pointer<const ImageJob>(work + layout.jobs),
                    .images = static_cast<std::uint32_t>(plan.jobs.size()),
                    .bytes = pointer<const std::uint8_t>(views.encoded),
                    .tables = pointer<const DecodeTable>(views.tables),
                    .segments = pointer<const Segment>(work + layout.segments),
                    .tokens = pointer<Token>(work + layout.tokens),
                    .blocks = pointer<BlockEntry>(work + layout.blocks),
                    .statuses = pointer<Status>(work + layout.statuses),
                    .work = nullptr,
                    .next_image = pointer<std::uint32_t>(work + layout.next_image),
                    .scratch = pointer<unsigned char>(work + layout.scratch),
                    .shape = {}};
  void* arguments[] = {&args};  // copied by the launch
  return driver_->checked(driver_->cuLaunchKernel(tokenise_, blocks_of(plan, shape_), 1, 1, kTokeniseThreads, 1, 1,
                                                  sizeof(TokeniseShared), stream, arguments, nullptr),
                          "cuLaunchKernel(millrace_tokenise)");
}

Result<void> Kernels::unpack(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                             CUstream stream) const {
  if (plan.groups.empty()) return {};
  const CUdeviceptr work = views.workspace;
  UnpackArgs args{.groups = pointer<const PackedGroup>(work + layout.groups),
                  .jobs = pointer<const ImageJob>(work + layout.jobs),
                  .bytes = pointer<const std::uint8_t>(views.encoded),
                  .shapes = pointer<const PackedShape>(work + layout.shapes),
                  .tokens = pointer<Token>(work + layout.tokens),
                  .blocks = pointer<BlockEntry>(work + layout.blocks),
                  .statuses = pointer<Status>(work + layout.statuses)};
  void* arguments[] = {&args};  // copied by the launch
  return driver_->checked(
      driver_->cuLaunchKernel(unpack_, static_cast<unsigned>(plan.groups.size()), 1, 1, kUnpackThreads, 1, 1,
                              sizeof(UnpackShared), stream, arguments, nullptr),
      "cuLaunchKernel(millrace_unpack)");
}

Result<void> Kernels::reconstruct(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                                  CUstream stream) const {
  const CUdeviceptr work = views.workspace;
  ReconstructArgs args{.spec = plan.spec,
                       .tiles = pointer<const Tile>(work + layout.tiles),
                       .images = pointer<const ImageJob>(work + layout.jobs),
                       .blocks = pointer<const BlockEntry>(work + layout.blocks),
                       .tokens = pointer<const Token>(work + layout.tokens),
                       .quants = pointer<const std::uint16_t>(work + layout.quants),
                       .weights = pointer<const std::int32_t>(work + layout.weights),
                       .store = pointer<const std::uint32_t>(work + layout.store),
                       .tensors = plan.pictures.jobs.empty() ? pointer<std::uint8_t>(views.tensors)
                                                             : pointer<std::uint8_t>(work + layout.pictures),
                       .status = pointer<Status>(work + layout.statuses)};
  void* arguments[] = {&args};  // copied by the launch
  return driver_->checked(driver_->cuLaunchKernel(reconstruct_, static_cast<unsigned>(plan.tiles.size()), 1, 1,
                                                  kTileThreads, 1, 1, kTileBytes, stream, arguments, nullptr),
                          "cuLaunchKernel(millrace_reconstruct)");
}

Result<void> Kernels::augment(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                              CUstream stream) const {
  if (plan.pictures.jobs.empty()) return {};
  const CUdeviceptr work = views.workspace;
  AugmentArgs args{.spec = plan.tensor_spec,
                   .jobs = pointer<const PictureJob>(work + layout.picture_jobs),
                   .steps = pointer<const AugmentStep>(work + layout.steps),
                   .boxes = pointer<const ErasedBox>(work + layout.boxes),
                   .tables = pointer<const std::uint32_t>(work + layout.step_tables),
                   .pictures = pointer<const std::uint8_t>(work + layout.pictures),
                   .scratch = pointer<unsigned char>(work + layout.picture_scratch),
                   .store = pointer<const std::uint32_t>(work + layout.tensor_store),
                   .tensors = pointer<std::uint8_t>(views.tensors),
                   .status = pointer<const Status>(work + layout.statuses)};
  void* arguments[] = {&args};  // copied by the launch
  return driver_->checked(
      driver_->cuLaunchKernel(augment_, static_cast<unsigned>(plan.pictures.jobs.size()), 1, 1, kAugmentThreads, 1, 1,
                              sizeof(AugmentShared), stream, arguments, nullptr),
      "cuLaunchKernel(millrace_augment)");
}

Result<void> Kernels::download(const BatchPlan& plan, const WorkspaceLayout& layout, const BatchViews& views,
                               CUstream stream) const {
  return driver_->checked(driver_->cuMemcpyDtoHAsync_v2(views.statuses, views.workspace + layout.statuses,
                                                        plan.jobs.size() * sizeof(Status), stream),
                          "cuMemcpyDtoHAsync(statuses)");
}

}  // namespace millrace::cuda
