#include "client/cli/picture/png_file.h"

#include <spng.h>

#include <cerrno>
#include <cstdio>
#include <memory>

namespace millrace::cli {

static_assert(sizeof(Colour) == 3, "spng takes the pixels as they lie");

Result<void> write_png(const std::string& path, const Picture& picture) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) return errno_error("writing " + path, errno);
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  if (!context) return Error{Code::kExhausted, "writing " + path + ": out of memory"};
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(picture.width);
  header.height = static_cast<std::uint32_t>(picture.height);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  int error = spng_set_png_file(context.get(), file.get());
  if (error == 0) error = spng_set_ihdr(context.get(), &header);
  if (error == 0) {
    const std::size_t bytes = picture.pixels.size() * sizeof(Colour);
    errno = 0;
    error = spng_encode_image(context.get(), picture.pixels.data(), bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  }
  if (error != 0 && errno != 0 && std::ferror(file.get()) != 0) return errno_error("writing " + path, errno);
  if (error != 0) return Error{Code::kInternal, "writing " + path + ": " + spng_strerror(error)};
  if (std::fflush(file.get()) != 0) return errno_error("writing " + path, errno);
  return {};
}

}  // namespace millrace::cli
