#include "daemon/backend/cpu/decoders/tiff/tiff_source.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "proto/base/printable.h"

namespace millrace {

// What libtiff calls instead of the operating system.
struct TiffCalls {
  static TiffSource& source(thandle_t handle) { return *static_cast<TiffSource*>(handle); }

  static tmsize_t read(thandle_t handle, void* out, tmsize_t bytes) {
    TiffSource& from = source(handle);
    if (from.at_ >= from.file_.size() || bytes <= 0) return 0;
    const auto there = std::min<std::uint64_t>(static_cast<std::uint64_t>(bytes), from.file_.size() - from.at_);
    std::memcpy(out, from.file_.data() + from.at_, there);
    from.at_ += there;
    return static_cast<tmsize_t>(there);
  }
  static tmsize_t write(thandle_t, void*, tmsize_t) { return -1; }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    TiffSource& from = source(handle);
    const std::uint64_t base = whence == SEEK_CUR ? from.at_ : whence == SEEK_END ? from.file_.size() : 0;
    from.at_ = base + offset;
    return from.at_;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return source(handle).file_.size(); }
  // libtiff only reads there.
  static int map(thandle_t handle, void** base, toff_t* bytes) {
    *base = const_cast<std::byte*>(source(handle).file_.data());
    *bytes = source(handle).file_.size();
    return 1;
  }
  static void unmap(thandle_t, void*, toff_t) {}
  static int ignore(TIFF*, void*, const char*, const char*, va_list) { return 1; }
};

int TiffSource::complain(TIFF*, void* self, const char* module, const char* format, va_list arguments) {
  auto& complaint = static_cast<TiffSource*>(self)->complaint_;
  if (!complaint.empty()) return 1;
  char text[160];
  std::vsnprintf(text, sizeof text, format, arguments);
  std::string said = text;
  said.erase(said.find_last_not_of(": ") + 1);  // what zlib has no words for
  complaint = printable((module != nullptr ? module + std::string(": ") : "") + said);
  return 1;
}

TiffSource::Tiff TiffSource::open(std::size_t most) {
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  Tiff tiff(nullptr, TIFFClose);
  if (!options) {
    complaint_ = "out of memory";
    return tiff;
  }
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), static_cast<tmsize_t>(most));
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), complain, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), TiffCalls::ignore, nullptr);
  // c: strips are not to be cut into smaller ones.
  tiff.reset(TIFFClientOpenExt("file", "rc", this, TiffCalls::read, TiffCalls::write, TiffCalls::seek, TiffCalls::close,
                               TiffCalls::size, TiffCalls::map, TiffCalls::unmap, options.get()));
  return tiff;
}

}  // namespace millrace
