// A finished batch, and what happened to each of its images. In shared memory it is mapped read-only; a session may also
// have its tensors in a GPU's memory (SessionOptions::memory), where a process that maps it may write to it.
//
// A TensorView is a lease: as long as it lives the daemon does not touch its slot; its destructor gives the slot back,
// without waiting. It may outlive its Session: the mapping, and with it the session's memory in the daemon, stays until
// the last view is gone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "millrace/export.h"
#include "millrace/recipe.h"
#include "millrace/result.h"
#include "proto/base/why_unpacked.h"

namespace millrace {
inline namespace client {

// One image of a tensor. A value, copied out of shared memory.
struct SampleInfo {
  std::uint64_t id = 0;
  std::int64_t label = -1;  // a dataset's class number, or what Sample::label said; -1 where there is none
  std::uint32_t index = 0;  // position in the batch as it was asked for
  Code status{};            // what went wrong; Code{} (0): nothing
  bool flipped = false;
  bool zeroed = false;           // OnError::kZero: the pixels are zero bytes
  bool substituted = false;      // OnError::kSubstitute: another sample's pixels, id and label
  std::uint8_t orientation = 0;  // EXIF, 1 ... 8; 0 when not known
  Size size{};                   // in the tensor
  Size source{};                 // stored in the file, before orientation; 0 when not known
  Box crop{};                    // in the oriented source
  Size resized{};                // of the whole crop, after the resize; 0 when not known
  std::int32_t window_left =
      0;  // where the image begins in that, before it was flipped; less than 0 where it is padded
  std::int32_t window_top = 0;
  std::string backend{};              // "cpu"
  WhyUnpacked unpacked{};             // why the daemon keeps no packed form of the file; kNotSaid by older daemons
  std::chrono::microseconds fetch{};  // reading the encoded bytes
  std::chrono::microseconds queue{};  // waiting for a lane
  std::chrono::microseconds decode{};
  std::chrono::microseconds transform{};  // resample, flip, normalise, store

  bool good() const { return status == Code{}; }
  // The source's size as the crop sees it: sides swapped for orientations 5 ... 8.
  Size oriented() const { return orientation >= 5 ? Size{source.height, source.width} : source; }
};

// Bytes in a GPU's memory. The host cannot read them: TensorView::copy() does.
struct DeviceBytes {
  std::uint64_t address = 0;  // a CUdeviceptr, in the device's primary context, which is the CUDA run time's
  Bytes size{};
};

// The tensor of one view of a recipe that has some (Recipe::views): N images of it, dense, at a multiple of 64 bytes.
struct ViewTensor {
  std::span<const std::byte> data{};  // valid as TensorView::data()
  DeviceBytes device_data{};          // instead, in a GPU's memory
  std::vector<std::uint64_t> shape{};
  std::vector<std::uint64_t> strides{};  // bytes
};

class SessionCore;

// Thread-safe for reading; moving, used_by(), release() and destruction are its owner's. After fork() only the parent may use it.
class MILLRACE_API TensorView {
 public:
  TensorView() noexcept;  // empty: no bytes, no samples
  TensorView(TensorView&&) noexcept;
  TensorView& operator=(TensorView&&) noexcept;
  ~TensorView();

  bool empty() const noexcept { return state_ == nullptr; }
  Bytes size() const noexcept;  // of the tensor, wherever it is

  // The tensor's bytes, in place; none if they are in a GPU's memory. Valid until release() or destruction.
  std::span<const std::byte> data() const noexcept;
  // The same, as elements. T is uint8_t, float, or uint16_t for the two 16-bit floats' bits. kPrecondition: T is not
  // what the tensor holds, or it is in a GPU's memory.
  template <class T>
  Result<std::span<const T>> as() const;

  // The GPU, as CUDA counts in this process; nothing: the tensor is in the host's memory. The rest is for GPUs alone.
  std::optional<int> device() const noexcept;
  // The tensor's bytes there, and one image's. They are complete: no stream has to wait for them.
  DeviceBytes device_data() const noexcept;
  DeviceBytes device_pixels(std::size_t index) const noexcept;
  // The slot goes back to the daemon only when that stream has done what it has to do when the view is released: for
  // each stream that reads or writes the tensor, before release(). `stream`: a CUstream or cudaStream_t that lives until
  // then; nullptr: the default one. (The daemon hears of it in the session's next call, so a loop that takes batches as
  // they come has none to wait for.)
  void used_by(void* stream);
  // A copy of the tensor's bytes, from wherever they are; of a GPU's when the streams of used_by() have done what they have
  // to do now. kPrecondition: CUDA fails.
  Result<std::vector<std::byte>> copy() const;

  // Elements along each axis. A packed tensor has one axis: all elements, those in the gaps between images included;
  // pixels() has each image alone. For patches see Patches.
  std::span<const std::uint64_t> shape() const noexcept;
  std::span<const std::uint64_t> strides() const noexcept;  // bytes from one element to the next along each axis
  DType dtype() const noexcept;

  // Of a recipe with views: each one's tensor, in order, all within data() or device_data(), which has one axis. Else
  // none. Of a sample, sample() and pixels() tell of its first view.
  std::span<const ViewTensor> views() const noexcept;

  std::size_t samples() const noexcept;
  SampleInfo sample(std::size_t index) const;  // REQUIRES: index < samples()
  std::span<const std::byte> pixels(
      std::size_t index) const noexcept;  // that image alone, packed tensors too; as data()
  std::vector<std::int64_t> labels() const;
  std::vector<std::uint64_t> ids() const;

  // When the daemon sealed it: CLOCK_MONOTONIC, the same clock in every process of the host.
  std::chrono::steady_clock::time_point sealed_at() const noexcept;
  // Whether the slot still holds this batch. Always true while the daemon keeps to its contract; for those who check.
  bool valid() const noexcept;

  // Gives the slot back, now or as used_by() says; the view is empty afterwards. Never waits, but for the last view of a
  // session on a GPU that has ended: for the streams of used_by(), since the memory goes with it.
  void release() noexcept;

  struct State;  // the library's own
  explicit TensorView(std::unique_ptr<State> state) noexcept;

 private:
  friend class SessionCore;
  void set_waited(std::chrono::nanoseconds waited) noexcept;  // for it; the daemon hears of it with the release
  Result<void> check_elements(std::size_t bytes, bool floating) const;

  std::unique_ptr<State> state_;
};

template <class T>
Result<std::span<const T>> TensorView::as() const {
  static_assert(std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t> || std::is_same_v<T, float>,
                "uint8_t, uint16_t (bits of a 16-bit float) or float");
  MILLRACE_TRY_VOID(check_elements(sizeof(T), std::is_same_v<T, float>));
  const auto bytes = data();
  return std::span<const T>(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T));
}

}  // namespace client
}  // namespace millrace
