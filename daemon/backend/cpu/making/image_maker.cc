#include "daemon/backend/cpu/making/image_maker.h"

#include <algorithm>
#include <span>

#include "daemon/backend/cpu/decoders/decoder_table.h"
#include "daemon/backend/cpu/decoders/jpeg/jpeg_choice.h"
#include "daemon/backend/cpu/decoders/jpeg/packed_decoder.h"
#include "daemon/backend/cpu/decoders/l3_decoder.h"
#include "daemon/backend/cpu/decoders/pnm_decoder.h"
#include "daemon/backend/cpu/making/fused_jpeg.h"
#include "daemon/backend/cpu/making/padding.h"
#include "daemon/backend/cpu/making/reduced_jpeg.h"
#include "daemon/backend/words.h"
#include "daemon/cache/index_use.h"
#include "kernels/cpu/orient.h"
#include "kernels/cpu/resample.h"

namespace millrace {
namespace {

constexpr std::size_t kMostGroups = PixelBuffer::kKept / sizeof(std::uint64_t);  // of a packed form that is kept
constexpr std::size_t kTables = 8;  // recipes at the same time on one lane; a table is 6 KiB

// Whose turn it is to decode a JPEG file: everybody's, or libjpeg-turbo's, because ours has tried.
enum class JpegTurn : std::uint8_t { kAny, kLibjpegTurbo };

// Our own decoder for a JPEG file; nullptr: libjpeg-turbo's turn from the start. Without vectors that one is faster;
// but files with restart markers are ours on every processor, because a decoder that skips intervals does not see all
// the damage that the other one does.
kernels::jpeg::Decoder* decoder_for(ByteView bytes, ImageWorkspace& workspace) {
  if (workspace.jpeg() == nullptr || workspace.has_vectors()) return workspace.jpeg();
  const auto header = kernels::jpeg::read_header({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return header && kernels::jpeg::has_restarts(*header) ? workspace.jpeg() : nullptr;
}

Error packed_error(const char* why) {  // of a kept form
  return {Code::kInternal, std::string("the packed form kept of this file is not usable: ") + why};
}

// Of packed coefficients that our decoder does not take.
Error not_made_error(ImageFormat format) {
  return format == ImageFormat::kPacked ? made_up_error() : packed_error("no encoder made it");
}

// The packed form that stands in for the file, or is in it, good until the next call; nullptr: there is none.
Result<const kernels::packed::PackedImage*> packed_form(const EncodedImage& image, ImageWorkspace& workspace) {
  if (image.info.format == ImageFormat::kPacked) {
    MILLRACE_TRY_VOID(open_packed_file(image.bytes.view(), in_kernels(image.info.stored), workspace.packed()));
    return &workspace.packed();
  }
  if (!image.kept || image.kept->kind != CachedKind::kPacked) return nullptr;
  const CachedBlock& kept = *image.kept->bytes;
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(kept.view().data());
  kernels::packed::PackedImage& packed = workspace.packed();
  if (kept.padding() < kernels::packed::kPadding) return packed_error("nothing is readable behind it");
  if (!packed.read({bytes, kept.size()}, kernels::packed::Check::kShape)) return packed_error("it is damaged");
  if (image.info.format != ImageFormat::kJpeg || packed.header().size != in_kernels(image.info.stored))
    return packed_error("it is another picture's");
  return &packed;
}

Result<kernels::U8View> decode(ImageFormat format, const DecodeRequest& request, ImageWorkspace& workspace,
                               JpegTurn turn) {
  PixelBuffer& buffer = workspace.decoded();
  if (request.packed != nullptr) {
    const auto decoded = decode_jpeg_fast(request, buffer, workspace.packed_decoder());
    return decoded ? *decoded : not_made_error(format);
  }
  if (format == ImageFormat::kJpeg && turn == JpegTurn::kAny) {
    kernels::jpeg::Decoder* const ours = decoder_for(request.bytes_untrusted, workspace);
    const auto decoded = ours == nullptr ? std::nullopt : decode_jpeg_fast(request, buffer, *ours);
    if (decoded) return *decoded;
  }
  if (format == ImageFormat::kPnm) return decode_pnm(request, buffer);
  if (format == ImageFormat::kL3) return decode_l3(request, buffer);
  return workspace.libraries().decode(format, request, buffer);
}

// The seek index of a JPEG file; nullopt: there is no cache, or not for it.
std::optional<IndexUse> index_use(const SampleTask& task, ImageWorkspace& workspace) {
  if (workspace.cache() == nullptr || task.image.info.format != ImageFormat::kJpeg) return std::nullopt;
  if (!workspace.cache()->keeps(CachedKind::kIndex, task.image.wish)) return std::nullopt;
  return std::optional<IndexUse>(std::in_place, *workspace.cache(), task.image, workspace.makes_index(),
                                 workspace.index_helped());
}

// The part of the picture at `box` (in oriented coordinates), upright.
Result<kernels::U8View> decode_upright(const SampleTask& task, const kernels::Box& box,
                                       const kernels::Deadline& deadline, ImageWorkspace& workspace, JpegTurn turn,
                                       const kernels::packed::PackedImage* packed, bool indices) {
  const SourceInfo& info = task.image.info;
  const kernels::Size stored = in_kernels(info.stored);
  const kernels::Orientation orientation = kernels::orientation_of(info.orientation);
  const bool indexed = turn == JpegTurn::kAny && packed == nullptr;
  std::optional<IndexUse> index = indexed ? index_use(task, workspace) : std::nullopt;
  const DecodeRequest request{task.image.bytes.view(),
                              stored,
                              kernels::stored_box(box, stored, orientation),
                              deadline,
                              index ? &*index : nullptr,
                              info.codec.at_most,
                              1,
                              packed,
                              {task.image.user, workspace.audience()},
                              indices,
                              workspace.target()};
  MILLRACE_TRY(const kernels::U8View part, decode(info.format, request, workspace, turn));
  if (indices && part.channels != 1) return coloured_error();
  if (orientation == kernels::Orientation::kUpright) return part;
  const std::ptrdiff_t stride = std::ptrdiff_t{box.width} * part.channels;
  std::uint8_t* const memory =
      workspace.turned().reserve(static_cast<std::size_t>(stride) * static_cast<std::size_t>(box.height));
  if (memory == nullptr) return memory_error();
  const kernels::MutableU8View turned{memory, box.width, box.height, part.channels, stride};
  if (!kernels::orient(part, orientation, turned, &workspace.arithmetic().limit())) return deadline_error();
  return kernels::U8View(turned);
}

// The whole picture of which `part` holds the pixels at `place`. Nothing else of it may count, nor be read further than
// the buffer's slack.
kernels::U8View as_whole(const kernels::U8View& part, const kernels::Box& place, kernels::Size whole) {
  return {part.data - place.top * part.stride - std::ptrdiff_t{place.left} * part.channels, whole.width, whole.height,
          part.channels, part.stride};
}

bool has_fused_form(const kernels::ResampleSpec& spec) {
  return spec.filter != kernels::Filter::kNearest;
}

// Whether the tensor shows all of the picture, so that its verdict is the picture's.
bool shows_all(const SourceInfo& source, const SampleGeometry& geometry) {
  const auto covers = [](const Box& box, kernels::Size size) {
    return box.width == size.width && box.height == size.height;
  };
  return covers(geometry.crop, in_kernels(oriented_size(source))) &&
         covers(geometry.window, in_kernels(geometry.resized));
}

// The part of the oriented picture that the window depends on. All of a picture that is shown whole, where `nearest`
// may pick out less.
kernels::Box needed_box(const SourceInfo& source, const SampleGeometry& geometry, const Recipe& recipe,
                        kernels::Workspace& workspace) {
  if (shows_all(source, geometry)) return in_kernels(geometry.crop);
  const kernels::Box needed = kernels::needed_source(workspace.plan(resample_spec(geometry, recipe, 3)));
  return {geometry.crop.left + needed.left, geometry.crop.top + needed.top, needed.width, needed.height};
}

// Where the resampled picture goes, and how it is stored there.
struct Output {
  const Recipe& recipe;
  MutableByteView tensor;
};

// false: the time limit was over first.
bool resample_and_store(const SampleGeometry& geometry, const Output& output, const kernels::U8View& part,
                        const kernels::Box& place, ImageWorkspace& workspace, Fidelity fidelity) {
  const Recipe& recipe = output.recipe;
  const kernels::Box in_crop{place.left - geometry.crop.left, place.top - geometry.crop.top, place.width, place.height};
  const kernels::U8View crop = as_whole(part, in_crop, {geometry.crop.width, geometry.crop.height});
  const kernels::ResampleSpec spec = resample_spec(geometry, recipe, part.channels);
  const bool fast = fidelity == Fidelity::kFast && has_fused_form(spec);
  const kernels::Flip flip = flip_of(geometry);  // fast resampling flips by itself
  kernels::ImageStore store(workspace.store_table(recipe), output.tensor,
                            {geometry.window.width, geometry.window.height}, part.channels,
                            fast ? kernels::Flip::kNone : flip, workspace.arithmetic());
  if (fast) return workspace.planes().run(spec, flip, crop, kernels::row_sink(store));
  return kernels::resample(workspace.arithmetic().plan(spec), crop, workspace.arithmetic(), store);
}

// --- without a picture in between ---

// Whether `fast` has it from a picture of libjpeg-turbo's, which from packed coefficients comes out the same.
bool is_fast_from_picture(const SampleTask& task, const Recipe& recipe, const ImageWorkspace& workspace) {
  return (task.image.info.has.passes || !workspace.has_vectors()) &&
         reduction_of(resample_spec(task.geometry, recipe, 3)) == 1;
}

bool may_be_fused(const SampleTask& task, const Recipe& recipe) {
  const SourceInfo& info = task.image.info;
  const bool coefficients = info.format == ImageFormat::kJpeg || info.format == ImageFormat::kPacked;
  return coefficients && has_fused_form(resample_spec(task.geometry, recipe, 3)) &&
         kernels::orientation_of(info.orientation) == kernels::Orientation::kUpright;
}

// nullopt: not for us, or of those that libjpeg-turbo decodes. REQUIRES: may_be_fused().
std::optional<FusedOutcome> make_fused(const SampleTask& task, const Output& to, const kernels::Deadline& deadline,
                                       ImageWorkspace& workspace, Fidelity fidelity,
                                       const kernels::packed::PackedImage* packed) {
  const SampleGeometry& geometry = task.geometry;
  std::optional<IndexUse> index = packed == nullptr ? index_use(task, workspace) : std::nullopt;
  DecodeRequest request{task.image.bytes.view(),
                        in_kernels(task.image.info.stored),
                        {},
                        deadline,
                        index ? &*index : nullptr,
                        task.image.info.codec.at_most,
                        1,
                        packed,
                        {task.image.user, workspace.audience()}};
  const FusedOutput output{.resample = resample_spec(geometry, to.recipe, 3),
                           .left = geometry.crop.left,
                           .top = geometry.crop.top,
                           .flip = flip_of(geometry),
                           .table = workspace.store_table(to.recipe),
                           .tensor = to.tensor};
  kernels::Workspace& arithmetic = workspace.arithmetic();
  kernels::jpeg::Decoder* const ours =
      packed != nullptr ? &workspace.packed_decoder() : decoder_for(request.bytes_untrusted, workspace);
  if (ours != nullptr) {
    const FusedTools tools{*ours, workspace.planes(), arithmetic, workspace.decoded()};
    auto made = fidelity == Fidelity::kFast ? make_fast_from_jpeg(request, output, tools)
                                            : make_exact_from_jpeg(request, output, tools);
    if (made) return made;
  }
  if (packed != nullptr) return FusedOutcome{not_made_error(task.image.info.format)};
  if (fidelity == Fidelity::kExact) return std::nullopt;
  request.index = nullptr;
  return make_reduced_from_jpeg(request, output,
                                {workspace.libraries(), workspace.planes(), arithmetic, workspace.decoded()});
}

std::chrono::nanoseconds time_since(Clock::time_point begun) {
  return Clock::now() - begun;
}

// The picture decoded, resampled and stored: everything but steps of augmentation and erasing.
Result<void> make_picture(const SampleTask& task, const Output& output, Clock::time_point begun,
                          const kernels::Deadline& deadline, ImageWorkspace& workspace, Fidelity fidelity,
                          SampleOutcome& outcome) {
  const Recipe& recipe = output.recipe;
  MILLRACE_TRY(const kernels::packed::PackedImage* const packed, packed_form(task.image, workspace));
  const bool as_picture =
      packed != nullptr && fidelity == Fidelity::kFast && is_fast_from_picture(task, recipe, workspace);
  const bool by_us = may_be_fused(task, recipe) && !as_picture;
  if (by_us) {
    if (const auto fused = make_fused(task, output, deadline, workspace, fidelity, packed)) {
      outcome.transform = fused->transform;
      outcome.decode = std::max(time_since(begun) - fused->transform, std::chrono::nanoseconds{0});
      workspace.trim(0);
      return fused->made;
    }
  }
  const kernels::Box needed = needed_box(task.image.info, task.geometry, recipe, workspace.arithmetic());
  const Result<kernels::U8View> part = decode_upright(
      task, needed, deadline, workspace, by_us ? JpegTurn::kLibjpegTurbo : JpegTurn::kAny, packed, recipe.indices);
  const Clock::time_point decoded = Clock::now();
  outcome.decode = time_since(begun);
  if (!part) return part.error();
  if (deadline.is_over(decoded)) return deadline_error();
  const bool complete = resample_and_store(task.geometry, output, *part, needed, workspace, fidelity);
  outcome.transform = time_since(decoded);
  workspace.trim(static_cast<std::size_t>(part->stride) * static_cast<std::size_t>(part->height));
  if (!complete) return deadline_error();
  return {};
}

Result<void> store_all(const kernels::U8View& picture, const Output& output, ImageWorkspace& workspace) {
  kernels::ImageStore store(workspace.store_table(output.recipe), output.tensor, picture.size(), picture.channels,
                            kernels::Flip::kNone, workspace.arithmetic());
  for (int y = 0; y < picture.height; ++y) {
    if (workspace.arithmetic().limit().is_over_after(static_cast<std::uint64_t>(picture.width)))
      return deadline_error();
    store(y, picture.row(y));
  }
  return {};
}

MutableByteView bytes_of(const kernels::MutableU8View& picture) {
  return std::as_writable_bytes(std::span<std::uint8_t>(
      picture.data, static_cast<std::size_t>(picture.stride) * static_cast<std::size_t>(picture.height)));
}

// Whether what is resampled is not yet what is stored.
bool goes_by_picture(const Recipe& recipe, const SampleGeometry& geometry) {
  return !recipe.steps.empty() || geometry.canvas.has_value();
}

// By way of a picture: `make_inner(output)` makes what is resampled of it, it is padded, the recipe's steps are done to
// it, and what comes of that is stored.
template <class MakeInner>
Result<void> make_by_picture(const SampleGeometry& geometry, const Output& output, ImageWorkspace& workspace,
                             MakeInner&& make_inner) {
  StepWorkspace& steps = workspace.steps();
  kernels::TimeLimit& limit = workspace.arithmetic().limit();
  const Recipe before = before_steps(output.recipe);
  const std::optional<kernels::MutableU8View> picture = steps.picture(geometry.output());
  if (!picture) return memory_error();
  if (!geometry.canvas) {
    MILLRACE_TRY_VOID(make_inner(Output{before, bytes_of(*picture)}));
  } else {
    const Box& window = geometry.window;
    const auto inner =
        steps.inner({static_cast<std::uint32_t>(window.width), static_cast<std::uint32_t>(window.height)});
    if (!inner) return memory_error();
    MILLRACE_TRY_VOID(make_inner(Output{before, bytes_of(*inner)}));
    if (!pad_picture(*inner, *output.recipe.pad, geometry, limit, *picture)) return deadline_error();
  }
  MILLRACE_TRY_VOID(steps.apply(output.recipe, geometry, limit, *picture));
  return store_all(*picture, output, workspace);
}

Result<void> make_with_steps(const SampleTask& task, const Output& output, Clock::time_point begun,
                             const kernels::Deadline& deadline, ImageWorkspace& workspace, Fidelity fidelity,
                             SampleOutcome& outcome) {
  Clock::time_point made = begun;
  const Result<void> done = make_by_picture(task.geometry, output, workspace, [&](const Output& inner) {
    Result<void> picture = make_picture(task, inner, begun, deadline, workspace, fidelity, outcome);
    made = Clock::now();
    return picture;
  });
  outcome.transform += time_since(made);
  workspace.steps().trim();
  return done;
}

// --- several views ---

// The smallest box around both.
kernels::Box around(const kernels::Box& a, const kernels::Box& b) {
  const int left = std::min(a.left, b.left), top = std::min(a.top, b.top);
  return {left, top, std::max(a.left + a.width, b.left + b.width) - left,
          std::max(a.top + a.height, b.top + b.height) - top};
}

// One of them, of `part`, the pixels of the upright picture at `place`.
Result<void> make_view(const SampleGeometry& geometry, const Output& output, const kernels::U8View& part,
                       const kernels::Box& place, ImageWorkspace& workspace, Fidelity fidelity) {
  const Recipe& recipe = output.recipe;
  const auto resample = [&](const Output& to) {
    return resample_and_store(geometry, to, part, place, workspace, fidelity) ? Result<void>() : deadline_error();
  };
  MILLRACE_TRY_VOID(goes_by_picture(recipe, geometry) ? make_by_picture(geometry, output, workspace, resample)
                                                      : resample(output));
  if (!recipe.erasing) return {};
  const Clock::time_point made = Clock::now();
  const Result<void> erased = erase(recipe, geometry, workspace.arithmetic().limit(), output.tensor);
  workspace.steps().times().of(Stage::kErasing) += time_since(made);
  return erased;
}

// The picture is decoded once, as far as any of them depends on it.
Result<void> make_views(const SampleTask& task, const Recipe& recipe, Clock::time_point begun,
                        const kernels::Deadline& deadline, ImageWorkspace& workspace, Fidelity fidelity,
                        SampleOutcome& outcome) {
  const std::span<const Recipe> recipes = views_of(recipe);
  const std::span<const SampleGeometry> geometries = views_of(task.geometry);
  const auto needed_of = [&](std::size_t i) {
    return needed_box(task.image.info, geometries[i], recipes[i], workspace.arithmetic());
  };
  kernels::Box needed = needed_of(0);
  for (std::size_t i = 1; i < recipes.size(); ++i) needed = around(needed, needed_of(i));
  MILLRACE_TRY(const kernels::packed::PackedImage* const packed, packed_form(task.image, workspace));
  const Result<kernels::U8View> part =
      decode_upright(task, needed, deadline, workspace, JpegTurn::kAny, packed, recipe.indices);
  const Clock::time_point decoded = Clock::now();
  outcome.decode = time_since(begun);
  if (!part) return part.error();
  Result<void> done;
  for (std::size_t i = 0; i < recipes.size() && done; ++i) {
    done = deadline.is_over()
               ? Result<void>(deadline_error())
               : make_view(geometries[i], {recipes[i], task.out_of_view(i).view()}, *part, needed, workspace, fidelity);
  }
  outcome.transform = time_since(decoded);
  workspace.trim(static_cast<std::size_t>(part->stride) * static_cast<std::size_t>(part->height));
  workspace.steps().trim();
  return done;
}

Result<void> try_make(const SampleTask& task, const Recipe& recipe, const SampleLimits& limits,
                      ImageWorkspace& workspace, Fidelity fidelity, const StopFlag& stop, SampleOutcome& outcome) {
  const Clock::time_point begun = Clock::now();
  const kernels::Deadline deadline(begun + limits.time, &stop.flag());
  MILLRACE_TRY_VOID(check_task(task, recipe, limits));
  MILLRACE_TRY_VOID(check_on_host(task, recipe));
  if (recipe.indices && !has_indices(task.image.info.format)) return coloured_error();
  workspace.arithmetic().limit().set(deadline);
  workspace.planes().limit().set(deadline);
  if (!recipe.views.empty()) return make_views(task, recipe, begun, deadline, workspace, fidelity, outcome);
  const Output output{recipe, task.out.view()};
  if (!goes_by_picture(recipe, task.geometry)) {
    MILLRACE_TRY_VOID(make_picture(task, output, begun, deadline, workspace, fidelity, outcome));
  } else {
    MILLRACE_TRY_VOID(make_with_steps(task, output, begun, deadline, workspace, fidelity, outcome));
  }
  if (!recipe.erasing) return {};
  const Clock::time_point made = Clock::now();
  const Result<void> erased = erase(recipe, task.geometry, workspace.arithmetic().limit(), output.tensor);
  const std::chrono::nanoseconds took = time_since(made);
  outcome.transform += took;
  workspace.steps().times().of(Stage::kErasing) += took;
  return erased;
}

}  // namespace

ImageWorkspace::ImageWorkspace(JpegPath path, const CpuVariant& variant, ImageCache* cache, LibraryDecoder* libraries)
    : path_(path),
      variant_(variant),
      cache_(cache),
      libraries_(libraries),
      kernels_(std::in_place, variant.target),
      jpeg_(variant.target, variant.way),
      planes_(variant.target),
      steps_(variant.target) {}

const kernels::StoreTable& ImageWorkspace::store_table(const Recipe& recipe) {
  const kernels::StoreSpec spec = store_spec(recipe);
  const auto found = std::find_if(tables_.begin(), tables_.end(),
                                  [&](const kernels::StoreTable& table) { return table.spec() == spec; });
  if (found != tables_.end()) {
    tables_.splice(tables_.begin(), tables_, found);
    return tables_.front();
  }
  if (tables_.size() == kTables) tables_.pop_back();
  return tables_.emplace_front(spec);
}

void ImageWorkspace::trim(std::size_t pixel_bytes) {
  decoded_.trim();
  turned_.trim();
  libraries().trim();
  jpeg_.trim(PixelBuffer::kKept);
  planes_.trim(PixelBuffer::kKept);
  if (packed_.grid().groups() > kMostGroups) packed_ = {};
  if (pixel_bytes > PixelBuffer::kKept) kernels_.emplace(variant_.target);
}

SampleOutcome make_image(const SampleTask& task, const Recipe& recipe, const SampleLimits& limits,
                         ImageWorkspace& workspace, Fidelity fidelity, const StopFlag& stop) {
  SampleOutcome outcome{.index = task.index};
  const Result<void> made = try_make(task, recipe, limits, workspace, fidelity, stop, outcome);
  workspace.arithmetic().limit().set({});  // which `stop` need not outlive
  workspace.planes().limit().set({});
  if (!made) {
    outcome.error = stop.stopped() ? cancelled_error() : made.error();
    workspace.trim(0);
  }
  return outcome;
}

}  // namespace millrace
