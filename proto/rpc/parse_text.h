// Messages in protobuf's text format, as people write them.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "proto/base/result.h"

namespace millrace {

// Of protobuf's complaint about a field that a message of ours has not: with those that it has.
inline std::string with_fields(std::string complaint) {
  if (!complaint.empty() && complaint.back() == '.') complaint.pop_back();
  const std::string begin = "Message type \"", end = "\" has no field named ";
  const std::size_t at = complaint.find(end);
  if (complaint.compare(0, begin.size(), begin) != 0 || at == std::string::npos) return complaint;
  const std::string name = complaint.substr(begin.size(), at - begin.size());
  const auto* const type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(name);
  if (type == nullptr) return complaint;
  std::string fields;
  for (int i = 0; i < type->field_count(); ++i) fields += (i > 0 ? ", " : "") + type->field(i)->name();
  return type->name() + " has no field " + complaint.substr(at + end.size()) + ", but " + fields;
}

// kInvalid: the first thing that is wrong with the text: "line 2, column 5: ...".
inline Result<void> parse_text(const std::string& text_untrusted, google::protobuf::Message& into) {
  class First : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int line, int column, const std::string& message) override {
      if (!what.empty()) return;
      what = (line > 0 ? "line " + std::to_string(line + 1) + ", " : "") + "column " + std::to_string(column + 1) +
             ": " + with_fields(message);
    }
    std::string what;
  } first;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&first);
  parser.SetRecursionLimit(100);
  if (parser.ParseFromString(text_untrusted, &into)) return {};
  return Error{Code::kInvalid, first.what};
}

}  // namespace millrace
