#include "millrace/session.h"

#include <algorithm>

#include "client/src/file_list.h"
#include "client/src/given_order.h"
#include "client/src/part_list.h"
#include "client/src/ring.h"
#include "client/src/session_core.h"
#include "client/src/wire/daemon_channel.h"
#include "client/src/wire/messages.h"
#include "client/src/wire/request_limits.h"
#include "proto/rpc/skipped_files_message.h"

namespace millrace {
inline namespace client {
namespace {

constexpr std::size_t kUnsentMost = 4096;        // messages that the daemon was too slow to take
constexpr std::uint64_t kListedAhead = 100'000;  // files of a list that were sent and that the daemon has not taken yet
constexpr std::size_t kPartsOfMessage = 4;       // of what a message may have, a list's paths take one part in so many
constexpr std::uint32_t kGivenAhead = 8;         // batches of an epoch's own order that the daemon should know of

Result<void> check_paths(const BatchRequest& request) {
  for (const Sample& sample : request.samples) {
    if (const auto* path = std::get_if<Path>(&sample.source)) MILLRACE_TRY_VOID(check_no_url(path->path));
    if (const auto* part = std::get_if<FilePart>(&sample.source)) {
      MILLRACE_TRY_VOID(check_no_url(part->path));
      MILLRACE_TRY_VOID(check_range(part->offset, part->length));
    }
  }
  return {};
}

Result<void> check_listed(const ListedFile& file) {
  MILLRACE_TRY_VOID(check_no_url(file.path));
  if (file.path.starts_with('/') && file.path.find('\0') == file.path.npos) return {};
  return Error{Code::kInvalid, "a path must be absolute and without a zero byte; one is not"};
}

std::vector<RingRoom> rooms_of(const BatchRequest& request) {
  std::vector<RingRoom> rooms;
  for (const Sample& sample : request.samples) {
    if (const auto* room = std::get_if<RingRoom>(&sample.source)) rooms.push_back(*room);
  }
  return rooms;
}

}  // namespace

Session::Session(std::shared_ptr<SessionCore> core) : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Ticket> Session::submit(BatchRequest request) {
  MILLRACE_TRY_VOID(check_samples(request, core_->limits()));
  if (const Result<void> paths = check_paths(request); !paths) return paths.error().within("submit");
  if (auto ended = core_->ended()) return *std::move(ended);
  if (core_->wire().unsent() >= kUnsentMost)
    return Error{Code::kExhausted,
                 "submit: the daemon does not take messages any faster; take batches with next() between submits"};
  const Ticket ticket{core_->fresh_number()};
  v1::ClientMessage message;
  *message.mutable_submit() = to_message(ticket.batch, request, core_->recipe());
  const std::vector<LargeImage> images = large_images(request);
  MILLRACE_TRY_VOID(check_message(message, images, core_->limits()));
  core_->inbox().expect_batch(ticket.batch, rooms_of(request));
  if (Result<void> sent = core_->send(std::move(message), images); !sent) {
    core_->inbox().forget_batch(ticket.batch);
    return std::move(sent).error();
  }
  return ticket;
}

void Session::cancel(Ticket ticket) noexcept {
  v1::ClientMessage message;
  message.mutable_cancel()->set_batch_id(ticket.batch);
  core_->wire().send(std::move(message));
}

Result<Batch> Session::next(std::chrono::milliseconds timeout) {
  return core_->wait_for_batch(deadline_after(timeout), "next", [this] { return core_->inbox().take_oldest(); });
}

Result<Batch> Session::wait(Ticket ticket, std::chrono::milliseconds timeout) {
  return core_->wait_for_batch(deadline_after(timeout), "wait", [&] { return core_->inbox().take(ticket.batch); });
}

Result<Dataset> Session::open_dataset(const std::string& folder, const DatasetOptions& options) {
  if (const Result<void> path = check_no_url(folder); !path) return path.error().within("open_dataset");
  const std::uint64_t id = core_->fresh_number();
  v1::ClientMessage message;
  MILLRACE_TRY(*message.mutable_open_dataset(), to_message(id, folder, options));
  Inbox& inbox = core_->inbox();
  inbox.expect_dataset(id);
  if (Result<void> sent = core_->send(std::move(message)); !sent)
    return inbox.forget_dataset(id), std::move(sent).error();
  return opened_dataset(id, options, deadline_after(options.timeout));
}

Result<Dataset> Session::open_files(std::span<const ListedFile> files, const DatasetOptions& options) {
  if (files.empty()) return Error{Code::kInvalid, "open_files: the list is empty"};
  for (const ListedFile& file : files) {
    if (const Result<void> checked = check_listed(file); !checked) return checked.error().within("open_files");
  }
  if (std::ranges::any_of(files, needs_parts)) {
    return open_parts(
        common_folder(files),
        [&files, at = std::size_t{0}]() mutable -> Result<std::optional<ListedFile>> {
          return at == files.size() ? std::nullopt : std::optional(files[at++]);
        },
        options);
  }
  const std::uint64_t id = core_->fresh_number();
  const Deadline deadline = deadline_after(options.timeout);
  const std::string folder = common_folder(files);
  core_->inbox().expect_dataset(id);
  for (std::size_t at = 0; at < files.size();) {
    v1::ClientMessage message;
    *message.mutable_list_files() = next_part(id, files, folder, core_->limits().message.count / kPartsOfMessage, at);
    Result<void> sent = core_->send(std::move(message));
    if (sent && at < files.size()) sent = wait_for_list(id, at, deadline);
    if (!sent) return give_up_list(id), std::move(sent).error();
  }
  return opened_dataset(id, options, deadline);
}

Result<Dataset> Session::open_list(const NextFile& next, const DatasetOptions& options) {
  const auto checked = [&next]() -> Result<std::optional<ListedFile>> {
    MILLRACE_TRY(std::optional<ListedFile> file, next());
    if (!file) return file;
    if (const Result<void> listed = check_listed(*file); !listed) return listed.error().within("open_list");
    return file;
  };
  return open_parts("/", checked, options);
}

// `next`: files whose paths were checked, beneath `folder`.
Result<Dataset> Session::open_parts(const std::string& folder, const NextFile& next, const DatasetOptions& options) {
  const std::uint64_t id = core_->fresh_number();
  const Deadline deadline = deadline_after(options.timeout);
  const std::size_t bytes = core_->limits().message.count / kPartsOfMessage;
  PartList list(id, folder);
  bool is_begun = false;  // the daemon has heard of it
  core_->inbox().expect_dataset(id);
  const auto given_up = [&](Error why) {
    is_begun ? give_up_list(id) : core_->inbox().forget_dataset(id);
    return why;
  };
  for (bool last = false; !last;) {
    Result<std::optional<ListedFile>> file = next();
    if (!file) return given_up(std::move(file).error());
    last = !*file;
    if (const Result<void> added = last ? Result<void>() : list.add(**file); !added)
      return given_up(added.error().within("sample " + std::to_string(list.samples())));
    if (last && list.samples() == 0) return given_up({Code::kInvalid, "the list is empty"});
    if (!last && list.bytes() < bytes) continue;
    v1::ClientMessage message;
    *message.mutable_list_parts() = list.take(last);
    Result<void> sent = core_->send(std::move(message));
    is_begun = is_begun || sent.has_value();
    if (sent && !last) sent = wait_for_list(id, list.samples(), deadline);
    if (!sent) return given_up(std::move(sent).error());
  }
  return opened_dataset(id, options, deadline);
}

// Until the daemon has taken most of it, or has answered.
Result<void> Session::wait_for_list(std::uint64_t id, std::uint64_t sent,
                                    std::chrono::steady_clock::time_point deadline) {
  const auto waited = core_->wait(deadline, "open_files", [&]() -> std::optional<Result<bool>> {
    Inbox& inbox = core_->inbox();
    if (inbox.dataset_files(id) + kListedAhead >= sent || inbox.is_answered(id)) return Result<bool>(true);
    return std::nullopt;
  });
  return waited ? Result<void>() : Result<void>(waited.error());
}

// What the daemon has of it goes.
void Session::give_up_list(std::uint64_t id) {
  core_->inbox().forget_dataset(id);
  v1::ClientMessage message;
  message.mutable_close_dataset()->set_dataset_id(id);
  core_->wire().send(std::move(message));
}

Result<Dataset> Session::opened_dataset(std::uint64_t id, const DatasetOptions& options,
                                        std::chrono::steady_clock::time_point deadline) {
  Inbox& inbox = core_->inbox();
  std::uint64_t told = 0;
  auto opened = core_->wait(deadline, "open_dataset", [&] {
    const std::uint64_t files = inbox.dataset_files(id);
    if (options.progress && files > told) options.progress(told = files);
    return inbox.take_dataset(id);
  });
  Dataset dataset;
  dataset.core_ = core_;
  dataset.id_ = id;
  if (!opened) return inbox.forget_dataset(id), std::move(opened).error();  // and closes it, should it still open
  dataset.samples_ = opened->samples();
  dataset.classes_.assign(opened->classes().begin(), opened->classes().end());
  dataset.fingerprint_ = opened->fingerprint();
  dataset.skipped_files_ = opened->skipped_files();
  for (const v1::SkippedFiles& group : opened->skipped()) dataset.skipped_.push_back(millrace::from_message(group));
  return dataset;
}

Epoch Session::epoch(const Dataset& dataset, const EpochOptions& options) {
  Epoch epoch;
  epoch.core_ = core_;
  epoch.stream_ = core_->fresh_number();
  epoch.timeout_ = options.timeout;
  epoch.position_ = options.position;
  if (options.order)
    epoch.order_ = std::make_unique<GivenOrder>(options.order, epoch.stream_, std::max(kGivenAhead, 2 * slots()));
  core_->inbox().expect_epoch(epoch.stream_);
  if (dataset.core_ != core_) {  // which numbers its own
    core_->inbox().fail_epoch(epoch.stream_,
                              {Code::kInvalid, "epoch: the dataset is of another session; open it in this one"});
    return epoch;
  }
  v1::ClientMessage message;
  *message.mutable_start_epoch() = to_message(epoch.stream_, dataset.id(), options, core_->recipe(), core_->batch());
  if (Result<void> sent = core_->send(std::move(message)); !sent)
    core_->inbox().fail_epoch(epoch.stream_, std::move(sent).error());
  return epoch;
}

Result<InputRing> Session::open_ring(Bytes size, std::chrono::milliseconds timeout) {
  MILLRACE_TRY(const Bytes pages, whole_pages(size));
  MILLRACE_TRY(const UniqueFd memfd, core_->holding().request_ring(pages, deadline_after(timeout)));
  MILLRACE_TRY(std::shared_ptr<InputRing::Shared> ring, InputRing::Shared::map(memfd.get(), pages));
  return InputRing(std::move(ring));
}

Result<std::optional<Cost>> Session::cost(std::chrono::milliseconds timeout) {
  if (const std::optional<Error> ended = core_->ended()) return *ended;
  MILLRACE_TRY(const Statistics statistics, DaemonChannel(core_->address()).statistics(deadline_after(timeout)));
  for (const SessionStatistics& session : statistics.sessions)
    if (session.id == id()) return session.cost;
  return Error{Code::kUnavailable, "cost: the daemon has no such session any more"};
}

std::uint64_t Session::id() const noexcept {
  return core_->id();
}
std::uint32_t Session::slots() const noexcept {
  return core_->holding().slots();
}
Bytes Session::slot_bytes() const noexcept {
  return core_->slot_bytes();
}
const RequestLimits& Session::limits() const noexcept {
  return core_->limits();
}

}  // namespace client
}  // namespace millrace
