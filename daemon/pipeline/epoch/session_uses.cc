#include "daemon/pipeline/epoch/session_uses.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// `before`: nullptr if there was none.
std::optional<EpochOrderSpec> expected_after(const EpochBegun& epoch, const EpochOrderSpec* before) {
  EpochOrderSpec next = epoch.order;
  const bool resumed = before != nullptr && epoch.reached > 0 && before->epoch == next.epoch;
  if (before == nullptr || resumed) {
    ++next.epoch;
    return next;
  }
  if (before->seed != next.seed) return std::nullopt;  // a seed of its own for each
  next.epoch += next.epoch - before->epoch;
  return next;
}

}  // namespace

std::optional<EpochOrderSpec> SessionUses::begin(EpochStreamId stream, const Dataset& dataset, EpochBegun epoch,
                                                 double now, std::shared_ptr<const Charge> charge) {
  if (uses_ == nullptr || dataset.number() == DatasetNumber::kNone) return std::nullopt;
  const auto same = [&](const Row& row) {
    return !row.running && row.dataset == dataset.number() && row.fingerprint == dataset.fingerprint();
  };
  auto row = std::find_if(rows_.begin(), rows_.end(), same);
  const bool again = row != rows_.end();
  if (again) {
    std::rotate(row, row + 1, rows_.end());
  } else {
    const auto idle = std::find_if(rows_.begin(), rows_.end(), [](const Row& other) { return !other.running; });
    if (rows_.size() >= kMost && idle != rows_.end()) rows_.erase(idle);
    rows_.push_back(Row{dataset.number(), dataset.fingerprint(), nullptr, uses_->begin(dataset), {}, {}});
  }
  Row& mine = rows_.back();
  const std::optional<EpochOrderSpec> next = expected_after(epoch, again ? &mine.order : nullptr);
  mine.running = stream;
  mine.order = epoch.order;
  mine.use->epoch_begun(std::move(epoch), now);
  mine.charge = std::move(charge);  // the last one's positions are let go by then
  return next;
}

void SessionUses::foreseen(EpochStreamId stream, std::shared_ptr<const EpochPositions> next) {
  if (Row* row = find(stream)) row->use->foreseen(std::move(next));
}

void SessionUses::reached(EpochStreamId stream, std::uint64_t samples) {
  if (Row* row = find(stream)) row->use->reached(samples);
}

void SessionUses::ended(EpochStreamId stream, double now) {
  Row* row = find(stream);
  if (row == nullptr) return;
  row->use->epoch_ended(now);
  row->running.reset();
}

SessionUses::Row* SessionUses::find(EpochStreamId stream) {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const Row& row) { return row.running == stream; });
  return found == rows_.end() ? nullptr : &*found;
}

}  // namespace millrace
