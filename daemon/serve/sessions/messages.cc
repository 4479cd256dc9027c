#include "daemon/serve/sessions/messages.h"

#include <string>

#include "proto/base/printable.h"
#include "proto/rpc/skipped_files_message.h"

namespace millrace {
namespace {

constexpr std::size_t kMaxMessageBytes = 3'500'000;  // less than half of what may wait for a client (reply_socket.h)

struct SubjectWriter {
  v1::Failed& failed;
  void operator()(std::monostate) const {}
  void operator()(BatchId id) const { failed.set_batch_id(raw(id)); }
  void operator()(DatasetId id) const { failed.set_dataset_id(raw(id)); }
  void operator()(EpochStreamId id) const { failed.set_stream_id(raw(id)); }
  void operator()(QuestionId id) const { failed.set_question_id(raw(id)); }
};

}  // namespace

v1::Limits limits_message(const Limits& limits) {
  v1::Limits message;
  message.set_message_bytes(kMessageMost.count);
  message.set_inline_bytes(limits.batch.inline_message.count);
  message.set_samples(limits.batch.samples);
  message.set_ring_bytes(limits.session.ring.count);
  message.set_extensions(kMostExtensions);
  message.set_extension_bytes(kLongestExtension);
  message.set_files_named(kMostFilesNamed);
  return message;
}

v1::ServerMessage attached_message(SessionId id) {
  v1::ServerMessage message;
  message.mutable_attached()->set_session_id(raw(id));
  return message;
}

v1::ServerMessage slots_withdrawn_message(std::uint32_t left, const Error& why) {
  v1::ServerMessage message;
  message.mutable_slots_withdrawn()->set_slots(left);
  message.mutable_slots_withdrawn()->set_message(printable(why.message));
  return message;
}

v1::ServerMessage failed_message(const Subject& subject, const Error& error, Bytes slot_bytes) {
  v1::ServerMessage message;
  v1::Failed& failed = *message.mutable_failed();
  std::visit(SubjectWriter{failed}, subject);
  failed.set_code(std::string(code_name(error.code)));
  failed.set_message(printable(error.message));
  if (error.code == Code::kExhausted) failed.set_slot_bytes(slot_bytes.count);
  return message;
}

v1::ServerMessage dataset_progress_message(DatasetId id, std::uint64_t files) {
  v1::ServerMessage message;
  message.mutable_dataset_progress()->set_dataset_id(raw(id));
  message.mutable_dataset_progress()->set_files(files);
  return message;
}

v1::ServerMessage sample_files_message(const NameFilesRequest& question) {
  v1::ServerMessage message;
  v1::SampleFiles& files = *message.mutable_sample_files();
  files.set_question_id(raw(question.id));
  for (const SampleId sample : question.samples) {
    Dataset::Location location = question.dataset->locate(sample);
    files.add_paths(std::move(location.file));
    if (!question.dataset->has_ranges()) continue;
    const Dataset::Range range = location.range.value_or(Dataset::Range{0, Dataset::Range::kWhole});
    files.add_offsets(range.offset);
    files.add_lengths(range.length.count);
  }
  return message;
}

Result<v1::ServerMessage> dataset_opened_message(DatasetId id, const Dataset& dataset) {
  v1::ServerMessage message;
  v1::DatasetOpened& opened = *message.mutable_dataset_opened();
  opened.set_dataset_id(raw(id));
  opened.set_samples(dataset.samples());
  opened.set_fingerprint(dataset.fingerprint());
  opened.set_skipped_files(dataset.skipped().files);
  for (const SkippedFiles& group : dataset.skipped().groups) *opened.add_skipped() = to_message(group);
  std::size_t bytes = 0;
  for (const std::string& name : dataset.classes()) {
    opened.add_classes(name);
    bytes += opened.classes(opened.classes_size() - 1).size() + 8;
    if (bytes > kMaxMessageBytes) {
      return Error{Code::kExhausted, "the names of the " + std::to_string(dataset.classes().size()) +
                                         " class folders do not fit into one message: open parts of the tree"};
    }
  }
  return message;
}

}  // namespace millrace
