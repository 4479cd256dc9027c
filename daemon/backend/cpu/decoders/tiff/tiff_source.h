// A TIFF file in memory as libtiff sees it, and what libtiff says of it. Thread-bound(the thread that decodes).
#pragma once

#include <tiffio.h>

#include <memory>
#include <string>

#include "proto/base/bytes.h"

namespace millrace {

class TiffSource {
 public:
  explicit TiffSource(ByteView file_untrusted) : file_(file_untrusted) {}
  TiffSource(const TiffSource&) = delete;
  TiffSource& operator=(const TiffSource&) = delete;

  using Tiff = std::unique_ptr<TIFF, void (*)(TIFF*)>;
  // Of the first directory; nullptr: see complaint(). Outlived by this. `most`: that libtiff may take at once.
  Tiff open(std::size_t most);

  // The first error.
  const std::string& complaint() const { return complaint_; }
  bool is_out_of_memory() const {
    return complaint_.find("emory") != std::string::npos && complaint_.find("limit") == std::string::npos;
  }

 private:
  static int complain(TIFF* tiff, void* self, const char* module, const char* format, va_list arguments);

  ByteView file_;
  std::uint64_t at_ = 0;
  std::string complaint_;

  friend struct TiffCalls;
};

}  // namespace millrace
