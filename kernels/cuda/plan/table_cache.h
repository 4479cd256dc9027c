// Huffman tables that stay in the GPU's memory from batch to batch: which slot holds which table, and which tables a
// batch has to bring. Photographs have some three tables each, and most of them tables of their own; the slots of those
// that came first are given to new ones, in turn, but never one that the batch in the making uses.
//
// The slots are one array of DecodeTable in device memory, and batches are launched on one stream in the order in which
// they were planned: so a slot is overwritten behind the last batch that read it. Thread-bound(its planner).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/cuda/tokenise/decode_table.h"
#include "kernels/jpeg/canonical_code.h"

namespace millrace::kernels::cuda {

// New tables one after the other: `count` of them, from `first` on, belong into the slots from `slot` on.
struct TableRun {
  std::uint32_t first, slot, count;
};

class TableCache {
 public:
  explicit TableCache(std::uint32_t slots) : slots_(slots) {}

  void begin_batch();

  // Where the table is, once the batch's new tables are there. nullopt: libjpeg-turbo would refuse it, or the batch
  // uses every slot.
  std::optional<std::uint32_t> slot_of(jpeg::TableKind kind, const jpeg::HuffmanSpec& spec_untrusted);

  // Of this batch.
  const std::vector<DecodeTable>& new_tables() const { return new_tables_; }
  const std::vector<TableRun>& runs() const { return runs_; }

  std::uint32_t slots() const { return static_cast<std::uint32_t>(slots_.size()); }

 private:
  struct Key {
    jpeg::HuffmanSpec spec;
    jpeg::TableKind kind;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  struct Slot {
    const Key* key = nullptr;  // of the map
    std::uint64_t used = 0;    // by which batch
  };

  std::optional<std::uint32_t> take_slot();
  void add_to_runs(std::uint32_t slot);

  std::unordered_map<Key, std::uint32_t, KeyHash> slot_by_key_;
  std::vector<Slot> slots_;
  std::uint32_t next_ = 0;
  std::uint64_t batch_ = 0;
  std::vector<DecodeTable> new_tables_;
  std::vector<TableRun> runs_;
};

}  // namespace millrace::kernels::cuda
