#include "daemon/serve/parse/dataset_table.h"

#include <string>
#include <utility>

#include "proto/rpc/field.h"

namespace millrace {

Result<void> DatasetTable::reserve(DatasetId id) {
  MutexLock lock(mutex_);
  if (entries_.contains(id)) {
    return field_error("dataset_id", std::to_string(raw(id)) +
                                         " is taken, or its listing has not ended yet; give every dataset its own");
  }
  MILLRACE_TRY(Charge charge, account_->charge(Resource::kDatasets, 1));
  entries_.emplace(id, Entry{.charge = std::move(charge)});
  ++listed_now_;
  return {};
}

bool DatasetTable::fill(DatasetId id, std::shared_ptr<const Dataset> dataset) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  MILLRACE_CHECK(found != entries_.end() && !found->second.dataset);
  if (found->second.unwanted) {
    entries_.erase(found);
    return false;
  }
  found->second.dataset = std::move(dataset);
  --listed_now_;
  return true;
}

bool DatasetTable::drop(DatasetId id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  MILLRACE_CHECK(found != entries_.end() && !found->second.dataset);
  const bool wanted = !found->second.unwanted;
  if (wanted) --listed_now_;
  entries_.erase(found);
  return wanted;
}

DatasetTable::Closed DatasetTable::close(DatasetId id) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.unwanted) return Closed::kUnknown;
  if (!found->second.dataset) {
    found->second.unwanted = true;
    --listed_now_;
    return Closed::kWhileListed;
  }
  entries_.erase(found);
  return Closed::kOpen;
}

void DatasetTable::clear() {
  std::map<DatasetId, Entry> gone;  // goes outside the lock
  MutexLock lock(mutex_);
  gone.swap(entries_);
  listed_now_ = 0;
}

std::size_t DatasetTable::listed_now() const {
  MutexLock lock(mutex_);
  return listed_now_;
}

Result<std::shared_ptr<const Dataset>> DatasetTable::find(DatasetId id) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.dataset || found->second.unwanted) {
    return Error{Code::kNotFound, "dataset_id: no dataset " + std::to_string(raw(id)) +
                                      " is open in this session; send OpenDataset and wait for DatasetOpened"};
  }
  return found->second.dataset;
}

}  // namespace millrace
