#include "tests/unit/client/scripted_daemon.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <filesystem>

#include "proto/base/sockets/handoff_path.h"
#include "proto/base/sockets/socket_message.h"
#include "proto/rpc/slots_later_metadata.h"
#include "tests/support/host/reply_frames.h"

namespace millrace::test {
namespace {

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(5);
}

}  // namespace

ScriptedDaemon::ScriptedDaemon(ScriptedOptions options)
    : options_(std::move(options)), folder_("/tmp/millrace-scripted-XXXXXX") {
  MILLRACE_CHECK(::mkdtemp(folder_.data()) != nullptr);
  socket_ = folder_ + "/d.sock";
  listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, handoff_path(socket_).c_str(), sizeof address.sun_path - 1);
  MILLRACE_CHECK(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                 ::listen(listener_.get(), 4) == 0);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + socket_, grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  MILLRACE_CHECK(server_ != nullptr);
  handoff_ = std::thread([this] { serve_handoff(); });
}

ScriptedDaemon::~ScriptedDaemon() {
  die();
  if (!segment_.empty()) ::munmap(segment_.data(), segment_.size());
  std::filesystem::remove_all(folder_);
}

void ScriptedDaemon::die() {
  if (!handoff_.joinable()) return;
  ::shutdown(listener_.get(), SHUT_RDWR);
  {
    MutexLock lock(mutex_);
    if (connection_) ::shutdown(connection_.get(), SHUT_RDWR);
    if (replies_) ::shutdown(replies_.get(), SHUT_RDWR);
  }
  server_->Shutdown(std::chrono::system_clock::now());
  handoff_.join();
}

v1::ClientMessage ScriptedDaemon::next_message() {
  return messages_.pop_until(soon()).value_or(v1::ClientMessage());
}
bool ScriptedDaemon::handoff_closes() {
  return closed_.pop_until(soon()).has_value();
}
UniqueFd ScriptedDaemon::ring() {
  return rings_.pop_until(soon()).value_or(UniqueFd());
}

void ScriptedDaemon::send(const v1::ServerMessage& message) {
  const std::string frame = framed(message);
  MutexLock lock(mutex_);
  MILLRACE_CHECK(::send(replies_.get(), frame.data(), frame.size(), MSG_NOSIGNAL) ==
                 static_cast<ssize_t>(frame.size()));
}

void ScriptedDaemon::end_at_next_message(const grpc::Status& status) {
  MutexLock lock(mutex_);
  end_ = status;
  ::shutdown(replies_.get(), SHUT_WR);
}

void ScriptedDaemon::make_segment(std::uint32_t slots, std::uint64_t slot_bytes) {
  const std::uint64_t size = shm::segment_bytes(slots, {slot_bytes}).count;
  segment_fd_.reset(::memfd_create("scripted", MFD_CLOEXEC));
  MILLRACE_CHECK(::ftruncate(segment_fd_.get(), static_cast<off_t>(size)) == 0);
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, segment_fd_.get(), 0);
  MILLRACE_CHECK(at != MAP_FAILED);
  segment_ = {static_cast<std::byte*>(at), size};
  const shm::SegmentHeader header{shm::kSegmentMagic,
                                  options_.segment_version,
                                  slots,
                                  size,
                                  slot_bytes,
                                  shm::slot_stride({slot_bytes}).count,
                                  shm::data_offset(slots).count,
                                  42,
                                  0};
  std::memcpy(at, &header, sizeof header);
  if (options_.filled_slots) fill(*options_.filled_slots);
}

void ScriptedDaemon::fill(std::uint32_t slots) {
  shm::SegmentHeader header{};
  std::memcpy(&header, segment_.data(), sizeof header);
  const std::uint64_t length = header.data_offset + slots * header.slot_stride;
  MILLRACE_CHECK(::ftruncate(segment_fd_.get(), static_cast<off_t>(length)) == 0);
}

v1::ServerMessage ScriptedDaemon::seal(std::uint64_t batch, std::uint32_t slot, std::uint64_t generation,
                                       std::uint32_t samples, std::uint64_t image_bytes) {
  shm::SegmentHeader header{};
  std::memcpy(&header, segment_.data(), sizeof header);
  const std::uint64_t offset = header.data_offset + slot * header.slot_stride;
  const std::uint64_t bytes = samples * image_bytes;
  const std::uint64_t records = offset + shm::records_offset({bytes}).count;
  for (std::uint32_t i = 0; i < samples; ++i) {
    std::memset(segment_.data() + offset + i * image_bytes, static_cast<int>(i), image_bytes);
    shm::SampleRecord record{};
    record.id = 100 + i;
    record.label = 7 + i;
    record.pixels_offset = offset + i * image_bytes;
    record.pixels_bytes = image_bytes;
    record.flags = i % 2 == 1 ? shm::kFlipped : 0;
    record.orientation = 6;
    record.source_width = 40;
    record.source_height = 30;
    std::strcpy(record.backend, "cpu");
    std::memcpy(segment_.data() + records + i * sizeof record, &record, sizeof record);
  }
  auto& at = *reinterpret_cast<shm::SlotHeader*>(segment_.data() + 64 + slot * 64);
  std::atomic_ref(at.generation).store(generation, std::memory_order_relaxed);
  std::atomic_ref(at.state).store(static_cast<std::uint32_t>(shm::SlotState::kSealed), std::memory_order_release);

  v1::ServerMessage message;
  auto& completed = *message.mutable_completed();
  completed.set_batch_id(batch);
  auto& handle = *completed.mutable_handle();
  handle.set_slot(slot);
  handle.set_generation(generation);
  handle.set_offset(offset);
  handle.set_bytes(bytes);
  handle.add_shape(samples);
  handle.add_shape(image_bytes);
  handle.add_strides(image_bytes);
  handle.add_strides(1);
  handle.set_dtype(v1::DTYPE_UINT8);
  handle.set_records_offset(records);
  handle.set_samples(samples);
  handle.set_sealed_at_ns(static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
  return message;
}

grpc::Status ScriptedDaemon::Open(grpc::ServerContext* call, const v1::OpenSessionRequest* request,
                                  v1::OpenSessionReply* answer) {
  if (!options_.knows_job && !request->job().empty())
    return {grpc::StatusCode::INVALID_ARGUMENT,
            "10: a field of OpenSessionRequest that millraced 0.0.9 does not know; update millraced, or do without it"};
  may_fill_later_ = call->client_metadata().contains(kSlotsLaterMetadata);
  make_segment(request->slots(), request->slot_bytes());
  answer->set_session_id(42);
  answer->set_daemon_version("0.0.9");
  if (options_.vocabulary) *answer->mutable_vocabulary() = *options_.vocabulary;
  if (options_.limits) *answer->mutable_limits() = *options_.limits;
  int ends[2] = {-1, -1};
  MILLRACE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd clients(ends[1]);
  MutexLock lock(mutex_);
  replies_.reset(ends[0]);
  const int descriptors[] = {segment_fd_.get(), clients.get()};
  reply(shm::ReplyKind::kSegment, descriptors, millrace::Bytes{segment_.size()});
  return grpc::Status::OK;
}

grpc::Status ScriptedDaemon::Stream(grpc::ServerContext*, Stream_* stream) {
  v1::ClientMessage message;
  if (!stream->Read(&message) || !message.has_attach())
    return {grpc::StatusCode::FAILED_PRECONDITION, "the first message must be attach"};
  v1::ServerMessage attached;
  attached.mutable_attached()->set_session_id(42);
  stream->Write(attached);
  UniqueFd requests;
  {
    MutexLock lock(mutex_);
    requests.reset(::fcntl(replies_.get(), F_DUPFD_CLOEXEC, 0));
  }
  while (std::optional<v1::ClientMessage> request = read_frame<v1::ClientMessage>(requests.get())) {
    MILLRACE_CHECK(messages_.try_push(*std::move(request)));
    MutexLock lock(mutex_);
    if (end_) return *end_;
  }
  return grpc::Status::OK;
}

void ScriptedDaemon::serve_handoff() {
  for (;;) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    {
      MutexLock lock(mutex_);
      connection_.reset(fd);
    }
    for (;;) {
      shm::HandoffRequest request{};
      ReceivedMessage message = receive_message(fd, std::as_writable_bytes(std::span(&request, 1)), 0);
      if (message.bytes <= 0) break;
      MutexLock lock(mutex_);
      if (request.kind == static_cast<std::uint32_t>(shm::RequestKind::kHello)) {
        reply(options_.refusal.empty() ? shm::ReplyKind::kWelcome : shm::ReplyKind::kRefused);
        continue;
      }
      if (request.kind == static_cast<std::uint32_t>(shm::RequestKind::kGoodbye)) continue;
      UniqueFd ring(::memfd_create("scripted-ring", MFD_CLOEXEC));
      MILLRACE_CHECK(::ftruncate(ring.get(), static_cast<off_t>(request.ring_bytes)) == 0);
      const int descriptor = ring.get();
      reply(shm::ReplyKind::kRing, {&descriptor, 1}, millrace::Bytes{request.ring_bytes});
      MILLRACE_CHECK(rings_.try_push(std::move(ring)));
    }
    if (!closed_.try_push(1)) return;
  }
}

void ScriptedDaemon::reply(shm::ReplyKind kind, std::span<const int> descriptors, millrace::Bytes size) {
  shm::HandoffReply answer{};
  answer.magic = shm::kHandoffMagic;
  answer.version = options_.handoff_version;
  answer.kind = static_cast<std::uint32_t>(kind);
  answer.code = static_cast<std::uint32_t>(Code::kExhausted);
  answer.segment_bytes = size.count;
  std::strncpy(answer.message, options_.refusal.c_str(), sizeof answer.message - 1);
  MILLRACE_CHECK(send_message(connection_.get(), std::as_bytes(std::span(&answer, 1)), descriptors) >= 0);
}

}  // namespace millrace::test
