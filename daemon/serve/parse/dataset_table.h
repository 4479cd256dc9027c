// The datasets that a session has open, by the id that the client chose. Listing takes a while, so an id is reserved
// first and filled later.
//
//   reserve() ──▶ listed ──fill()──▶ open ──close()──▶ (free)
//                   └─close()─▶ unwanted ──fill(), drop()──▶ (free)        the id stays taken until its listing is done
//
// Thread-safe: the control thread changes it, parsing threads look datasets up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "daemon/admit/ledger.h"
#include "daemon/model/files/dataset.h"
#include "proto/base/ids.h"
#include "proto/base/mutex.h"
#include "proto/base/result.h"

namespace millrace {

class DatasetTable {
 public:
  enum class Closed : std::uint8_t { kUnknown, kWhileListed, kOpen };

  // Each is charged to `account`, those being listed included. Null: a table that stays empty.
  explicit DatasetTable(std::shared_ptr<Account> account) : account_(std::move(account)) {}

  // kInvalid: the id is taken. kExhausted: the account has no room. REQUIRES: an account.
  Result<void> reserve(DatasetId id) MILLRACE_EXCLUDES(mutex_);

  // The listing is done, well or not. false: closed meanwhile, nobody wants it. REQUIRES: reserved, listed until now.
  [[nodiscard]] bool fill(DatasetId id, std::shared_ptr<const Dataset> dataset) MILLRACE_EXCLUDES(mutex_);
  [[nodiscard]] bool drop(DatasetId id) MILLRACE_EXCLUDES(mutex_);

  Closed close(DatasetId id) MILLRACE_EXCLUDES(mutex_);

  std::size_t listed_now() const MILLRACE_EXCLUDES(mutex_);  // that somebody wants

  // All of them go, whatever state they are in: nobody asks for any, and no listing ends, any more.
  void clear() MILLRACE_EXCLUDES(mutex_);

  // kNotFound: not open, or not yet, naming the field "dataset_id". Shared: see DatasetSource.
  Result<std::shared_ptr<const Dataset>> find(DatasetId id) const MILLRACE_EXCLUDES(mutex_);

 private:
  struct Entry {
    Charge charge;
    std::shared_ptr<const Dataset> dataset = {};  // null: being listed
    bool unwanted = false;
  };

  const std::shared_ptr<Account> account_;  // shared: see Ledger::account()
  mutable Mutex mutex_;
  std::map<DatasetId, Entry> entries_ MILLRACE_GUARDED_BY(mutex_);
  std::size_t listed_now_ MILLRACE_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
