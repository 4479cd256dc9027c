// The `.mrp` file: a packed image (kernels/packed) as a file of its own, with all of a JPEG file that its pixels do not
// need: headers with EXIF and thumbnails, what follows the image, padding bits. By these it becomes the very same JPEG
// file again (restore.h). README.md has the format as a grammar.
//
// The bytes are hostile. read_packed_file() looks at the frame alone, its checksum included; the packed image in it has
// a checksum of its own (PackedImage), and what is in front of the image is a JPEG header like any other.
// Values; thread-safe: plain functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/jpeg/header.h"
#include "kernels/jpeg/scan_writer.h"

namespace millrace::kernels::mrp {

using jpeg::FileBytes;

// Whether the JPEG file can be written again. kNo: of files whose pixels alone were kept, as progressive ones.
enum class WayBack : std::uint8_t { kNo, kYes };

// Borrows its bytes.
struct PackedFile {
  WayBack way_back = WayBack::kNo;
  FileBytes front;  // the JPEG file up to its (first) scan's data
  jpeg::ScanPadding::Kind padding = jpeg::ScanPadding::Kind::kOnes;
  FileBytes listed;    // see ScanPadding
  FileBytes end;       // the JPEG file from behind its scan on: EOI, and what follows it
  FileBytes image;     // a PackedImage
  std::string ending;  // of the JPEG file's name, without the dot: is_ending()
  // With WayBack::kYes: of the JPEG file.
  std::uint64_t jpeg_bytes = 0, jpeg_hash = 0;
};

// The first bytes of a file tell it.
bool is_packed_file(FileBytes file_untrusted);

// Whether the format can keep this ending of a name: at most 8 letters and digits, or none.
bool is_ending(std::string_view ending);

// Empty: fine. Otherwise what is wrong, for a sentence: "cut off"; `file` means nothing then. Costs a look at all bytes
// but the image's.
std::string read_packed_file(FileBytes file_untrusted, PackedFile& file);

// False: a part is larger than the format can say, or the ending is none.
bool write_packed_file(const PackedFile& file, std::vector<std::uint8_t>& out);

// Of a JPEG file, for `jpeg_hash`: XXH3-64.
std::uint64_t hash_of(FileBytes jpeg);

}  // namespace millrace::kernels::mrp
