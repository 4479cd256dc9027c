// Which datasets are in use: the sessions tell it, the cache's policy asks. Thread-safe. A ReuseForecast that was handed out
// stays as it is; the next question gets a newer one.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>

#include "daemon/cache/policy/reuse_forecast.h"
#include "daemon/model/files/dataset_use.h"
#include "proto/base/mutex.h"

namespace millrace {

class UseTable : public DatasetUses {
 public:
  std::unique_ptr<DatasetUse> begin(const Dataset& dataset) override;

  std::shared_ptr<const ReuseForecast> forecast() const;  // not null; a short lock
  // Another one than before says that forecast() is another, too; no lock.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  class Use;
  struct Row {
    DatasetNumber dataset;
    ReuseForecast::Session session;
  };

  void publish() MILLRACE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::list<Row> rows_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const ReuseForecast> forecast_ MILLRACE_GUARDED_BY(mutex_) = std::make_shared<const ReuseForecast>();
  std::atomic<std::uint64_t> version_{0};
};

}  // namespace millrace
