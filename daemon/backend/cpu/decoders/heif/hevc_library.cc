#include "daemon/backend/cpu/decoders/heif/hevc_library.h"

#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "daemon/backend/cpu/decoders/heif/run_time_library.h"

namespace millrace {
namespace {

struct LoadedHevc {
  HevcLibrary library;
  std::string why_not;
};

constexpr std::size_t kPadding = 32;  // bytes that are read behind a plane

void release(de265_decoder_context*, de265_image* image, void*) {
  const HevcLibrary& hevc = **hevc_library();
  for (int i = 0; i < 3; ++i) {
    std::free(hevc.memory_of(image, i));
    hevc.set_plane(image, i, nullptr, 0, nullptr);
  }
}

// Returns 1, or 0: no memory.
int get_cleared(de265_decoder_context*, de265_image_spec* spec, de265_image* image, void*) {
  const HevcLibrary& hevc = **hevc_library();
  const de265_chroma chroma = hevc.chroma(image);
  for (int i = 0; i < (chroma == de265_chroma_mono ? 1 : 3); ++i) {
    const bool is_half_wide = i > 0 && chroma != de265_chroma_444, is_half_high = i > 0 && chroma == de265_chroma_420;
    const int columns = is_half_wide ? (spec->width + 1) / 2 : spec->width;
    const int rows = is_half_high ? (spec->height + 1) / 2 : spec->height;
    const int sample = hevc.bits(image, i) > 8 ? 2 : 1;  // bytes
    const int stride = (columns + spec->alignment - 1) / spec->alignment * spec->alignment * sample;
    void* const memory = std::calloc(1, static_cast<std::size_t>(stride) * static_cast<std::size_t>(rows) + kPadding);
    hevc.set_plane(image, i, memory, stride, memory);
    if (memory == nullptr) return release(nullptr, image, nullptr), 0;
  }
  return 1;
}

bool is_writable(const void* address) {
  struct Search {
    std::uintptr_t address;
    bool found = false;
  } search{reinterpret_cast<std::uintptr_t>(address)};
  dl_iterate_phdr(
      [](dl_phdr_info* file, std::size_t, void* wanted) {
        auto& looked_for = *static_cast<Search*>(wanted);
        for (const ElfW(Phdr)* part = file->dlpi_phdr; part != file->dlpi_phdr + file->dlpi_phnum; ++part) {
          const std::uintptr_t begin = file->dlpi_addr + part->p_vaddr;
          if (looked_for.address < begin || looked_for.address >= begin + part->p_memsz) continue;
          if (part->p_type == PT_LOAD) looked_for.found = (part->p_flags & PF_W) != 0;
          if (part->p_type == PT_GNU_RELRO) return looked_for.found = false, 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

// They lie in a variable of the library's, which it only hands out as what may not be written.
bool replace(const de265_image_allocation* usual) {
  if (!is_writable(usual)) return false;
  *const_cast<de265_image_allocation*>(usual) = {get_cleared, release};
  return true;
}

LoadedHevc load_hevc() {
  RunTimeLibrary file("HEIC", MILLRACE_DE265_SONAME, MILLRACE_DE265_PACKAGE);
  HevcLibrary library;
  file.find("de265_new_decoder", library.create);
  file.find("de265_free_decoder", library.destroy);
  file.find("de265_push_NAL", library.push);
  file.find("de265_flush_data", library.flush);
  file.find("de265_decode", library.decode);
  file.find("de265_get_warning", library.warning);
  file.find("de265_get_error_text", library.text_of);
  file.find("de265_peek_next_picture", library.picture);
  file.find("de265_get_image_width", library.width);
  file.find("de265_get_image_height", library.height);
  file.find("de265_get_chroma_format", library.chroma);
  file.find("de265_get_bits_per_pixel", library.bits);
  file.find("de265_get_image_plane", library.plane);
  file.find("de265_set_image_plane", library.set_plane);
  file.find("de265_get_image_plane_user_data", library.memory_of);
  file.find("de265_get_image_full_range_flag", library.is_full_range);
  file.find("de265_get_image_matrix_coefficients", library.matrix);
  // Its tables stay: the last decoder that goes would take them along, and the next one wait for them.
  decltype(&::de265_init) init = nullptr;
  file.find("de265_init", init);
  if (file.why_not().empty() && init() != DE265_OK) file.refuse("libde265 has no memory");
  // Those that a decoder is told are not for all of its pictures: those with SAO are the usual functions'.
  decltype(&::de265_get_default_image_allocation_functions) usual = nullptr;
  file.find("de265_get_default_image_allocation_functions", usual);
  if (file.why_not().empty() && !replace(usual())) file.refuse("libde265 does not let its memory be cleared");
  return {library, file.why_not()};
}

}  // namespace

Result<const HevcLibrary*> hevc_library() {
  static const LoadedHevc loaded = load_hevc();
  if (!loaded.why_not.empty()) return Error{Code::kUnsupported, loaded.why_not};
  return &loaded.library;
}

}  // namespace millrace
