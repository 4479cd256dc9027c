#include <algorithm>
#include <cstring>
#include <limits>

#include "client/src/tensor_state.h"
#include "millrace/tensor.h"
#include "proto/rpc/recipe_message.h"
#include "proto/shm/segment_layout.h"

namespace millrace {
inline namespace client {
namespace {

shm::SampleRecord record_at(std::span<const std::byte> records, std::size_t index) {
  shm::SampleRecord record{};
  std::memcpy(&record, records.data() + index * sizeof record, sizeof record);
  return record;
}

// Whether every element that shape and strides name lies within `bytes`.
bool fits(std::span<const std::uint64_t> shape, std::span<const std::uint64_t> strides, DType dtype,
          std::uint64_t bytes) {
  if (shape.size() != strides.size() || shape.empty()) return false;
  std::uint64_t last = 0;  // offset of the last element
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return true;
    const std::uint64_t steps = shape[axis] - 1;
    if (steps != 0 && strides[axis] > (bytes - last) / steps) return false;
    last += steps * strides[axis];
  }
  return dtype_bytes(dtype).count <= bytes - last;
}

// Where `offset` is in `bytes` from `from` on; nullopt: not there.
std::optional<std::uint64_t> within(std::uint64_t offset, std::uint64_t from, std::uint64_t bytes) {
  if (offset < from || offset - from > bytes) return std::nullopt;
  return offset - from;
}

// Those bytes of it; none if they do not lie in it.
DeviceBytes device_range(const DeviceMemory& device, std::uint64_t offset, std::uint64_t bytes) {
  if (offset > device.size().count || bytes > device.size().count - offset) return {};
  return {device.address() + offset, Bytes{bytes}};
}

// The views' tensors; false: one of them does not lie in the handle's.
bool read_views(const v1::TensorHandle& handle, TensorView::State& state) {
  for (const v1::ViewTensor& view : handle.views()) {
    ViewTensor read;
    read.shape.assign(view.shape().begin(), view.shape().end());
    read.strides.assign(view.strides().begin(), view.strides().end());
    const std::optional<std::uint64_t> at = within(view.offset(), handle.offset(), handle.bytes());
    if (!at || !fits(read.shape, read.strides, state.dtype, handle.bytes() - *at)) return false;
    const std::uint64_t bytes = std::min(read.shape[0] * read.strides[0], handle.bytes() - *at);
    if (!state.tensor.empty()) read.data = state.tensor.subspan(*at, bytes);
    if (state.on_device.size.count > 0) read.device_data = {state.on_device.address + *at, Bytes{bytes}};
    state.views.push_back(std::move(read));
  }
  return true;
}

}  // namespace

TensorView::State::~State() {
  const auto release = [to = wire, slot = slot, generation = generation, waited = waited] {
    const auto alive = to.lock();
    if (!alive) return;
    v1::ClientMessage message;
    message.mutable_release()->set_slot(slot);
    message.mutable_release()->set_generation(generation);
    if (waited) message.mutable_release()->set_waited_ns(static_cast<std::uint64_t>(waited->count()));
    alive->send(std::move(message));
  };
  if (streams.empty()) {
    release();
    return;
  }
  holding->device()->release_after(streams, release);
  if (const auto to = wire.lock()) to->wake();  // a thread that waits looks after the streams, too
}

Result<TensorView> view_of(const v1::TensorHandle& handle, const std::shared_ptr<Holding>& holding,
                           const std::weak_ptr<Wire>& wire) {
  auto state = std::make_unique<TensorView::State>();
  state->holding = holding;
  state->wire = wire;
  state->slot = handle.slot();
  state->generation = handle.generation();
  state->shape.assign(handle.shape().begin(), handle.shape().end());
  state->strides.assign(handle.strides().begin(), handle.strides().end());
  const DeviceMemory* const device = holding->device();
  if (device == nullptr) state->tensor = holding->range(handle.offset(), handle.bytes());
  if (device != nullptr) state->on_device = device_range(*device, handle.offset(), handle.bytes());
  state->records = holding->range(handle.records_offset(), std::uint64_t{handle.samples()} * sizeof(shm::SampleRecord));
  state->sealed_at = std::chrono::steady_clock::time_point(std::chrono::nanoseconds(handle.sealed_at_ns()));
  if (!holding->holds(state->slot, state->generation))
    return Error{Code::kPrecondition,
                 "a stale handle: slot " + std::to_string(state->slot) + " does not hold this batch any more"};
  MILLRACE_TRY_VOID(holding->map_slot(state->slot));
  const Result<DType> dtype = millrace::from_message("dtype", handle.dtype());
  if (!dtype)
    return Error{Code::kUnsupported,
                 "the batch has elements of a type that this library does not know; install the library and millraced "
                 "of the same version"};
  state->dtype = *dtype;
  const std::uint32_t memory = device == nullptr ? 0 : 1;
  if (handle.segment() != memory || state->tensor.size() + state->on_device.size.count != handle.bytes() ||
      state->records.size() != handle.samples() * sizeof(shm::SampleRecord) ||
      !fits(state->shape, state->strides, state->dtype, handle.bytes()) || !read_views(handle, *state))
    return Error{
        Code::kInternal,
        "the daemon's handle does not lie in the session's memory; please report it with the daemon's version"};
  return TensorView(std::move(state));
}

TensorView::TensorView() noexcept = default;
TensorView::TensorView(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TensorView::TensorView(TensorView&&) noexcept = default;
TensorView& TensorView::operator=(TensorView&&) noexcept = default;
TensorView::~TensorView() = default;

std::span<const std::byte> TensorView::data() const noexcept {
  return state_ ? state_->tensor : std::span<const std::byte>();
}
Bytes TensorView::size() const noexcept {
  return Bytes{data().size()} + device_data().size;
}
std::span<const std::uint64_t> TensorView::shape() const noexcept {
  return state_ ? std::span<const std::uint64_t>(state_->shape) : std::span<const std::uint64_t>();
}
std::span<const std::uint64_t> TensorView::strides() const noexcept {
  return state_ ? std::span<const std::uint64_t>(state_->strides) : std::span<const std::uint64_t>();
}
DType TensorView::dtype() const noexcept {
  return state_ ? state_->dtype : DType::kUint8;
}
std::span<const ViewTensor> TensorView::views() const noexcept {
  return state_ ? std::span<const ViewTensor>(state_->views) : std::span<const ViewTensor>();
}
std::size_t TensorView::samples() const noexcept {
  return state_ ? state_->records.size() / sizeof(shm::SampleRecord) : 0;
}

SampleInfo TensorView::sample(std::size_t index) const {
  const shm::SampleRecord record = record_at(state_->records, index);
  return {.id = record.id,
          .label = record.label,
          .index = record.index,
          .status = static_cast<Code>(record.status),
          .flipped = (record.flags & shm::kFlipped) != 0,
          .zeroed = (record.flags & shm::kZeroed) != 0,
          .substituted = (record.flags & shm::kSubstituted) != 0,
          .orientation = record.orientation,
          .size = {record.width, record.height},
          .source = {record.source_width, record.source_height},
          .crop = {record.crop_left, record.crop_top, record.crop_width, record.crop_height},
          .resized = {record.resized_width, record.resized_height},
          .window_left = record.window_left,
          .window_top = record.window_top,
          .backend = std::string(record.backend, ::strnlen(record.backend, sizeof record.backend)),
          .unpacked = static_cast<WhyUnpacked>(record.unpacked),
          .fetch = std::chrono::microseconds(record.fetch_us),
          .queue = std::chrono::microseconds(record.queue_us),
          .decode = std::chrono::microseconds(record.decode_us),
          .transform = std::chrono::microseconds(record.transform_us)};
}

std::span<const std::byte> TensorView::pixels(std::size_t index) const noexcept {
  if (index >= samples() || device()) return {};
  const shm::SampleRecord record = record_at(state_->records, index);
  return state_->holding->range(record.pixels_offset, record.pixels_bytes);
}

std::optional<int> TensorView::device() const noexcept {
  const DeviceMemory* const device = state_ ? state_->holding->device() : nullptr;
  return device == nullptr ? std::nullopt : std::optional<int>(device->ordinal());
}

DeviceBytes TensorView::device_data() const noexcept {
  return state_ ? state_->on_device : DeviceBytes{};
}

DeviceBytes TensorView::device_pixels(std::size_t index) const noexcept {
  if (index >= samples() || !device()) return {};
  const shm::SampleRecord record = record_at(state_->records, index);
  return device_range(*state_->holding->device(), record.pixels_offset, record.pixels_bytes);
}

void TensorView::used_by(void* stream) {
  if (!device()) return;
  std::vector<void*>& streams = state_->streams;
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

Result<std::vector<std::byte>> TensorView::copy() const {
  if (!device()) return std::vector<std::byte>(data().begin(), data().end());
  std::vector<std::byte> bytes(state_->on_device.size.count);
  MILLRACE_TRY_VOID(state_->holding->device()->copy(state_->on_device.address, bytes, state_->streams));
  return bytes;
}

std::vector<std::int64_t> TensorView::labels() const {
  std::vector<std::int64_t> labels(samples());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = record_at(state_->records, i).label;
  return labels;
}

std::vector<std::uint64_t> TensorView::ids() const {
  std::vector<std::uint64_t> ids(samples());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = record_at(state_->records, i).id;
  return ids;
}

std::chrono::steady_clock::time_point TensorView::sealed_at() const noexcept {
  return state_ ? state_->sealed_at : std::chrono::steady_clock::time_point();
}

bool TensorView::valid() const noexcept {
  return state_ && state_->holding->holds(state_->slot, state_->generation);
}

void TensorView::set_waited(std::chrono::nanoseconds waited) noexcept {
  if (state_) state_->waited = waited;
}

void TensorView::release() noexcept {
  state_.reset();
}

Result<void> TensorView::check_elements(std::size_t bytes, bool floating) const {
  if (device())
    return Error{Code::kPrecondition, "the tensor is in a GPU's memory: device_data() says where, copy() copies it"};
  const bool is_float = dtype() == DType::kFloat32;
  if (dtype_bytes(dtype()).count == bytes && is_float == floating) return {};
  return Error{
      Code::kPrecondition,
      "the tensor holds " + std::string(dtype_name(dtype())) +
          ": as<uint8_t>() is for uint8, as<uint16_t>() for the bits of float16 and bfloat16, as<float>() for float32"};
}

}  // namespace client
}  // namespace millrace
