// What files may become: an interface, and a row for each that implements it. What is written to disk, copied or deleted
// is converter.h's; a target works in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/convert/names.h"
#include "client/cli/convert/why_copied.h"
#include "proto/base/result.h"

namespace millrace::cli {

struct NamedFile {
  std::string_view name;
  const Siblings& siblings;
};

// Of L3 files alone.
struct TargetOptions {
  bool fast = false;      // the encoder tries less
  bool version1 = false;  // as the format's authors published it
};

// What became of a file's bytes.
struct Made {
  WhyCopied why = WhyCopied::kNothing;  // of a file that is to be copied
  std::string name;                     // of the new file; empty: copy the file
};

// Thread-bound(its owner). Reuses its memory from file to file.
class ConvertTarget {
 public:
  virtual ~ConvertTarget() = default;

  // Whether a file of this name is read at all; all others are copied.
  virtual bool takes(std::string_view name) const = 0;

  // `made` is the new file, if it gets a name: turned back in memory, it was the source. Error: a sentence that goes on
  // from the file's path: "is damaged: cut off". May grow the source while it works.
  virtual Result<Made> make(const NamedFile& file, std::vector<std::uint8_t>& source_untrusted,
                            std::vector<std::uint8_t>& made) = 0;

  // Whether a file that is there already is one that make() could have made of its last source. May grow it.
  virtual bool is_of_last(std::vector<std::uint8_t>& there_untrusted) = 0;
};

struct TargetRow {
  std::string_view name;  // of --to
  struct Words {
    const char* doing;    // "packing"
    const char* done;     // "packed"
    const char* from;     // "JPEG files"
    const char* into;     // "packed files"
    const char* checked;  // "each was turned back and compared, byte for byte"
  } words;
  std::uint64_t most_bytes;  // a file that is larger is copied
  WhyCopied not_taken;       // why files are copied that it does not take
  std::span<const CopyReason> reasons;
  std::unique_ptr<ConvertTarget> (*create)(const TargetOptions& options);
};

std::span<const TargetRow> target_rows();

}  // namespace millrace::cli
