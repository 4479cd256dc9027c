#include "kernels/cuda/plan/table_cache.h"

#include "kernels/cuda/plan/build_table.h"

namespace millrace::kernels::cuda {

std::size_t TableCache::KeyHash::operator()(const Key& key) const {
  static_assert(sizeof(jpeg::HuffmanSpec) == 16 + 256, "hashed as bytes");
  const std::string_view bytes(reinterpret_cast<const char*>(&key.spec), sizeof key.spec);
  return std::hash<std::string_view>()(bytes) + static_cast<std::size_t>(key.kind);
}

void TableCache::begin_batch() {
  ++batch_;
  new_tables_.clear();
  runs_.clear();
}

std::optional<std::uint32_t> TableCache::slot_of(jpeg::TableKind kind, const jpeg::HuffmanSpec& spec_untrusted) {
  const Key key{spec_untrusted, kind};
  if (const auto found = slot_by_key_.find(key); found != slot_by_key_.end()) {
    slots_[found->second].used = batch_;
    return found->second;
  }
  DecodeTable table;
  if (!build_table(spec_untrusted, kind, table)) return std::nullopt;
  const std::optional<std::uint32_t> slot = take_slot();
  if (!slot) return std::nullopt;
  slots_[*slot] = {&slot_by_key_.emplace(key, *slot).first->first, batch_};
  new_tables_.push_back(table);
  add_to_runs(*slot);
  return slot;
}

std::optional<std::uint32_t> TableCache::take_slot() {
  for (std::size_t tried = 0; tried < slots_.size(); ++tried) {
    const std::uint32_t slot = next_;
    next_ = next_ + 1 == slots_.size() ? 0 : next_ + 1;
    if (slots_[slot].key != nullptr && slots_[slot].used == batch_) continue;
    if (slots_[slot].key != nullptr) slot_by_key_.erase(slot_by_key_.find(*slots_[slot].key));
    slots_[slot] = {};
    return slot;
  }
  return std::nullopt;
}

void TableCache::add_to_runs(std::uint32_t slot) {
  const auto at = static_cast<std::uint32_t>(new_tables_.size() - 1);
  if (!runs_.empty() && runs_.back().slot + runs_.back().count == slot) {
    ++runs_.back().count;
  } else {
    runs_.push_back({at, slot, 1});
  }
}

}  // namespace millrace::kernels::cuda
