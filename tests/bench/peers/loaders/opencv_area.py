"""OpenCV with the interpolation that its documentation advises for shrinking."""

from __future__ import annotations

import cv2

from loaders import opencv


class Loader(opencv.Loader):
    antialias = "box"
    interpolation = cv2.INTER_AREA
    tuned = "as opencv, INTER_AREA: a box filter when shrinking, else as INTER_LINEAR"
