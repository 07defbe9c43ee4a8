# Written by `make stubs` from the table of tf.image in namespaces.py.

from tenfold.ops.array_blocks import extract_image_patches
from tenfold.ops.array_blocks import extract_patches
from tenfold.ops.generated_ops import decode_and_crop_jpeg
from tenfold.ops.generated_ops import decode_bmp
from tenfold.ops.generated_ops import decode_gif
from tenfold.ops.generated_ops import decode_jpeg
from tenfold.ops.generated_ops import decode_png
from tenfold.ops.generated_ops import encode_jpeg
from tenfold.ops.generated_ops import encode_png
from tenfold.ops.generated_ops import extract_jpeg_shape
from tenfold.ops.generated_ops import hsv_to_rgb
from tenfold.ops.generated_ops import resize_area
from tenfold.ops.generated_ops import rgb_to_hsv
from tenfold.ops.image import adjust_brightness
from tenfold.ops.image import adjust_contrast
from tenfold.ops.image import adjust_gamma
from tenfold.ops.image import adjust_hue
from tenfold.ops.image import adjust_saturation
from tenfold.ops.image import convert_image_dtype
from tenfold.ops.image import grayscale_to_rgb
from tenfold.ops.image import per_image_standardization
from tenfold.ops.image import random_brightness
from tenfold.ops.image import random_contrast
from tenfold.ops.image import random_hue
from tenfold.ops.image import random_saturation
from tenfold.ops.image import rgb_to_grayscale
from tenfold.ops.image import rgb_to_yiq
from tenfold.ops.image import rgb_to_yuv
from tenfold.ops.image import yiq_to_rgb
from tenfold.ops.image import yuv_to_rgb
from tenfold.ops.image_boxes import combined_non_max_suppression
from tenfold.ops.image_boxes import crop_and_resize
from tenfold.ops.image_boxes import draw_bounding_boxes
from tenfold.ops.image_boxes import extract_glimpse
from tenfold.ops.image_boxes import non_max_suppression
from tenfold.ops.image_boxes import non_max_suppression_padded
from tenfold.ops.image_boxes import non_max_suppression_with_overlaps as non_max_suppression_overlaps
from tenfold.ops.image_boxes import non_max_suppression_with_scores
from tenfold.ops.image_boxes import sample_distorted_bounding_box
from tenfold.ops.image_crop import central_crop
from tenfold.ops.image_crop import crop_to_bounding_box
from tenfold.ops.image_crop import pad_to_bounding_box
from tenfold.ops.image_crop import resize_image_with_crop_or_pad
from tenfold.ops.image_crop import resize_with_crop_or_pad
from tenfold.ops.image_files import adjust_jpeg_quality
from tenfold.ops.image_files import decode_image
from tenfold.ops.image_files import is_jpeg
from tenfold.ops.image_files import random_jpeg_quality
from tenfold.ops.image_flip import flip_left_right
from tenfold.ops.image_flip import flip_up_down
from tenfold.ops.image_flip import random_flip_left_right
from tenfold.ops.image_flip import random_flip_up_down
from tenfold.ops.image_flip import rot90
from tenfold.ops.image_flip import transpose
from tenfold.ops.image_flip import transpose_image
from tenfold.ops.image_quality import image_gradients
from tenfold.ops.image_quality import psnr
from tenfold.ops.image_quality import sobel_edges
from tenfold.ops.image_quality import ssim
from tenfold.ops.image_quality import ssim_multiscale
from tenfold.ops.image_quality import total_variation
from tenfold.ops.image_resize import ResizeMethodV1 as ResizeMethod
from tenfold.ops.image_resize import resize
from tenfold.ops.image_resize import resize_bicubic
from tenfold.ops.image_resize import resize_bilinear
from tenfold.ops.image_resize import resize_image_with_pad
from tenfold.ops.image_resize import resize_images
from tenfold.ops.image_resize import resize_nearest_neighbor
from tenfold.ops.random import random_crop

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_jpeg_quality",
    "adjust_saturation",
    "central_crop",
    "combined_non_max_suppression",
    "convert_image_dtype",
    "crop_and_resize",
    "crop_to_bounding_box",
    "decode_and_crop_jpeg",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "draw_bounding_boxes",
    "encode_jpeg",
    "encode_png",
    "extract_glimpse",
    "extract_image_patches",
    "extract_jpeg_shape",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "image_gradients",
    "is_jpeg",
    "non_max_suppression",
    "non_max_suppression_overlaps",
    "non_max_suppression_padded",
    "non_max_suppression_with_scores",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_jpeg_quality",
    "random_saturation",
    "resize",
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_image_with_crop_or_pad",
    "resize_image_with_pad",
    "resize_images",
    "resize_nearest_neighbor",
    "resize_with_crop_or_pad",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sample_distorted_bounding_box",
    "sobel_edges",
    "ssim",
    "ssim_multiscale",
    "total_variation",
    "transpose",
    "transpose_image",
    "yiq_to_rgb",
    "yuv_to_rgb",
]
