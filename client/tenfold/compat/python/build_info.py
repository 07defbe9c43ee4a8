"""`tensorflow.python.platform.build_info`: what this build can do."""

is_cuda_build = is_rocm_build = False
cuda_version_number = cudnn_version_number = ""
