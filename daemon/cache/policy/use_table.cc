#include "daemon/cache/policy/use_table.h"

#include <algorithm>
#include <map>
#include <utility>

namespace millrace {

class UseTable::Use final : public DatasetUse {
 public:
  Use(UseTable& table, const Dataset& dataset) : table_(table) {
    ReuseForecast::Session session{
        .listing = member_of(dataset, SampleId{0}).listing, .dataset_samples = dataset.samples(), .reached = reached_};
    MutexLock lock(table_.mutex_);
    row_ = table_.rows_.insert(table_.rows_.end(), Row{dataset.number(), std::move(session)});
  }
  ~Use() override {
    MutexLock lock(table_.mutex_);
    table_.rows_.erase(row_);
    table_.publish();
  }

  void epoch_begun(EpochBegun epoch, double now) override {
    MutexLock lock(table_.mutex_);
    ReuseForecast::Session& session = row_->session;
    if (session.epochs > 0) {
      note_end(session, now);  // of one that was broken off by this one
      session.gap = std::max(now - session.ended, 0.0);
    }
    // Another counter than before: who still looks at the old one sees the old epoch whole.
    reached_ = std::make_shared<std::atomic<std::uint64_t>>(epoch.reached);
    session.reached = reached_;
    session.rank = epoch.order.rank;
    session.world = std::max(epoch.order.world_size, 1U);
    session.samples = std::max<std::uint64_t>(epoch.samples, 1);
    session.now = std::move(epoch.positions);
    session.next = std::move(epoch.next);
    session.first = epoch.reached;
    session.begun = now;
    session.ended = -1;
    ++session.epochs;
    table_.publish();
  }
  void foreseen(std::shared_ptr<const EpochPositions> next) override {
    MutexLock lock(table_.mutex_);
    row_->session.next = std::move(next);
    table_.publish();
  }
  void reached(std::uint64_t samples) override { reached_->store(samples, std::memory_order_relaxed); }
  void epoch_ended(double now) override {
    MutexLock lock(table_.mutex_);
    note_end(row_->session, now);
    table_.publish();
  }

 private:
  void note_end(ReuseForecast::Session& session, double now) {
    if (session.epochs == 0 || session.ended >= 0) return;
    session.ended = std::max(now, 0.0);
    const double done = static_cast<double>(reached_->load() - session.first);
    if (done > 0 && now > session.begun) session.speed_before = done / (now - session.begun);
  }

  UseTable& table_;
  std::shared_ptr<std::atomic<std::uint64_t>> reached_ = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::list<Row>::iterator row_;
};

std::unique_ptr<DatasetUse> UseTable::begin(const Dataset& dataset) {
  return std::make_unique<Use>(*this, dataset);
}

std::shared_ptr<const ReuseForecast> UseTable::forecast() const {
  MutexLock lock(mutex_);
  return forecast_;
}

// Uses without an epoch so far say nothing.
void UseTable::publish() {
  std::map<DatasetNumber, ReuseForecast::InUse> datasets;
  for (const Row& row : rows_) {
    if (row.session.epochs == 0 || row.dataset == DatasetNumber::kNone) continue;
    ReuseForecast::InUse& use = datasets[row.dataset];
    use.dataset = row.dataset;
    use.sessions.push_back(row.session);
  }
  std::vector<ReuseForecast::InUse> all;
  for (auto& [number, use] : datasets) all.push_back(std::move(use));
  forecast_ = std::make_shared<const ReuseForecast>(std::move(all));
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace millrace
