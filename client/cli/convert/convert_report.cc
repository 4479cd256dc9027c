#include "client/cli/convert/convert_report.h"

#include <algorithm>
#include <cstdio>

#include "client/cli/text/json.h"
#include "proto/base/bytes.h"
#include "proto/base/printable.h"

namespace millrace::cli {
namespace {

double ratio(std::uint64_t after, std::uint64_t before) {
  return before == 0 ? 0 : static_cast<double>(after) / static_cast<double>(before);
}

}  // namespace

void ConvertReport::add(const std::string& path, const Converted& file, Progress& progress) {
  there_ += file.was_there ? 1 : 0;
  deleted_ += file.deleted ? 1 : 0;
  switch (file.became) {
    case Became::kConverted:
      ++converted_;
      bytes_before_ += file.bytes_read;
      bytes_after_ += file.bytes_written;
      return;
    case Became::kCopied:
      ++copied_;
      bytes_copied_ += file.bytes_written;
      add_copied(path, file.why);
      return;
    case Became::kFailed:
      if (++failed_ > kShown) return;
      progress.clear();
      std::fprintf(stderr, "millrace: %s: %s\n", printable(path).c_str(), printable(file.error.message).c_str());
      return;
    case Became::kStopped:
      return;
  }
}

void ConvertReport::add_unreadable(const UnreadableFolder& folder, Progress& progress) {
  if (++unreadable_ > kShown) return;
  progress.clear();
  std::fprintf(stderr, "millrace: %s: passed over, with all that is in it\n", printable(folder.error.message).c_str());
}

void ConvertReport::finish() const {
  if (failed_ > kShown) std::fprintf(stderr, "millrace: ... and %s more failed\n", grouped(failed_ - kShown).c_str());
  if (unreadable_ > kShown)
    std::fprintf(stderr, "millrace: ... and %s more folders cannot be read\n", grouped(unreadable_ - kShown).c_str());
}

void ConvertReport::add_copied(const std::string& path, WhyCopied why) {
  if (why == WhyCopied::kNothing) return;
  Copied& copied = why_[static_cast<std::size_t>(why)];
  ++copied.count;
  if (naming_ == Naming::kAll || copied.named.size() < kNamedMost) copied.named.push_back(path);
}

void ConvertReport::print_copied() const {
  bool all = true;
  for (const CopyReason& reason : to_.reasons) {
    const Copied& copied = why_[static_cast<std::size_t>(reason.why)];
    for (const std::string& path : copied.named) std::printf("  %s: %s\n", reason.text, printable(path).c_str());
    all = all && copied.named.size() == copied.count;
  }
  if (!all) std::printf("  ... of each reason the first %zu: --verbose names all\n", kNamedMost);
}

std::string ConvertReport::why_copied() const {
  std::string text;
  for (const CopyReason& reason : to_.reasons) {
    const std::uint64_t count = why_[static_cast<std::size_t>(reason.why)].count;
    if (count > 0) text += (text.empty() ? "" : ", ") + grouped(count) + ' ' + reason.text;
  }
  return text;
}

void ConvertReport::print_text(std::chrono::duration<double> elapsed, std::size_t odd) const {
  std::printf("%s files in %.1f s: %s %s, %s copied, %s failed\n", grouped(done() + failed_).c_str(), elapsed.count(),
              grouped(converted_).c_str(), to_.words.done, grouped(copied_).c_str(), grouped(failed_).c_str());
  if (converted_ > 0)
    std::printf("%s of %s are %s of %s (%.2f x); %s\n", to_text(Bytes{bytes_before_}).c_str(), to_.words.from,
                to_text(Bytes{bytes_after_}).c_str(), to_.words.into, ratio(bytes_after_, bytes_before_),
                to_.words.checked);
  if (const std::string why = why_copied(); !why.empty())
    std::printf("copied as they are, %s: %s\n", to_text(Bytes{bytes_copied_}).c_str(), why.c_str());
  print_copied();
  if (there_ > 0) std::printf("%s of them were there from an earlier run\n", grouped(there_).c_str());
  if (deleted_ > 0) std::printf("%s sources deleted\n", grouped(deleted_).c_str());
  if (removed_ > 0) std::printf("%s folders and links removed that had nothing left\n", grouped(removed_).c_str());
  if (unreadable_ > 0)
    std::printf("passed over: %s folders that cannot be read, with all that is in them\n",
                grouped(unreadable_).c_str());
  if (odd > 0)
    std::printf("left out: %s that are neither file nor folder, or links that lead nowhere\n", grouped(odd).c_str());
}

void ConvertReport::print_json(std::chrono::duration<double> elapsed, std::size_t odd) const {
  Json json;
  json.begin_object().member("converted", converted_).member("copied", copied_).member("failed", failed_);
  json.member("there_before", there_).member("deleted", deleted_);
  json.member("removed_folders_and_links", removed_).member("left_out", std::uint64_t{odd});
  json.member("unreadable_folders", unreadable_);
  json.member("bytes_before", bytes_before_).member("bytes_after", bytes_after_);
  json.member("bytes_copied", bytes_copied_).member("seconds", elapsed.count());
  json.key("why_copied").begin_object();
  for (const CopyReason& reason : to_.reasons)
    json.member(reason.key, why_[static_cast<std::size_t>(reason.why)].count);
  json.end_object().key("copied_files").begin_array();
  for (const CopyReason& reason : to_.reasons) {
    for (const std::string& path : why_[static_cast<std::size_t>(reason.why)].named)
      json.begin_object().member("path", path).member("why", reason.key).end_object();
  }
  json.end_array().end_object();
  std::printf("%s\n", json.text().c_str());
}

}  // namespace millrace::cli
