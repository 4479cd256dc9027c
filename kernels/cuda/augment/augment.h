// Augmentation on a GPU: a reconstructed picture (RGB of 8 bits) is padded onto its canvas, steps change it, and it
// becomes a tensor, parts of which may be overwritten:
//
//   picture ─▶ buffer 0 ─▶ step: buffer to buffer ─▶ ... ─▶ elements ─▶ erased boxes
//
// A thread block makes one picture. Each step is one phase or a few: sums, histograms and tables are in shared memory,
// pictures in global scratch. Results are those of kernels/augment, bit by bit. augment.md has memory and phases.
#pragma once

#include "kernels/cuda/augment/augment_blur.h"
#include "kernels/cuda/augment/augment_geometry.h"
#include "kernels/cuda/augment/augment_store.h"
#include "kernels/cuda/augment/augment_values.h"

namespace millrace::kernels::cuda {

namespace augmenting {

template <class Block>
MILLRACE_KERNEL void make_step(Block& block, const StepWork& work) {
  switch (work.step.kind) {
    case AugmentKind::kSolarize:
    case AugmentKind::kPosterize:
    case AugmentKind::kSolarizeAdd:
    case AugmentKind::kBrightness:
      return map_values(block, work);
    case AugmentKind::kContrast:
      return contrast(block, work);
    case AugmentKind::kAutocontrast:
      return autocontrast(block, work);
    case AugmentKind::kEqualize:
      return equalize(block, work);
    case AugmentKind::kSaturation:
    case AugmentKind::kHue:
    case AugmentKind::kGrey:
      return change_colours(block, work);
    case AugmentKind::kSharpness:
      return sharpen(block, work);
    case AugmentKind::kMove:
      return move_pixels(block, work);
    case AugmentKind::kShift:
      return shift_picture(block, work);
    case AugmentKind::kErase:
      return erase_box(block, work);
    case AugmentKind::kScale:
      return scale_nearest(block, work);
    case AugmentKind::kFixed:
      return affine_fixed(block, work);
    case AugmentKind::kSummed:
      return affine_summed(block, work);
    case AugmentKind::kSample:
      return sample_picture(block, work);
    case AugmentKind::kAcross:
      return weigh_across(block, work);
    case AugmentKind::kDown:
      return weigh_down(block, work);
    case AugmentKind::kBox:
      return blur_box(block, work);
    case AugmentKind::kMix:
      return mix_pictures(block, work);
  }
}

}  // namespace augmenting

// The kernel: block i makes args.jobs[i]. REQUIRES: kAugmentThreads.
template <class Block>
MILLRACE_KERNEL void augment(Block& block, const AugmentArgs& args) {
  const PictureJob& job = args.jobs[block.index()];
  if (args.status[job.image] != Status::kDone) return;
  if (job.steps != 0) augmenting::load_picture(block, args, job);
  MILLRACE_ROLLED for (std::uint32_t i = 0; i < job.steps; ++i)
      augmenting::make_step(block, augmenting::StepWork(args, job, i));
  augmenting::store_picture(block, args, job);
  augmenting::erase_boxes(block, args, job);
}

}  // namespace millrace::kernels::cuda
