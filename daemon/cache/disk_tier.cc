#include "daemon/cache/disk_tier.h"

#include <lmdb.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

constexpr std::string_view kFormat = "millrace seek index 2";
constexpr const char* kFormatKey = "format";
constexpr const char* kYoungKey = "young";
constexpr unsigned kReaders = 4096;

Error lmdb_error(std::string_view doing, int status) {
  if (status == ENOSPC || status == EDQUOT || status == MDB_MAP_FULL)
    return {Code::kExhausted, std::string(doing) + ": " + mdb_strerror(status)};
  if (status > 0) return errno_error(doing, status);
  return {Code::kInvalid, std::string(doing) + ": " + mdb_strerror(status)};
}

MDB_val value_of(std::string_view text) {
  return {text.size(), const_cast<char*>(text.data())};
}
MDB_val value_of(const IndexKey& key) {
  return {sizeof key, const_cast<IndexKey*>(&key)};
}
std::string_view text_of(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// Ends without effect unless committed.
class Transaction {
 public:
  Transaction(MDB_env* env, unsigned flags) : status_(mdb_txn_begin(env, nullptr, flags, &txn_)) {}
  ~Transaction() {
    if (txn_ != nullptr) mdb_txn_abort(txn_);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  int status() const { return status_; }  // of beginning
  MDB_txn* get() const { return txn_; }
  int commit() { return mdb_txn_commit(std::exchange(txn_, nullptr)); }

 private:
  MDB_txn* txn_ = nullptr;
  int status_;
};

std::optional<std::string_view> get(const Transaction& transaction, MDB_dbi dbi, MDB_val key) {
  MDB_val value;
  if (mdb_get(transaction.get(), dbi, &key, &value) != MDB_SUCCESS) return std::nullopt;
  return text_of(value);
}

int put(const Transaction& transaction, MDB_dbi dbi, MDB_val key, std::string_view text) {
  MDB_val value = value_of(text);
  return mdb_put(transaction.get(), dbi, &key, &value, 0);
}

int erase(const Transaction& transaction, MDB_dbi dbi, MDB_val key) {
  const int status = mdb_del(transaction.get(), dbi, &key, nullptr);
  return status == MDB_NOTFOUND ? MDB_SUCCESS : status;
}

DiskTier::Extent extent_of(const Transaction& transaction, MDB_dbi dbi) {
  MDB_stat stat{};
  if (mdb_stat(transaction.get(), dbi, &stat) != MDB_SUCCESS) return {};
  const std::size_t pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
  return {stat.ms_entries, std::uint64_t{pages} * stat.ms_psize};
}

unsigned young_of(const Transaction& transaction, MDB_dbi meta) {
  return get(transaction, meta, value_of(kYoungKey)) == std::string_view("1") ? 1 : 0;
}

// Of processes that were killed.
void forget_dead_readers(MDB_env* env) {
  int dead = 0;
  mdb_reader_check(env, &dead);
}

int walk(const Transaction& transaction, MDB_dbi dbi) {
  MDB_cursor* cursor = nullptr;
  int status = mdb_cursor_open(transaction.get(), dbi, &cursor);
  if (status != MDB_SUCCESS) return status;
  unsigned sum = 0;
  MDB_val key, value;
  while ((status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS) {
    for (const MDB_val& part : {key, value}) {
      for (const char byte : text_of(part)) sum += static_cast<unsigned char>(byte);
    }
  }
  mdb_cursor_close(cursor);
  [[maybe_unused]] const volatile unsigned sink = sum;  // so that the bytes are read
  return status == MDB_NOTFOUND ? MDB_SUCCESS : status;
}

}  // namespace

void DiskTier::CloseEnvironment::operator()(MDB_env* env) const {
  mdb_env_close(env);
}

DiskTier::~DiskTier() = default;

Result<std::unique_ptr<DiskTier>> DiskTier::open(const std::string& path, Bytes most) {
  MDB_env* env = nullptr;
  if (const int status = mdb_env_create(&env); status != MDB_SUCCESS) return lmdb_error("opening " + path, status);
  std::unique_ptr<DiskTier> tier(new DiskTier(env, most));
  // Address space, not memory: the bound is kept long before.
  mdb_env_set_mapsize(env, 2 * most.count + (std::size_t{64} << 20));
  mdb_env_set_maxdbs(env, 3);
  mdb_env_set_maxreaders(env, kReaders);
  constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NOMETASYNC | MDB_NORDAHEAD;
  if (const int status = mdb_env_open(env, path.c_str(), kFlags, 0600); status != MDB_SUCCESS)
    return lmdb_error("opening " + path, status);
  forget_dead_readers(env);
  MILLRACE_TRY_VOID(tier->prepare());
  return tier;
}

Result<void> DiskTier::prepare() {
  Transaction transaction(env_.get(), 0);
  int status = transaction.status();
  const auto open_part = [&](const char* name, unsigned& dbi) {
    if (status == MDB_SUCCESS) status = mdb_dbi_open(transaction.get(), name, MDB_CREATE, &dbi);
  };
  open_part("meta", meta_);
  open_part("0", generations_[0]);
  open_part("1", generations_[1]);
  if (status != MDB_SUCCESS) return lmdb_error("reading the index database", status);
  const auto format = get(transaction, meta_, value_of(kFormatKey));
  const bool fresh = !format && extent_of(transaction, meta_).entries == 0;
  if (!fresh && format != kFormat) return Error{Code::kInvalid, "the index database has another format"};
  if (fresh) status = put(transaction, meta_, value_of(kFormatKey), kFormat);
  if (status == MDB_SUCCESS) status = transaction.commit();
  if (status != MDB_SUCCESS) return lmdb_error("writing the index database", status);
  return {};
}

std::optional<DiskTier::Found> DiskTier::find(const IndexKey& key) const {
  const Transaction transaction(env_.get(), MDB_RDONLY);
  if (transaction.status() != MDB_SUCCESS) return std::nullopt;
  const unsigned young = young_of(transaction, meta_);
  for (const unsigned generation : {young, 1 - young}) {
    const auto found = get(transaction, generations_[generation], value_of(key));
    if (!found || found->size() > kLargestOnDisk) continue;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(found->data());
    return Found{std::make_shared<const std::vector<std::uint8_t>>(bytes, bytes + found->size()), generation != young};
  }
  return std::nullopt;
}

Result<std::uint64_t> DiskTier::write(std::span<const Change> changes) {
  forget_dead_readers(env_.get());  // their pages could not be used again
  Transaction transaction(env_.get(), 0);
  int status = transaction.status();
  if (status != MDB_SUCCESS) return lmdb_error("writing the index database", status);
  const unsigned young = young_of(transaction, meta_);
  for (const auto& [key, index] : changes) {
    if (index == nullptr || index->size() > kLargestOnDisk) {
      for (const unsigned generation : generations_) {
        if (status == MDB_SUCCESS) status = erase(transaction, generation, value_of(key));
      }
    } else if (status == MDB_SUCCESS) {
      status = put(transaction, generations_[young], value_of(key),
                   {reinterpret_cast<const char*>(index->data()), index->size()});
    }
  }
  std::uint64_t evicted = 0;
  if (status == MDB_SUCCESS && extent_of(transaction, generations_[young]).bytes > most_.count / 2) {
    const unsigned old = 1 - young;
    evicted = extent_of(transaction, generations_[old]).entries;
    status = mdb_drop(transaction.get(), generations_[old], 0);
    if (status == MDB_SUCCESS) status = put(transaction, meta_, value_of(kYoungKey), old == 1 ? "1" : "0");
  }
  if (status == MDB_SUCCESS) status = transaction.commit();
  if (status != MDB_SUCCESS) return lmdb_error("writing the index database", status);
  return evicted;
}

DiskTier::Extent DiskTier::extent() const {
  const Transaction transaction(env_.get(), MDB_RDONLY);
  if (transaction.status() != MDB_SUCCESS) return {};
  const Extent a = extent_of(transaction, generations_[0]), b = extent_of(transaction, generations_[1]);
  return {a.entries + b.entries, a.bytes + b.bytes};
}

bool DiskTier::walk_all() const {
  const Transaction transaction(env_.get(), MDB_RDONLY);
  if (transaction.status() != MDB_SUCCESS) return false;
  constexpr MDB_dbi kFreePages = 0, kNames = 1;  // LMDB's own
  for (const MDB_dbi dbi : {kFreePages, kNames, MDB_dbi{meta_}, MDB_dbi{generations_[0]}, MDB_dbi{generations_[1]}}) {
    if (walk(transaction, dbi) != MDB_SUCCESS) return false;
  }
  return true;
}

bool check_database(const std::string& path) {
  const Result<std::unique_ptr<DiskTier>> opened = DiskTier::open(path, 1_MiB);
  if (!opened) return opened.error().code != Code::kInvalid;
  return (*opened)->walk_all();
}

}  // namespace millrace
