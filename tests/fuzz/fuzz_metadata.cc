// Small parsers by themselves: EXIF and XMP (formats) and the ACL attribute (fetch), each of which sees the same bytes.
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "daemon/fetch/open/caller_rights.h"
#include "proto/base/result.h"
#include "proto/metadata/exif_orientation.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const ByteView bytes = std::as_bytes(std::span(data, size));
  const auto exif = exif_orientation(bytes), xmp = xmp_orientation(bytes);
  MILLRACE_CHECK(!xmp || *xmp <= 9);
  MILLRACE_CHECK(exif == exif_orientation(bytes));

  struct stat status {};
  status.st_uid = 10;
  status.st_gid = 20;
  const Caller member{.uid = 4242, .gid = 4242, .groups = {20}}, other{.uid = 4242, .gid = 4242};
  const CallerRights initial{UnmappedIds{}}, partial{UnmappedIds{.user = 30, .group = 20}};
  const bool granted = initial.acl_allows(member, Right::kRead, status, bytes);
  MILLRACE_CHECK(!granted || size >= 12);  // a header and one entry at least
  // Where group 20 stands for all that are not mapped: only what its members and others would get.
  const bool granted_perhaps = partial.acl_allows(member, Right::kRead, status, bytes);
  MILLRACE_CHECK(!granted_perhaps || (granted && initial.acl_allows(other, Right::kRead, status, bytes)));
  return 0;
}
