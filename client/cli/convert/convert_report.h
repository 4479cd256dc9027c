// What a conversion has come to: added up file by file, printed as text or JSON. Thread-bound(its owner).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/convert/converter.h"
#include "client/cli/text/progress.h"

namespace millrace::cli {

class ConvertReport {
 public:
  // How many copied files are named of each reason.
  enum class Naming : std::uint8_t { kSome, kAll };

  ConvertReport(const TargetRow& to, Naming naming) : to_(to), naming_(naming) {}

  // `path`: of the source. Failures go to stderr: the first 100 of them, the others as a count.
  void add(const std::string& path, const Converted& file, Progress& progress);
  void add_unreadable(const UnreadableFolder& folder, Progress& progress);  // likewise
  void removed(std::size_t folders_and_links) { removed_ += folders_and_links; }
  void finish() const;

  std::uint64_t done() const { return converted_ + copied_; }
  std::uint64_t failed() const { return failed_; }
  std::uint64_t unreadable() const { return unreadable_; }

  void print_text(std::chrono::duration<double> elapsed, std::size_t odd) const;
  void print_json(std::chrono::duration<double> elapsed, std::size_t odd) const;

 private:
  static constexpr std::uint64_t kShown = 100;
  static constexpr std::size_t kNamedMost = 10;  // of a reason

  struct Copied {
    std::uint64_t count = 0;
    std::vector<std::string> named;
  };

  void add_copied(const std::string& path, WhyCopied why);
  std::string why_copied() const;
  void print_copied() const;

  const TargetRow& to_;
  const Naming naming_;
  std::uint64_t converted_ = 0, copied_ = 0, failed_ = 0, unreadable_ = 0, there_ = 0, deleted_ = 0, removed_ = 0;
  std::uint64_t bytes_before_ = 0, bytes_after_ = 0, bytes_copied_ = 0;
  std::array<Copied, kWhyCopied> why_{};
};

}  // namespace millrace::cli
