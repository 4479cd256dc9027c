// GIF: the first picture of a file, as Pillow 13 has it (README.md): on a canvas that holds it, with what lies around it
// in the transparent colour, or the palette's first.
//
// The bytes are hostile. Pure functions; thread-safe.
#pragma once

#include <string>

#include "kernels/base/image_view.h"
#include "kernels/raster/decoded.h"
#include "kernels/raster/palette.h"
#include "kernels/raster/raster_file.h"

namespace millrace::kernels::raster {

struct GifHeader {
  Size canvas;
  Box frame;  // within the canvas
  bool is_interlaced = false;
  bool is_animated = false;  // it says how often it is to be shown
  bool has_alpha = false;
  bool is_grey = false;     // no palette, or one whose every entry is its own number
  std::uint8_t around = 0;  // the colour of what is not the frame's
  std::uint8_t code_bits = 0;
  std::size_t data_at = 0;
  Palette palette{};

  // What is read then: each pixel's number, not its colour.
  void show_indices() { is_grey = true, palette = kGreys; }

  int channels() const { return is_grey ? 1 : 3; }
};

bool is_gif(FileBytes file_untrusted);

// Of the file as far as the first picture's data. Empty: fine. Otherwise a sentence that says what is wrong; `header`
// means nothing then. REQUIRES: is_gif().
std::string read_gif_header(FileBytes file_untrusted, GifHeader& header);

// `box` of the canvas into `out`; all of the first picture is read, whatever the box. Takes 17 KiB of stack. REQUIRES:
// `out` is as large as the box, of header.channels() a pixel.
Decoded read_gif_frame(const GifHeader& header, FileBytes file_untrusted, const Box& box, MutableU8View out,
                       const GoOn& go_on);

}  // namespace millrace::kernels::raster
