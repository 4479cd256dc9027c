#include "client/src/session_core.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "client/src/wire/daemon_channel.h"
#include "client/src/wire/deadline.h"
#include "client/src/wire/handoff_connection.h"
#include "client/src/wire/request_limits.h"
#include "proto/base/printable.h"
#include "proto/base/result.h"
#include "proto/rpc/batch_choices_message.h"
#include "proto/rpc/recipe_message.h"

namespace millrace {
inline namespace client {
namespace {

// What a daemon that was just ending did not grant is asked for again: where a service manager keeps its sockets open,
// the next connection waits there for the next daemon. Where nobody listens any more this costs a refused connect().
// What `ask()` returns. kUnavailable: it is asked again, twice at most and until `deadline`, and if that does not help
// the first error says what happened. Waits for nothing itself.
template <class Ask>
auto asked_again(Deadline deadline, Ask ask) -> decltype(ask()) {
  constexpr int kMostAgain = 2;
  auto first = ask();
  for (int again = 0; again < kMostAgain; ++again) {
    if (first || first.error().code != Code::kUnavailable || time_left(deadline).count() == 0) break;
    auto next = ask();
    if (next || next.error().code != Code::kUnavailable) return next;
  }
  return first;
}

Result<Bytes> slot_bytes_of(const SessionOptions& options) {
  if (options.slot_bytes.count != 0) return options.slot_bytes;
  if (options.batch == 0) return Error{Code::kInvalid, "SessionOptions.batch: must be at least 1, is 0"};
  if (const auto computed = slot_bytes_for(options.recipe, options.batch)) return *computed;
  return Error{Code::kInvalid,
               "SessionOptions.slot_bytes: must be given, because the recipe leaves the images' sizes open; "
               "allow for the batch's pixels and " +
                   to_text(shm::kMostBesidePixels) + " an image"};
}

// The next daemon knows no ticket of this one.
Error ended_meanwhile(const Address& address, const Error& why) {
  return turned_down(address, "millraced has ended while the session was opened: " + why.message);
}

// Before its memory is asked for: the daemon charges that until the process that was given it has ended, used or not.
Result<void> look_for_gpu(const DaemonChannel& channel, const std::string& memory, Deadline deadline) {
  MILLRACE_TRY(const std::vector<Device> devices, channel.devices(deadline));
  for (const Device& device : devices) {
    if (device.backend != memory) continue;
    for (const DeviceProperty& property : device.properties) {
      const auto uuid = property.name == "uuid" ? cuda::uuid_from_text(property.value) : std::nullopt;
      if (uuid) MILLRACE_TRY_VOID(VisibleGpu::find(*uuid));
    }
  }
  return {};  // the daemon says what it thinks of other names
}

Result<void> receive_memory(Holding& holding, const v1::OpenSessionReply& reply, const std::string& memory,
                            Deadline deadline) {
  cuda::Uuid uuid{};
  if (reply.memories_size() == 0)
    return Error{
        Code::kUnsupported,
        "SessionOptions.memory: the daemon is older and has no memory but the host's to give; install libmillrace "
        "and millraced of the same version"};
  if (reply.memories_size() != 2 || reply.memories(1).name() != memory ||
      reply.memories(1).device().size() != uuid.size())
    return Error{Code::kInternal, "the daemon opened the session without the memory " + printable(memory) +
                                      "; please report it with the daemon's version"};
  std::memcpy(uuid.data(), reply.memories(1).device().data(), uuid.size());
  MILLRACE_TRY(const VisibleGpu gpu, VisibleGpu::find(uuid));
  return holding.receive_memory(gpu, Bytes{reply.memories(1).bytes()}, deadline);
}

constexpr std::chrono::microseconds kLookAgain{500};  // how long a slot that the GPU has done with may wait

// Whether daemons that look at no recipe when a session is opened can make it; they refuse a message that has one.
bool is_of_first_daemons(const Recipe& recipe) {
  const bool is_drawn = std::holds_alternative<ScaleJitter>(recipe.resize) ||
                        std::holds_alternative<RandomShorterSide>(recipe.resize) || !recipe.random_filters.empty();
  return !is_augmented(recipe) && !is_drawn && recipe.views.empty() && !recipe.pad && !recipe.indices &&
         recipe.crop_place == CropPlace::kCentre;
}

// Empty: the daemon takes the name.
std::string job_of(const SessionOptions& options) {
  if (!options.job.empty()) return options.job;
  const char* const job = std::getenv("MILLRACE_JOB");
  return job == nullptr ? "" : job;
}

// An older daemon refuses the field by its number. Then it keeps no costs, and the session is opened without.
bool knows_no_job(const Error& refusal) {
  static const std::string kRefused =
      std::to_string(v1::OpenSessionRequest::kJobFieldNumber) + ": a field of OpenSessionRequest that";
  return refusal.code == Code::kInvalid && refusal.message.find(kRefused) != std::string::npos;
}

// An older daemon would refuse the release.
bool knows_waits(const DaemonKnowledge& daemon) {
  v1::ClientMessage message;
  message.mutable_release()->set_waited_ns(0);
  return daemon.check(message).has_value();
}

}  // namespace

Result<std::shared_ptr<SessionCore>> SessionCore::open(const Address& address, const SessionOptions& options) {
  const Deadline deadline = deadline_after(options.timeout);
  MILLRACE_TRY(const Bytes slot_bytes, slot_bytes_of(options));
  return asked_again(deadline, [&] { return open_once(address, options, slot_bytes, deadline); });
}

Result<std::shared_ptr<SessionCore>> SessionCore::open_once(const Address& address, const SessionOptions& options,
                                                            Bytes slot_bytes, Deadline deadline) {
  MILLRACE_TRY(HandoffConnection connection, HandoffConnection::open(address, deadline));
  const std::string ticket = connection.ticket();
  const DaemonChannel channel(address);
  v1::OpenSessionRequest request;
  request.set_ticket(ticket);
  request.set_name(options.name);
  request.set_job(job_of(options));
  request.set_slots(options.slots);
  request.set_slot_bytes(slot_bytes.count);
  if (options.cache != CacheUse::kTensors) request.set_cache(to_message(options.cache));
  if (options.cache_at_once) request.set_cache_at_once(true);
  if (!is_of_first_daemons(options.recipe)) *request.mutable_recipe() = to_message(options.recipe);
  const bool is_on_gpu = !options.memory.empty() && options.memory != kHostMemory;
  if (is_on_gpu) {
    request.set_memory(options.memory);
    request.set_samples(options.batch);
    MILLRACE_TRY_VOID(look_for_gpu(channel, options.memory, deadline));
  }
  Result<v1::OpenSessionReply> opened = channel.open(request, deadline);
  if (!opened && !request.job().empty() && knows_no_job(opened.error())) {
    request.clear_job();
    opened = channel.open(request, deadline);
  }
  if (!opened && connection.has_ended()) return ended_meanwhile(address, opened.error());
  MILLRACE_TRY(const v1::OpenSessionReply reply, opened);
  MILLRACE_TRY(DaemonKnowledge knowledge, DaemonKnowledge::create(reply));
  MILLRACE_TRY(std::shared_ptr<Holding> holding, Holding::receive(std::move(connection), deadline));
  if (is_on_gpu) MILLRACE_TRY_VOID(receive_memory(*holding, reply, options.memory, deadline));
  UniqueFd replies = holding->take_replies();
  UniqueFd requests(::fcntl(replies.get(), F_DUPFD_CLOEXEC, 0));
  if (!requests) return errno_error("open_session: a second descriptor of the reply socket", errno);
  auto wire = std::make_shared<Wire>(channel, std::move(replies), std::move(requests));
  std::shared_ptr<SessionCore> core(new SessionCore(address, std::move(holding), options, std::move(knowledge),
                                                    from_message(reply.limits()), Bytes{reply.slot_bytes()},
                                                    std::move(wire)));
  const Result<void> attached = core->attach(ticket, deadline);
  const bool cut_off = !attached && (attached.error().code == Code::kCancelled || core->holding().has_ended());
  if (cut_off) return ended_meanwhile(address, attached.error());
  MILLRACE_TRY_VOID(attached);
  return core;
}

SessionCore::SessionCore(Address address, std::shared_ptr<Holding> holding, const SessionOptions& options,
                         DaemonKnowledge knowledge, const RequestLimits& limits, Bytes slot_bytes,
                         std::shared_ptr<Wire> wire)
    : address_(std::move(address)),
      recipe_(options.recipe),
      batch_(options.batch),
      knowledge_(std::move(knowledge)),
      knows_waits_(knows_waits(knowledge_)),
      limits_(limits),
      slot_bytes_(slot_bytes),
      holding_(std::move(holding)),
      wire_(std::move(wire)),
      inbox_(std::make_shared<Inbox>(holding_, wire_)) {}

Result<void> SessionCore::send(v1::ClientMessage message, std::span<const LargeImage> images) {
  MILLRACE_TRY_VOID(knowledge_.check(message));
  look_at_device();
  wire_->send(std::move(message), images);
  return {};
}

void SessionCore::note_wait(Result<Batch>& taken, std::chrono::nanoseconds waited) {
  note_wait(taken ? &*taken : nullptr, taken ? nullptr : &taken.error(), waited);
}

void SessionCore::note_wait(Result<std::optional<Batch>>& taken, std::chrono::nanoseconds waited) {
  note_wait(taken && *taken ? &**taken : nullptr, taken ? nullptr : &taken.error(), waited);
}

void SessionCore::note_wait(Batch* taken, const Error* why_not, std::chrono::nanoseconds waited) {
  if (why_not != nullptr && why_not->code == Code::kDeadline)
    waited_without_batch_.fetch_add(waited.count(), std::memory_order_relaxed);
  if (taken == nullptr || !taken->tensor.valid()) return;  // a failed one has no release that says so
  waited += std::chrono::nanoseconds(waited_without_batch_.exchange(0, std::memory_order_relaxed));
  if (knows_waits_) taken->tensor.set_waited(waited);
}

std::optional<Error> SessionCore::ended() const {
  if (auto ended = wire_->ended()) return ended;
  const DeviceMemory* const device = holding_->device();
  return device == nullptr ? std::nullopt : device->failure();
}

Deadline SessionCore::look_at_device() {
  DeviceMemory* const device = holding_->device();
  const bool is_waiting = device != nullptr && device->look();
  return is_waiting ? std::chrono::steady_clock::now() + kLookAgain : Deadline::max();
}

Result<void> SessionCore::attach(const std::string& ticket, Deadline deadline) {
  wire_->start(ticket, [inbox = inbox_](v1::ServerMessage& arrived) { inbox->deliver(arrived); });
  MILLRACE_TRY(id_, wait(deadline, "open_session", [this] { return inbox_->attached(); }));
  return {};
}

}  // namespace client
}  // namespace millrace
