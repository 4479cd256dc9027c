#include "proto/rpc/submessages.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace millrace {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kDepth = 32;  // no schema of ours goes so deep

// false: the bytes end, or there are more than `most`.
bool count(CodedInputStream& in, const Descriptor& type, std::size_t most, std::size_t& found, int depth) {
  while (const std::uint32_t tag = in.ReadTag()) {
    const FieldDescriptor* const field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    const bool is_message = field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
                            WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (!is_message) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    std::uint32_t length = 0;
    if (++found > most || depth == 0 || !in.ReadVarint32(&length)) return false;
    const CodedInputStream::Limit outside = in.PushLimit(static_cast<int>(length));
    if (!count(in, *field->message_type(), most, found, depth - 1)) return false;
    in.PopLimit(outside);
  }
  return true;
}

}  // namespace

std::size_t submessages(ByteView bytes, const Descriptor& type, std::size_t most) {
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  std::size_t found = 0;
  count(in, type, most, found, kDepth);
  return found;
}

}  // namespace millrace
