#include "tests/support/cuda_driver/api/image.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/support/cuda_driver/settings.h"

namespace millrace::sim {
namespace {

constexpr char kSimulatedImage[] = "millrace simulated image";
constexpr int kLeastCapability = 80;  // of a device that runs that

constexpr std::uint32_t kFatBinaryMagic = 0xBA55ED50;
constexpr std::uint16_t kFatBinaryVersion = 1, kPtx = 1, kElf = 2;

template <class T>
T read_at(const std::byte* bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof(T));
  return value;
}

struct ImageEntry {
  explicit ImageEntry(const std::byte* at)
      : kind(read_at<std::uint16_t>(at, 0)),
        minor(read_at<std::uint16_t>(at, 24)),
        major(read_at<std::uint16_t>(at, 26)),
        architecture(read_at<std::uint32_t>(at, 28)),
        size(std::uint64_t{read_at<std::uint32_t>(at, 4)} + read_at<std::uint64_t>(at, 8)) {}
  static constexpr std::size_t kLeastBytes = 64;

  const unsigned kind, minor, major, architecture;
  const std::uint64_t size;
};

// Machine code runs on devices of the same major number from its minor one on; PTX is compiled for all later ones.
bool runs(const ImageEntry& entry, unsigned capability) {
  if (entry.kind == kPtx) return entry.architecture <= capability;
  return entry.kind == kElf && entry.architecture / 10 == capability / 10 && entry.architecture <= capability;
}

// The first CUDA whose driver compiles PTX of that version, as cuDriverGetVersion() has it. From 7.0 on; the minor
// numbers of 8.6 to 8.8 are those of CUDA 12.7 to 12.9.
int least_driver(const ImageEntry& ptx) {
  const unsigned minor = ptx.minor + (ptx.major == 8 && ptx.minor > 5 ? 1 : 0);
  return static_cast<int>((ptx.major + 4) * 1000 + minor * 10);
}

cuda::CUresult check_fat_binary(const std::byte* image) {
  const std::size_t header = read_at<std::uint16_t>(image, 6);
  const auto bytes = read_at<std::uint64_t>(image, 8);
  if (read_at<std::uint16_t>(image, 4) != kFatBinaryVersion || header < 16) return cuda::CUDA_ERROR_INVALID_IMAGE;
  const auto capability = static_cast<unsigned>(settings().capability);
  cuda::CUresult result = cuda::CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (std::uint64_t at = 0; at < bytes;) {
    if (bytes - at < ImageEntry::kLeastBytes) return cuda::CUDA_ERROR_INVALID_IMAGE;
    const ImageEntry entry(image + header + at);
    if (entry.size < ImageEntry::kLeastBytes || entry.size > bytes - at) return cuda::CUDA_ERROR_INVALID_IMAGE;
    at += entry.size;
    if (!runs(entry, capability)) continue;
    if (entry.kind == kElf || least_driver(entry) <= settings().driver_version) return cuda::CUDA_SUCCESS;
    result = cuda::CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  return result;
}

}  // namespace

cuda::CUresult check_image(const void* image) {
  const auto* const bytes = static_cast<const std::byte*>(image);
  if (std::strncmp(static_cast<const char*>(image), kSimulatedImage, sizeof(kSimulatedImage) - 1) == 0)
    return settings().capability < kLeastCapability ? cuda::CUDA_ERROR_NO_BINARY_FOR_GPU : cuda::CUDA_SUCCESS;
  return read_at<std::uint32_t>(bytes, 0) == kFatBinaryMagic ? check_fat_binary(bytes) : cuda::CUDA_ERROR_INVALID_IMAGE;
}

}  // namespace millrace::sim
