#include "proto/rpc/position_token.h"

#include <boost/crc.hpp>

namespace millrace {
namespace {

constexpr std::uint32_t kVersion = 1;
using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;

// Over the message without its checksum. Protobuf's C++ serialisation of a message of scalars is in field order, so it
// is stable.
std::uint32_t checksum(v1::EpochPosition position) {
  position.clear_checksum();
  const std::string bytes = position.SerializeAsString();
  Crc32c crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

}  // namespace

std::string encode_position(v1::EpochPosition position) {
  position.set_version(kVersion);
  position.set_checksum(checksum(position));
  return position.SerializeAsString();
}

Result<v1::EpochPosition> decode_position(std::string_view token_untrusted) {
  const Error damaged{Code::kInvalid,
                      "position: not a position token, or damaged; pass the bytes of Completed.position unchanged"};
  v1::EpochPosition position;
  if (token_untrusted.size() > 256 ||
      !position.ParseFromArray(token_untrusted.data(), static_cast<int>(token_untrusted.size())))
    return damaged;
  if (position.version() != kVersion)
    return Error{Code::kInvalid, "position: version " + std::to_string(position.version()) +
                                     " is not known here; this daemon reads version 1"};
  if (position.checksum() != checksum(position)) return damaged;
  return position;
}

}  // namespace millrace
