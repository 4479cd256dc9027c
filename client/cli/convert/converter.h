// One file of a folder at a time into another folder: what a target (target.h) makes of it, or a copy.
//
// A file is there complete and verified, or not at all; nothing is written over. What is there from an earlier run is
// compared in the same way and counts as there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/convert/files.h"
#include "client/cli/convert/target.h"
#include "client/cli/convert/tree.h"
#include "proto/base/error.h"

namespace millrace::cli {

struct ConvertPlan {
  const TargetRow& to;
  TargetOptions options{};
  std::string from, into;         // folders; `into` exists
  bool delete_converted = false;  // sources that the other folder has, once that was seen on its disk
};

enum class Became : std::uint8_t {
  kConverted,
  kCopied,
  kFailed,   // and nothing is there
  kStopped,  // by an interrupt, or because no file can be written any more; and nothing is there
};

struct Converted {
  Became became = Became::kFailed;
  WhyCopied why = WhyCopied::kNothing;  // of a copied file
  bool was_there = false;               // from an earlier run
  bool deleted = false;                 // the source
  std::uint64_t bytes_read = 0, bytes_written = 0;
  Error error{};  // of kFailed; and of kStopped, unless it was interrupted
};

// Thread-bound(its owner); several work on one plan at a time.
class Converter {
 public:
  explicit Converter(const ConvertPlan& plan) : plan_(plan), target_(plan.to.create(plan.options)) {}

  // REQUIRES: folder's counterpart is there.
  Converted convert(const TreeFolder& folder, const TreeFile& file);

 private:
  Result<Converted> make(SourceFile& source, const TreeFolder& folder, const TreeFile& file);
  Result<Converted> copy(const TreeFolder& folder, const TreeFile& file, WhyCopied why);
  Result<bool> place(const std::vector<std::uint8_t>& bytes, const std::string& folder, const std::string& name,
                     const struct stat& like);
  Result<bool> place_copy(SourceFile& source, const std::string& folder, const std::string& name);
  bool has_made(const std::string& path);
  Result<bool> equal_files(const std::string& a, const std::string& b);
  Sync sync() const { return plan_.delete_converted ? Sync::kYes : Sync::kNo; }

  const ConvertPlan& plan_;
  const std::unique_ptr<ConvertTarget> target_;
  std::vector<std::uint8_t> source_, made_, there_, back_;
};

}  // namespace millrace::cli
