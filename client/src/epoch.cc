#include "millrace/epoch.h"

#include <algorithm>

#include "client/src/given_order.h"
#include "client/src/session_core.h"

namespace millrace {
inline namespace client {

namespace {

void add_files(v1::SampleFiles& answer, std::vector<SampleFile>& files) {
  constexpr std::uint64_t kWhole = ~std::uint64_t{0};
  const bool has_ranges = answer.offsets_size() == answer.paths_size() && answer.lengths_size() == answer.paths_size();
  for (int i = 0; i < answer.paths_size(); ++i) {
    files.push_back({std::move(*answer.mutable_paths(i))});
    if (has_ranges && answer.lengths(i) != kWhole) files.back().range = FileRange{answer.offsets(i), answer.lengths(i)};
  }
}

}  // namespace

Dataset::Dataset(Dataset&&) noexcept = default;

Dataset& Dataset::operator=(Dataset&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(id_, other.id_);
  std::swap(samples_, other.samples_);
  std::swap(classes_, other.classes_);
  std::swap(fingerprint_, other.fingerprint_);
  std::swap(skipped_files_, other.skipped_files_);
  std::swap(skipped_, other.skipped_);
  return *this;
}

Dataset::~Dataset() {
  if (!core_) return;
  v1::ClientMessage message;
  message.mutable_close_dataset()->set_dataset_id(id_);
  core_->wire().send(std::move(message));
}

Result<std::vector<std::string>> Dataset::files_of(std::span<const std::uint64_t> samples,
                                                   std::chrono::milliseconds timeout) const {
  MILLRACE_TRY(std::vector<SampleFile> parts, parts_of(samples, timeout));
  std::vector<std::string> files;
  for (SampleFile& part : parts) files.push_back(std::move(part.path));
  return files;
}

Result<std::vector<SampleFile>> Dataset::parts_of(std::span<const std::uint64_t> samples,
                                                  std::chrono::milliseconds timeout) const {
  constexpr std::uint32_t kToOlder = 1;  // daemons, which refuse the question
  const std::size_t most = std::max(core_->limits().files_named.value_or(kToOlder), 1U);
  std::vector<SampleFile> files;
  for (std::size_t at = 0; at < samples.size(); at += most) {
    const auto some = samples.subspan(at, std::min(most, samples.size() - at));
    const std::uint64_t question = core_->fresh_number();
    v1::ClientMessage message;
    message.mutable_name_files()->set_question_id(question);
    message.mutable_name_files()->set_dataset_id(id_);
    message.mutable_name_files()->mutable_samples()->Add(some.begin(), some.end());
    Inbox& inbox = core_->inbox();
    inbox.expect_files(question);
    Result<void> sent = core_->send(std::move(message));
    if (!sent) return inbox.forget_files(question), std::move(sent).error();
    auto answer = core_->wait(deadline_after(timeout), "files_of", [&] { return inbox.take_files(question); });
    if (!answer) return inbox.forget_files(question), std::move(answer).error();
    add_files(*answer, files);
  }
  return files;
}

Epoch::Epoch() = default;
Epoch::Epoch(Epoch&&) noexcept = default;

Epoch& Epoch::operator=(Epoch&& other) noexcept {
  if (this == &other) return *this;
  stop();
  core_ = std::move(other.core_);
  stream_ = other.stream_;
  timeout_ = other.timeout_;
  position_ = std::move(other.position_);
  bad_ = other.bad_;
  order_ = std::move(other.order_);
  current_ = std::move(other.current_);
  result_ = std::move(other.result_);
  return *this;
}

Epoch::~Epoch() {
  stop();
}

Result<EpochShape> Epoch::shape(std::chrono::milliseconds timeout) {
  return core_->wait(deadline_after(timeout), "epoch", [this] { return core_->inbox().epoch_shape(stream_); });
}

Result<std::optional<Batch>> Epoch::next(std::chrono::milliseconds timeout) {
  if (order_) {
    if (Result<void> more = order_->top_up(*core_); !more) return std::move(more).error();
  }
  auto batch =
      core_->wait_for_batch(deadline_after(timeout), "epoch", [this] { return core_->inbox().take_of_epoch(stream_); });
  if (order_ && batch && *batch) order_->taken();
  if (batch && *batch && !(*batch)->position.empty()) position_ = (*batch)->position;
  if (batch && *batch && !(*batch)->failure) bad_ += (*batch)->bad;
  return batch;
}

void Epoch::stop() noexcept {
  if (!core_) return;
  core_->inbox().forget_epoch(stream_);
  v1::ClientMessage message;
  message.mutable_stop_epoch()->set_stream_id(stream_);
  core_->wire().send(std::move(message));
}

void Epoch::advance() {
  current_.reset();  // its slot is needed for what comes
  auto batch = next(timeout_);
  if (!batch) {
    result_ = std::move(batch).error();
  } else if (*batch && (*batch)->failure) {
    result_ = std::move(*(*batch)->failure);
  } else {
    current_ = *std::move(batch);
  }
}

}  // namespace client
}  // namespace millrace
