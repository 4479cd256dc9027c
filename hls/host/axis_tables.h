// The axis tables of a batch in its commands: those that were made for earlier images stay, so a recurring size costs a
// copy, and within a batch nothing at all. Thread-bound(its owner).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "hls/host/command_writer.h"
#include "kernels/tensor/axis_weights.h"

namespace millrace::hls {

// Where a table is.
struct AxisPlace {
  std::uint32_t unit = 0;  // in the commands
  int taps = 0;
};

class AxisTables {
 public:
  // A new batch: no table is in its commands yet. Forgets all of them when they have become many.
  void begin_batch();

  // How many taps the outputs of `spec` have. Makes the table where there is none.
  int taps(const kernels::AxisSpec& spec) { return table_of(spec).taps; }
  // The table in the commands; nullopt: there is no room for it.
  std::optional<AxisPlace> place(const kernels::AxisSpec& spec, CommandWriter& commands);

 private:
  struct Table {
    int taps = 0;
    std::vector<std::int32_t> words;  // as the card reads them
    std::uint64_t batch = 0;          // in whose commands it is
    std::uint32_t unit = 0;
  };
  Table& table_of(const kernels::AxisSpec& spec);

  std::map<kernels::AxisSpec, Table> tables_;
  std::size_t words_ = 0;  // of all
  std::uint64_t batch_ = 0;
};

}  // namespace millrace::hls
