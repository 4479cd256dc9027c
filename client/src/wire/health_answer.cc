#include "client/src/wire/health_answer.h"

#include <grpcpp/support/byte_buffer.h>

namespace millrace {
inline namespace client {

bool says_serving(const grpc::ByteBuffer& answer) {
  if (answer.Length() != 2) return false;
  grpc::Slice bytes;  // field 1, a varint: 1
  return answer.DumpToSingleSlice(&bytes).ok() && bytes.begin()[0] == 0x08 && bytes.begin()[1] == 1;
}

}  // namespace client
}  // namespace millrace
