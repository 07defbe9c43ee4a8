"""Op definitions: images: resizing, colours, cropping, boxes, files.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_image as i
from tenfold_core.opdefs import shape_fns_nn as w
from tenfold_core.opdefs.table import family

op = family("image")

op(
    "AdjustContrast",
    "images: T, contrast_factor: float, min_value: float, max_value: float",
    "output: float",
    "T: {uint8, int8, int16, int32, int64, float, double}",
    shape=w.unchanged,
)
op("AdjustContrastv2", "images: T, contrast_factor: float", "output: T", "T: {half, float} = float", shape=s.unchanged)
op("AdjustHue", "images: T, delta: float", "output: T", "T: {half, float} = float", shape=w.unchanged)
op("AdjustSaturation", "images: T, scale: float", "output: T", "T: {half, float} = float", shape=w.unchanged)
op(
    "CombinedNonMaxSuppression",
    "boxes: float, scores: float, max_output_size_per_class: int32, max_total_size: int32, iou_threshold: float, score_threshold: float",
    "nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, valid_detections: int32",
    "pad_per_class: bool = false",
    "clip_boxes: bool = true",
    shape=i.combined_boxes,
    sized_by="max_output_size_per_class max_total_size",
)
op(
    "CropAndResize",
    "image: T, boxes: float, box_ind: int32, crop_size: int32",
    "crops: float",
    "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
    "method: {'bilinear', 'nearest'} = 'bilinear'",
    "extrapolation_value: float = 0.0",
    shape=w.crop_and_resize,
    sized_by="crop_size",
)
op(
    "CropAndResizeGradBoxes",
    "grads: float, image: T, boxes: float, box_ind: int32",
    "output: float",
    "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}",
    "method: {'bilinear'} = 'bilinear'",
    shape=w.third_input,
)
op(
    "CropAndResizeGradImage",
    "grads: float, boxes: float, box_ind: int32, image_size: int32",
    "output: T",
    "T: {float, half, double}",
    "method: {'bilinear', 'nearest'} = 'bilinear'",
    shape=w.of_image_sizes,
    sized_by="image_size",
)
op(
    "DecodeAndCropJpeg",
    "contents: string, crop_window: int32",
    "image: uint8",
    "channels: int = 0",
    "ratio: int = 1",
    "fancy_upscaling: bool = true",
    "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1.0",
    "dct_method: string = ''",
    shape=i.decoded_crop,
    sized_by="contents",
)
op("DecodeBmp", "contents: string", "image: uint8", "channels: int = 0", shape=w.decoded, sized_by="contents")
op("DecodeGif", "contents: string", "image: uint8", shape=w.always([None, None, None, 3]), sized_by="contents")
op(
    "DecodeImage",
    "contents: string",
    "image: dtype",
    "channels: int = 0",
    "dtype: {uint8, uint16, float} = uint8",
    "expand_animations: bool = true",
    shape=i.decoded_any,
    sized_by="contents",
)
op(
    "DecodeJpeg",
    "contents: string",
    "image: uint8",
    "channels: int = 0",
    "ratio: int = 1",
    "fancy_upscaling: bool = true",
    "try_recover_truncated: bool = false",
    "acceptable_fraction: float = 1.0",
    "dct_method: string = ''",
    shape=w.decoded,
    sized_by="contents",
)
op(
    "DecodePng",
    "contents: string",
    "image: dtype",
    "channels: int = 0",
    "dtype: {uint8, uint16} = uint8",
    shape=w.decoded,
    sized_by="contents",
)
op("DrawBoundingBoxes", "images: T, boxes: float", "output: T", "T: {float, half} = float", shape=i.drawn)
op(
    "DrawBoundingBoxesV2",
    "images: T, boxes: float, colors: float",
    "output: T",
    "T: {float, half} = float",
    shape=i.drawn,
)
op(
    "EncodeJpeg",
    "image: uint8",
    "contents: string",
    "format: {'', 'grayscale', 'rgb'} = ''",
    "quality: int = 95",
    "progressive: bool = false",
    "optimize_size: bool = false",
    "chroma_downsampling: bool = true",
    "density_unit: {'in', 'cm'} = 'in'",
    "x_density: int = 300",
    "y_density: int = 300",
    "xmp_metadata: string = ''",
    shape=w.scalar,
)
op(
    "EncodeJpegVariableQuality",
    "images: uint8, quality: int32",
    "contents: string",
    shape=i.encoded_image,
)
op("EncodePng", "image: T", "contents: string", "compression: int = -1", "T: {uint8, uint16} = uint8", shape=w.encoded)
op(
    "ExtractGlimpse",
    "input: float, size: int32, offsets: float",
    "glimpse: float",
    "centered: bool = true",
    "normalized: bool = true",
    "uniform_noise: bool = true",
    "noise: string = 'uniform'",
    shape=i.glimpse,
    sized_by="size",
)
op(
    "ExtractGlimpseV2",
    "input: float, size: int32, offsets: float",
    "glimpse: float",
    "centered: bool = true",
    "normalized: bool = true",
    "uniform_noise: bool = true",
    "noise: string = 'uniform'",
    shape=i.glimpse,
    sized_by="size",
)
op(
    "ExtractJpegShape",
    "contents: string",
    "image_shape: output_type",
    "output_type: {int32, int64} = int32",
    shape=w.always([3]),
)
op("HSVToRGB", "images: T", "output: T", "T: {half_floats} = float", shape=w.colours)
op(
    "NonMaxSuppression",
    "boxes: float, scores: float, max_output_size: int32",
    "selected_indices: int32",
    "iou_threshold: float = 0.5",
    shape=i.chosen_boxes,
)
op(
    "NonMaxSuppressionV2",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold",
    "selected_indices: int32",
    "T: {half, float} = float",
    "T_threshold: {half, float} = float",
    shape=i.chosen_boxes,
)
op(
    "NonMaxSuppressionV3",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold",
    "selected_indices: int32",
    "T: {half, float} = float",
    "T_threshold: {half, float} = float",
    shape=i.chosen_boxes,
)
op(
    "NonMaxSuppressionV4",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T_threshold, score_threshold: T_threshold",
    "selected_indices: int32, valid_outputs: int32",
    "T: {half, float} = float",
    "T_threshold: {half, float} = float",
    "pad_to_max_output_size: bool = false",
    shape=i.padded_boxes,
    sized_by="max_output_size",
)
op(
    "NonMaxSuppressionV5",
    "boxes: T, scores: T, max_output_size: int32, iou_threshold: T, score_threshold: T, soft_nms_sigma: T",
    "selected_indices: int32, selected_scores: T, valid_outputs: int32",
    "T: {half, float} = float",
    "pad_to_max_output_size: bool = false",
    shape=i.scored_boxes,
    sized_by="max_output_size",
)
op(
    "NonMaxSuppressionWithOverlaps",
    "overlaps: float, scores: float, max_output_size: int32, overlap_threshold: float, score_threshold: float",
    "selected_indices: int32",
    shape=i.overlapping_boxes,
)
op("RGBToHSV", "images: T", "output: T", "T: {half_floats} = float", shape=w.colours)
op(
    "ResizeArea",
    "images: T, size: int32",
    "resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
    "align_corners: bool = false",
    shape=w.resize,
    sized_by="size",
)
op(
    "ResizeBicubic",
    "images: T, size: int32",
    "resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
    shape=w.resize,
    sized_by="size",
)
op(
    "ResizeBicubicGrad",
    "grads: float, original_image: T",
    "output: T",
    "T: {float, double}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
    shape=w.second_input,
)
op(
    "ResizeBilinear",
    "images: T, size: int32",
    "resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double, bfloat16}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
    shape=w.resize,
    sized_by="size",
)
op(
    "ResizeBilinearGrad",
    "grads: float, original_image: T",
    "output: T",
    "T: {float, bfloat16, half, double}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
    shape=w.second_input,
)
op(
    "ResizeNearestNeighbor",
    "images: T, size: int32",
    "resized_images: T",
    "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
    shape=w.resize,
    sized_by="size",
)
op(
    "ResizeNearestNeighborGrad",
    "grads: T, size: int32",
    "output: T",
    "T: {uint8, int8, int32, half, float, double, bfloat16}",
    "align_corners: bool = false",
    "half_pixel_centers: bool = false",
    shape=w.resized_from,
    sized_by="size",
)
op(
    "SampleDistortedBoundingBox",
    "image_size: T, bounding_boxes: float",
    "begin: T, size: T, bboxes: float",
    "T: {uint8, int8, int16, int32, int64}",
    "seed: int = 0",
    "seed2: int = 0",
    "min_object_covered: float = 0.1",
    "aspect_ratio_range: list(float) = [0.75, 1.33]",
    "area_range: list(float) = [0.05, 1.0]",
    "max_attempts: int = 100",
    "use_image_if_no_bounding_boxes: bool = false",
    stateful=True,
    shape=i.sampled_box,
)
op(
    "SampleDistortedBoundingBoxV2",
    "image_size: T, bounding_boxes: float, min_object_covered: float",
    "begin: T, size: T, bboxes: float",
    "T: {uint8, int8, int16, int32, int64}",
    "seed: int = 0",
    "seed2: int = 0",
    "aspect_ratio_range: list(float) = [0.75, 1.33]",
    "area_range: list(float) = [0.05, 1.0]",
    "max_attempts: int = 100",
    "use_image_if_no_bounding_boxes: bool = false",
    stateful=True,
    shape=i.sampled_box,
)
op(
    "ScaleAndTranslate",
    "images: T, size: int32, scale: float, translation: float",
    "resized_images: float",
    "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}",
    "kernel_type: string = 'lanczos3'",
    "antialias: bool = true",
    shape=i.scaled,
    sized_by="size",
)
op(
    "ScaleAndTranslateGrad",
    "grads: T, original_image: T, scale: float, translation: float",
    "output: T",
    "T: {float}",
    "kernel_type: string = 'lanczos3'",
    "antialias: bool = true",
    shape=w.second_input,
)
op(
    "StatelessSampleDistortedBoundingBox",
    "image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed",
    "begin: T, size: T, bboxes: float",
    "T: {uint8, int8, int16, int32, int64}",
    "Tseed: {int32, int64}",
    "aspect_ratio_range: list(float) = [0.75, 1.33]",
    "area_range: list(float) = [0.05, 1.0]",
    "max_attempts: int = 100",
    "use_image_if_no_bounding_boxes: bool = false",
    shape=i.sampled_box,
)
