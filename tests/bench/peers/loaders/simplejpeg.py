"""simplejpeg, which only decodes; OpenCV resizes."""

from __future__ import annotations

from typing import Any

import cv2
import simplejpeg

from loaders import opencv
from loaders.base import read


class Loader(opencv.Loader):
    tuned = "decode_jpeg with fastdct and fastupsample, its fast options; OpenCV resizes (INTER_LINEAR); a thread a core"

    def versions(self) -> str:
        return f"{simplejpeg.__version__}, OpenCV {cv2.__version__}"

    def decode(self, path: str) -> Any:
        return simplejpeg.decode_jpeg(read(path), "RGB", fastdct=True, fastupsample=True)
