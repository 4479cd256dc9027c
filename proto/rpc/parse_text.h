// Messages in protobuf's text format, as people write them.
#pragma once

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>

#include "proto/base/result.h"

namespace millrace {

// kInvalid: the first thing that is wrong with the text: "line 2, column 5: ...".
inline Result<void> parse_text(const std::string& text_untrusted, google::protobuf::Message& into) {
  class First : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int line, int column, const std::string& message) override {
      if (!what.empty()) return;
      what = (line > 0 ? "line " + std::to_string(line + 1) + ", " : "") + "column " + std::to_string(column + 1) +
             ": " + message;
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
