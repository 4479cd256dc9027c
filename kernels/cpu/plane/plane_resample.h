// Antialiased resampling for `fast`: a picture's planes, each from its own grid, to rows of R, G and B (or grey) of the
// output's size. Colours are converted last, where there are fewest of them. The weights are Pillow's (resample.h),
// rounded to 7 bits (13 where filters have negative weights); columns are filtered after rows, and rounded to 8 bits
// between. All targets give the same bytes.
//
//   PlaneResampler resampler(target);                                     // one a thread
//   resampler.begin({.resample = spec, .left = 17, .top = 4, .layout = layout_of(header), .flip = flip});
//   ... decode resampler.needed(); after each few rows: resampler.take(planes, ready, sink) ...
//
// Thread-bound(the lane that owns it).
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/base/image_view.h"
#include "kernels/base/time_limit.h"
#include "kernels/cpu/plane/plane_axis.h"
#include "kernels/cpu/plane/plane_kernels.h"
#include "kernels/cpu/plane/sample_plane.h"
#include "kernels/cpu/resample.h"

namespace millrace::kernels {

inline constexpr int kMostPlanes = 3;

// What the planes are: 1 of grey, or 3. The second and the third have the same grids.
struct PlaneLayout {
  enum class Colour : std::uint8_t { kAsIs, kYcc };
  int planes = 1;
  Colour colour = Colour::kAsIs;
  PlaneGrid columns[kMostPlanes], rows[kMostPlanes];
};

// `resample.source` is the crop's size; its channels and order count for nothing.
struct PlaneResampleSpec {
  ResampleSpec resample;
  int left = 0, top = 0;  // of the crop in the image, pixels
  PlaneLayout layout;
  Flip flip = Flip::kNone;
};

// Takes finished rows: `y` counts 0..window.height - 1 upwards; planes[c] has window.width bytes, is valid during the
// call only, and may be written to. Grey: planes[0] alone.
struct PlaneRowSink {
  void* context;
  void (*take)(void* context, int y, std::uint8_t* const planes[kMostPlanes]);
};

class PlaneResampler {
 public:
  // REQUIRES: is_available(target).
  explicit PlaneResampler(Target target = best_target());

  // Of the picture at hand: once it is over, no more rows are made. Never over unless it is set.
  TimeLimit& limit() { return limit_; }

  // Starts a picture; a few microseconds a side. REQUIRES: is_valid(spec.resample); a filter other than kNearest; the
  // crop lies inside the image.
  void begin(const PlaneResampleSpec& spec) { begin(spec, 1); }

  // The part of the image, in pixels, that the window depends on, but for the chroma samples beside it that smoothing
  // looks at: one a side.
  Box needed() const;
  // How many of the latest rows of a plane have to be in memory when take() is called, beside those that came since the
  // last call.
  int rows_held(int plane) const;

  // Makes the output rows for which the first `ready[i]` rows of each plane suffice. Reads rows as far as needed(), and
  // up to 64 bytes after.
  void take(const SamplePlane* planes, const int* ready, PlaneRowSink sink);
  bool is_complete() const { return next_ == spec_.resample.window.height; }

  // A picture of interleaved pixels at once, to rows of such pixels: resample.channels of them, 1 or 3. Only needed()
  // of `image` is read, and up to 64 bytes after each row. false: rows are missing, for the time limit is over. REQUIRES:
  // as for begin(); the crop is the whole image.
  bool run(const ResampleSpec& resample, Flip flip, const U8View& image, RowSink sink);

  // The same of a part of an image, whose pixels have the grid of the first plane in spec.layout.
  bool run(const PlaneResampleSpec& spec, const U8View& image, RowSink sink);

  // Gives back memory beyond `bytes`.
  void trim(std::size_t bytes);

 private:
  struct Side {
    AxisSpec spec{};
    AxisWeights weights;
    PlaneAxisSpec specs[2];
    PlaneAxis axes[2];  // of the first plane, and of the others where they differ
    int others = 0;     // which are the others'
  };
  enum class Packed : std::uint8_t { kNo, kYes };

  void begin(const PlaneResampleSpec& spec, int channels);
  void prepare(Side& side, const AxisSpec& spec, int offset, const PlaneGrid* grids, Flip flip, Packed packed);
  void reserve(int channels);
  const PlaneAxis& columns(int plane) const { return columns_.axes[plane == 0 ? 0 : columns_.others]; }
  const PlaneAxis& rows(int plane) const { return rows_.axes[plane == 0 ? 0 : rows_.others]; }
  bool has_rows(const int* ready) const;
  bool is_too_late();
  void filter_plane(int plane, const SamplePlane& in);
  void filter_pixels(const U8View& image);
  void filter_pixel_planes(int pixels);
  void filter_taps(const PlaneAxis& down, int samples);
  void finish_row(PlaneRowSink sink);

  Target target_;
  const PlaneKernels& kernels_;
  TimeLimit limit_;
  PlaneResampleSpec spec_;
  Side columns_, rows_;
  int next_ = 0;
  std::vector<const std::uint8_t*> taps_;
  std::vector<Line> memory_;
  std::uint8_t* filtered_ = nullptr;          // a row of samples or pixels between the passes
  std::uint8_t* pixels_ = nullptr;            // a row of finished pixels
  std::uint8_t* split_[kMostPlanes] = {};     // such pixels' channels
  std::uint8_t* finished_[kMostPlanes] = {};  // a row of outputs
};

// A sink for any callable (int y, std::uint8_t* const planes[]). It keeps a reference to `callable`.
template <class Callable>
PlaneRowSink plane_row_sink(Callable& callable) {
  const auto take = [](void* context, int y, std::uint8_t* const planes[kMostPlanes]) {
    (*static_cast<Callable*>(context))(y, planes);
  };
  return {const_cast<std::remove_const_t<Callable>*>(std::addressof(callable)), take};
}

}  // namespace millrace::kernels
