#include "proto/rpc/skipped_files_message.h"

#include "proto/rpc/enum_meaning.h"

namespace millrace {
namespace {

constexpr Meaning<v1::SkipReason, SkipReason> kSkipReasons[] = {
    {v1::SKIP_REASON_UNSPECIFIED, SkipReason::kNotAsked},
    {v1::SKIP_REASON_NOT_ASKED, SkipReason::kNotAsked},
    {v1::SKIP_REASON_UNDECODED, SkipReason::kUndecoded},
    {v1::SKIP_REASON_UNCLASSIFIED, SkipReason::kUnclassified}};

}  // namespace

v1::SkippedFiles to_message(const SkippedFiles& files) {
  v1::SkippedFiles message;
  message.set_reason(message_of(kSkipReasons, files.reason));
  message.set_extension(files.extension);
  message.set_files(files.files);
  for (const std::string& example : files.examples) message.add_examples(example);
  return message;
}

SkippedFiles from_message(const v1::SkippedFiles& files) {
  const Result<SkipReason> reason = meaning_of("reason", kSkipReasons, files.reason());
  return {.reason = reason ? *reason : SkipReason::kNotAsked,
          .extension = files.extension(),
          .files = files.files(),
          .examples = {files.examples().begin(), files.examples().end()}};
}

}  // namespace millrace
